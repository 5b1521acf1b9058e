"""Values that eager refuses, and special values that pass through."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from modules import modes

import pallascope
from differential import DTYPES, compare, run, values
from pallascope.execute import load_module

# ------------------------------------------------------------------------------------------------- illegal values


def embedded(i, w):
    return F.embedding(i, w).sin()


def indexed(i, w):
    return w[i] + 1


def gathered(i, w):
    return w.gather(0, i[:, None].expand(3, 4)) * 2


def selected(i, w):
    return w.index_select(0, i) - 1


@modes
@pytest.mark.parametrize("function", [embedded, indexed, gathered, selected], ids=lambda f: f.__name__)
def test_an_index_out_of_range_raises(function, mode):
    w = torch.arange(20.0).reshape(5, 4)
    good = torch.tensor([0, 4, 2])
    lowered = pallascope.lower(function, good, w)
    assert not compare(lowered.call(good, w, mode=mode), function(good, w))
    for bad in (5, -6, 2**40, -(2**62)):
        with pytest.raises(IndexError) as caught:
            lowered.call(torch.tensor([0, bad, 2]), w, mode=mode)
        message = str(caught.value)
        assert "index out of range in" in message and f"{__file__}:{function.__code__.co_firstlineno + 1}" in message
        assert any(n["name"] in message for n in lowered.graph["nodes"])
    negative = torch.tensor([-1, -5, 2])
    if function is indexed:
        assert not compare(lowered.call(negative, w, mode=mode), function(negative, w))
    else:
        with pytest.raises(IndexError):
            lowered.call(negative, w, mode=mode)
    assert not compare(lowered.call(good, w, mode=mode), function(good, w)), "the process goes on"


@modes
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_index_dtypes(dtype, mode):
    w = torch.arange(20.0).reshape(5, 4)
    i = torch.tensor([[0, 4], [2, -1]], dtype=dtype)
    assert not (difference := run(lambda i, w: (w[i], w[:, i % 4], w[i, i % 4], F.embedding(i.abs(), w)), (i, w), (mode,))), difference


@modes
@pytest.mark.parametrize("divide", [torch.floor_divide, torch.remainder, torch.fmod,
                                    lambda a, b: torch.div(a, b, rounding_mode="trunc")])  # fmt: skip
def test_integer_division_by_zero_raises(divide, mode):
    a, b = torch.tensor([7, -7, 0]), torch.tensor([2, 3, -4])
    lowered = pallascope.lower(divide, a, b)
    assert not compare(lowered.call(a, b, mode=mode), divide(a, b))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        lowered.call(a, torch.tensor([2, 0, 1]), mode=mode)


@modes
def test_quotients_are_rounded_as_eager_rounds_them(mode):
    """XLA divides by what it broadcasts through the reciprocal: 49 / 49 is below 1 then."""
    x = torch.arange(1.0, 200.0)

    def f(x, y):
        return (x / 49).trunc(), torch.div(x[:, None], y, rounding_mode="trunc"), x / 3 == y / 3, (x[:, None] / y), torch.ones(49).mean()

    y = x.flip(0).clone()
    lowered = pallascope.lower(f, x, y)
    want = f(x, y)
    assert not (difference := compare(lowered.call(x, y, mode=mode), want, {"rtol": 0, "atol": 0})), difference
    broken = load_module(lowered.source.replace("return lax.optimization_barrier(jnp.broadcast_to(value, shape))", "return value"), "edges")
    assert compare(broken.call([x, y], mode), want, {"rtol": 0, "atol": 0})


@modes
def test_special_values_pass_through(mode):
    for dtype in DTYPES:
        x = values(dtype, 40)
        got = pallascope.lower(lambda t: (t.clone(), t.reshape(5, 8).t().contiguous()), x).call(x, mode=mode)
        view = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
        assert torch.equal(got[0].view(view), x.view(view)), dtype  # to the bit: -0.0 and NaN included
        assert torch.equal(got[1].view(view), x.reshape(5, 8).t().contiguous().view(view)), dtype
