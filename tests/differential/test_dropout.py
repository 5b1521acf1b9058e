"""Dropout in training: PyTorch draws the noise in eager's order, a kernel does the rest; a seed gives eager's values."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from differential import pallascope, strides_of

CASES = {
    "one": lambda x: F.dropout(x, 0.5, True),
    "between": lambda x: F.dropout(x * 2, 0.3, True).neg(),
    "two": lambda x: F.dropout(F.dropout(x, 0.25, True), 0.5, True),
    "permuted": lambda x: F.dropout(x.t(), 0.3, True),
    "halves": lambda x: F.dropout(x.bfloat16(), 0.3, True),
    "with others": lambda x: (F.dropout(x, 0.5, True), torch.rand(3), F.dropout(x, 0.1, True), torch.randn_like(x)),
    "all or nothing": lambda x: (F.dropout(x, 0.0, True), F.dropout(x, 1.0, True), F.dropout(x, 0.5, False), torch.rand(2)),
    "native": lambda x: torch.ops.aten.native_dropout(x, 0.4, True),
}


@pytest.mark.parametrize("name", CASES)
def test_a_seed_gives_eagers_values(name):
    x = torch.randn(12, 9, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(3)
    want = torch.utils._pytree.tree_leaves(CASES[name](x))
    lowered = pallascope.lower(CASES[name], x)
    for mode in ("steady", "debug"):
        torch.manual_seed(3)
        got = torch.utils._pytree.tree_leaves(lowered.call(x, mode=mode))
        for g, w in zip(got, want, strict=True):
            assert torch.equal(g, w) and g.dtype == w.dtype and strides_of(g) == strides_of(w)
    if name in ("one", "between", "two", "permuted", "native"):
        assert set(lowered.log["torch"]) == {"aten.bernoulli.p"}


def test_training():
    def f(x):
        return F.dropout(F.dropout(x, 0.5, True) * 3, 0.25, True).sum(0)

    results = []
    pallascope.reset_log()
    for fn in (f, torch.compile(f, backend="pallascope", fullgraph=True)):
        x = torch.linspace(-1, 1, 60).reshape(12, 5).requires_grad_()
        torch.manual_seed(5)
        fn(x).pow(2).sum().backward()
        results.append(x.grad)
    torch.testing.assert_close(results[1], results[0], atol=1e-4, rtol=1e-4)  # sums in another order
    assert {op for entry in pallascope.compile_log() for op in entry["torch"]} == {"aten.bernoulli.p"}
