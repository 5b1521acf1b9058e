"""Cases that must agree with eager and be kernels: one lowering answers both questions."""

from __future__ import annotations

import torch

import pallascope
from differential import Case, compare, failures, like


def assert_kernels(cases: list[Case], *words: str, allowed: tuple[str, ...] = ()) -> None:
    """Agreement with eager; no operator whose name has one of `words` is left to PyTorch (none at all without words)."""
    copies = [tuple(like(t) for t in c.args) for c in cases]
    with torch.no_grad():
        want = [c.function(*a) for c, a in zip(cases, copies)]
    try:
        lowered = pallascope.lower(lambda *groups: [c.function(*g) for c, g in zip(cases, groups)],
                                   *[tuple(like(t) for t in c.args) for c in cases])
        got = lowered.call(*[tuple(like(t) for t in c.args) for c in cases])
    except Exception:
        found = failures(cases)
        assert not found, "\n".join(found)
        raise
    found = [f"{c.name}: {d}" for c, g, w in zip(cases, got, want) if (d := compare(g, w, c.tolerance))]
    assert not found, f"{len(found)} of {len(cases)} cases differ:\n" + "\n".join(found)
    left = [op for op in lowered.log["torch"] if op not in allowed and (not words or any(w in op for w in words))]
    assert not left, f"left to PyTorch: {sorted(set(left))}"
