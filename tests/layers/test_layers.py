"""The source tree keeps to its layers, and the check that says so can fail."""

import pathlib

import pytest

from layers import Declaration, Layer, violations

ROOT = pathlib.Path(__file__).resolve().parents[2]
DECLARED = ROOT / "build" / "layers.json"

DECLARATION = Declaration(
    layers=(
        Layer("core/base", (), ()),
        Layer("core/trace", ("core/base",), ("nlohmann_json",)),
        Layer("core/index", ("core/base",), ()),
        Layer("core/session", ("core/base", "core/trace"), ()),
        Layer("app/repl", ("core/base", "core/session"), ()),
        Layer("app", ("core/session", "app/repl"), ()),
    ),
    third_party={
        "nlohmann_json": ("nlohmann/",),
        "pybind11": ("pybind11/", "Python.h"),
        "imgui": ("imgui",),
        "imgui_glfw": ("imgui_impl_",),
    },
)

CLEAN = {
    "core/base/id.h": "#pragma once\n#include <vector>\n#include <sys/mman.h>\n#include <unistd.h>\n",
    "core/trace/graph.h": '#include "core/base/id.h"\n#include <nlohmann/json.hpp>\n',
    "core/trace/graph.cpp": '#include "graph.h"\n#include "core/trace/graph.h"\n',
    "core/session/session.h": '#include "core/trace/graph.h"\n/*\n#include "app/main.h"\n*/\n',
    "app/repl/repl.h": '#include "core/session/session.h"\n',
    "app/main.cpp": '// #include "core/trace/graph.h"\n#include "app/repl/repl.h"\n',
}


def judge(tmp_path, files):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return violations(tmp_path, DECLARATION)


def test_every_include_of_the_source_tree_is_declared():
    assert DECLARED.exists(), f"{DECLARED} is missing: configure first (./test does)"
    declaration = Declaration.load(DECLARED)
    assert len(declaration.layers) > 10
    found = violations(ROOT, declaration)
    assert not found, "\n" + "\n".join(found)


def test_layers_are_declared_in_order():
    seen = set()
    for layer in Declaration.load(DECLARED).layers:
        assert set(layer.uses) <= seen, layer.path
        seen.add(layer.path)


def test_a_clean_tree_passes(tmp_path):
    assert judge(tmp_path, CLEAN) == []


@pytest.mark.parametrize(
    "file, include, message",
    [
        # upward
        ("core/base/bad.h", '#include "core/trace/graph.h"', "must not know core/trace"),
        ("core/trace/bad.h", '#include "../session/session.h"', "must not know core/session"),
        ("core/base/bad.cpp", "#include <core/trace/graph.h>", "must not know core/trace"),
        # sideways, and through a layer that is used but does not count
        ("core/trace/bad.h", '#include "core/index/access.h"', "does not declare that it uses core/index"),
        ("app/repl/bad.cpp", '#include "core/trace/graph.h"', "does not declare that it uses core/trace"),
        ("core/session/bad.h", ' # include "app/repl/repl.h"', "must not know app/repl"),
        # third party in the wrong room
        ("core/base/bad.h", "#include <nlohmann/json.hpp>", "third-party library nlohmann_json"),
        ("core/session/bad.cpp", "#include <Python.h>", "third-party library pybind11"),
        ("core/session/bad.cpp", '#include "nlohmann/json.hpp"', "third-party library nlohmann_json"),
        ("core/trace/bad.cpp", '#include "imgui.h"', "third-party library imgui"),
        ("core/trace/bad.cpp", "#include <imgui_impl_glfw.h>", "third-party library imgui_glfw"),
        # what nobody knows
        ("core/trace/bad.cpp", "#include <boost/any.hpp>", "neither ours, nor standard"),
        ("core/trace/bad.cpp", "#include HEADER", "neither ours, nor standard"),
        ("core/trace/bad.cpp", '#include "tests/helper.h"', "neither ours, nor standard"),
        ("core/stray/bad.h", "", "lies in no declared layer"),
        ("core/trace/bad.h", '#include "core/stray/x.h"', "core/stray/x.h lies in no declared layer"),
    ],
)
def test_a_wrong_include_is_refused_and_named(tmp_path, file, include, message):
    found = judge(tmp_path, {**CLEAN, file: "// one\n" + include + "\n"})
    assert len(found) == 1, found
    assert found[0].startswith(file + (":2: " if include else ": ")) and message in found[0]
