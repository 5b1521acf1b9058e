"""Paths, the stand-in for the C++ extension, and the fixture for the real one."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BRIDGE = ROOT / "python_bridge"
EXTENSION = ROOT / "build" / "python"
for path in (str(EXTENSION), str(BRIDGE), str(Path(__file__).parent)):
    if path not in sys.path:
        sys.path.insert(0, path)

# A module as the code generator writes it, whose kernels are eager PyTorch: what the package does around a
# module can be tested without a lowering.
FAKE_SOURCE = """
import json
from pallascope.reference import run_graph

GRAPH = json.loads({graph!r})
INPUTS = [{{"name": i["name"], "kind": i["kind"], **i["tensor"]}} for i in GRAPH["inputs"]]
OUTPUTS = None


def reference(args):
    return run_graph(GRAPH, args).outputs


def call(args, mode="steady"):
    run = run_graph(GRAPH, args)
    for index in run.mutated:
        args[index].detach().copy_(run.args[index])
    return run.outputs
"""


def fake_source(graph: dict) -> str:
    return FAKE_SOURCE.format(graph=json.dumps(graph))


def fake_lower(program: str, graph_index: int, options: str) -> str:
    """Keeps the contract of `_pallascope_core.lower`. It refuses an operator `aten.erfinv.default`."""
    graph = json.loads(program)["graphs"][graph_index]
    for node in graph["nodes"]:
        if node["target"] == "aten.erfinv.default":
            return json.dumps(
                {
                    "ok": False,
                    "error": {
                        "kind": "unsupported",
                        "message": "aten.erfinv.default is not lowered",
                        "where": node["name"],
                        "remedy": "write it otherwise",
                    },
                }
            )
    return json.dumps(
        {
            "ok": True,
            "source": fake_source(graph),
            "nodes": len(graph["nodes"]),
            "kernels": 1,
            "library": ["aten.mm.default"],
            "torch": [],
            "decisions": 7,
            "lower_ms": 0.5,
            "schedule_ms": 0.25,
            "codegen_ms": 0.125,
            "read_ms": 0.0625,
            "bytes_moved": 64,
            "options": json.loads(options),
        }
    )


@pytest.fixture
def fake_core(monkeypatch):
    """`_pallascope_core` with eager kernels, and an empty compile log."""
    module = types.ModuleType("_pallascope_core")
    module.lower = fake_lower
    monkeypatch.setitem(sys.modules, "_pallascope_core", module)
    import torch

    import pallascope

    torch._dynamo.reset()
    pallascope.reset_log()
    yield module
    torch._dynamo.reset()


@pytest.fixture
def real_core():
    """The C++ extension. Before it was ever built there is nothing to test; after that a missing one is a
    failure."""
    if not EXTENSION.exists():
        pytest.skip(f"not built yet: {EXTENSION} does not exist")
    try:
        import _pallascope_core
    except ImportError as error:
        pytest.fail(f"{EXTENSION} exists and _pallascope_core cannot be imported: {error}")
    import torch

    import pallascope

    torch._dynamo.reset()
    pallascope.reset_log()
    yield _pallascope_core
    torch._dynamo.reset()
