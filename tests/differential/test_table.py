"""Each row of the operator table is called, over dtypes and layouts, and compared with eager. A row without a call fails:
write one into EXPLICIT of fuzz/table.py. The whole matrix: `python -m fuzz.table [op ...]` in this folder."""

from __future__ import annotations

import pytest
import torch
from fuzz import runner, table
from fuzz.runner import Way

ROWS = [op for op in table.rows() if op not in table.WITHOUT_CALL]
SHARES = 6


def judge(programs, way):
    found = {}
    for first in range(0, len(programs), 60):
        found.update({first + k: d for k, d in runner.failures(programs[first : first + 60], way).items()})
    known = tuple(f"torch.ops.{op}(" for op in table.KNOWN)
    unknown = {k: d for k, d in found.items() if not programs[k].statements[0].text.startswith(known)}
    return "\n\n".join(f"{difference}\n{programs[k].snippet()}" for k, difference in unknown.items())


def test_every_row_has_a_call():
    assert len(ROWS) > 250
    missing = [op for op in ROWS if table.recipe_of(op) is None]
    assert not missing, f"no call is known of {missing}"


def test_calls_reach_their_rows():
    """The traced graph has the operator, so that its row is what lowers it."""
    programs = [table.recipe_of(op).program(torch.float32 if table.accepted(table.recipe_of(op)) else torch.int64, "contiguous") for op in ROWS[:: len(ROWS) // 60]]
    graph = runner.pallascope.trace(runner.together(programs), *[p.arguments() for p in programs]).graph(0)
    reached = {n["target"] for n in graph["nodes"]}
    absent = [op for op in ROWS[:: len(ROWS) // 60] if op not in reached]
    assert not absent, absent


@pytest.mark.parametrize("share", range(SHARES))
def test_rows_over_dtypes_and_layouts(share):
    assert not (wrong := judge([p for op in ROWS[share::SHARES] for p in table.matrix(op)], Way(numpy=True))), wrong


@pytest.mark.parametrize("share", range(3))
def test_rows_on_jax(share):
    assert not (wrong := judge([table.matrix(op)[0] for op in ROWS[share::3] if table.matrix(op)], Way())), wrong
