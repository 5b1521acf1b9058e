"""`check --buffers --picture` from the command line down to the host and back."""

import json
import subprocess

import pytest

from conftest import ROOT

APP = ROOT / "build" / "pallascope"

MODEL = """
import torch

def f(x, w):
    y = (x * 2).sin()
    s, i = y.mode(-1, keepdim=True)
    s = s + y
    z = (s @ w).relu() + 1
    z[0].mul_(3)
    c = z + z.mode(0, keepdim=True)[0]
    return torch.softmax(c, -1), i

def last(x):
    x.add_(1)
    return (x * 2).cumsum(0).mode(-1)[0]
"""


@pytest.fixture
def run(tmp_path):
    """The answers of a batch."""
    if not APP.exists():
        pytest.skip(f"not built yet: {APP} does not exist")
    (tmp_path / "m.py").write_text(MODEL)

    def batch(commands):
        done = subprocess.run(
            [APP, "-c", commands, "--json"], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    return batch


def test_every_kind_of_writer(run):
    *_, check, kernel = run("trace m.py:f f32[6,8] f32[8,5]; check --buffers --picture; check k0 --buffers")
    assert check["ok"], check
    result = check["result"]
    assert result["verdict"] == "passed" and result["first_divergence"] is None
    rows = {r["node_name"] + f"[{r['output']}]": r for r in result["buffers"]}
    assert list(rows) == ["sin[0]", "mode[0]", "mode[1]", "add[0]", "matmul[0]", "relu[0]", "mode_1[0]", "mode_1[1]", "softmax[0]"]
    assert all(
        r["verdict"] == "passed" and (r["kernel"] is None) != (r["call"] is None) for r in rows.values()
    )
    assert rows["mode[1]"]["variable"].startswith("r_") and rows["sin[0]"]["variable"].startswith("t_")
    assert rows["matmul[0]"]["call"] == "aten.matmul.default"
    # The write into a part of z is a value that the traced program has no name for.
    assert [s["why"] for s in result["buffers_skipped"]] == [
        "holds a value that only the functional graph has"
    ]
    figures = result["outputs"][0]["modes"]["steady"]
    assert len(figures["picture"]["cells"]) == 30 and figures["picture"]["axes"].startswith(
        "rows: axis 0 (6)"
    )
    assert (
        result["interpret"] is True and result["decision"] > 0 and result["torch"] and result["seconds"] > 0
    )
    # k0 writes no output of the graph, so what it writes is all there is to show.
    assert kernel["ok"] and [r["kernel"] for r in kernel["result"]["buffers"]] == ["k0"]
    assert kernel["result"]["outputs"] == []


def test_torch_calls_after_the_last_kernel(run):
    *_, check = run("trace m.py:last f32[6,8]; check --buffers")
    names = [r["node_name"] for r in check["result"]["buffers"]]
    assert names == ["add_", "cumsum", "mode", "mode"] and check["result"]["verdict"] == "passed"
    assert "picture" not in check["result"]["outputs"][0]["modes"]["debug"]


def test_every_decision_has_buffers(run):
    """Also a program that is lowered only so far, and one without fusion."""
    path = ROOT / "assets" / "examples" / "gpt2_block.pt2"
    for check in run(f"open {path}; goto d5; check --buffers; goto d30; check --buffers")[2::2]:
        assert check["ok"] and check["result"]["first_divergence"] is None, check
        assert len(check["result"]["buffers"]) > 10
