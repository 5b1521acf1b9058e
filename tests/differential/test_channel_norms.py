"""Batch, instance and group norm against eager: inference, training with its running statistics, and gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pallascope

SHAPES = {"4d": (4, 6, 5, 7), "square": (6, 6, 6), "rows": (8, 6), "one position": (3, 6, 1, 1)}


@pytest.fixture(autouse=True)
def fresh_dynamo():
    """Every case compiles anew: one function is not compiled for more than a few variants."""
    torch._dynamo.reset()
    pallascope.reset_log()


def lowered(fn, *args):
    """Results of the kernels and of eager, and what was left to PyTorch."""
    expected = fn(*args)
    result = pallascope.lower(fn, *args)
    got = result.call(*args)
    listed = lambda value: list(value) if isinstance(value, (tuple, list)) else [value]
    return listed(got), listed(expected), result.log["torch"]


def same(got, expected, **tolerance):
    assert len(got) == len(expected)
    for g, e in zip(got, expected):
        assert g.shape == e.shape and g.dtype == e.dtype
        torch.testing.assert_close(g, e, equal_nan=True, **tolerance)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_inference(name, dtype):
    torch.manual_seed(1)
    x = torch.randn(SHAPES[name]).to(dtype)
    mean, var, weight, bias = torch.randn(6), torch.rand(6) + 0.5, torch.randn(6), torch.randn(6)
    if dtype == torch.float64:
        mean, var, weight, bias = [t.double() for t in (mean, var, weight, bias)]
    fn = lambda x, m, v, w, b: (F.batch_norm(x, m, v, w, b), F.batch_norm(x, m, v))
    compiled = torch.compile(fn, backend="pallascope", dynamic=False, fullgraph=True)
    with torch.no_grad():
        same(compiled(x, mean, var, weight, bias), fn(x, mean, var, weight, bias))
    assert not pallascope.compile_log()[0]["torch"]


@pytest.mark.parametrize("name", ["4d", "square", "rows"])
def test_training_updates_the_running_statistics(name):
    torch.manual_seed(2)
    x = torch.randn(SHAPES[name]) * 3 + 1
    make = {4: nn.BatchNorm2d, 3: nn.BatchNorm1d, 2: nn.BatchNorm1d}[x.dim()]
    torch.manual_seed(3)
    eager, ours = make(6), make(6)
    ours.load_state_dict(eager.state_dict())
    compiled = torch.compile(ours, backend="pallascope", dynamic=False)
    a, b = [x.clone().requires_grad_() for _ in range(2)]
    for _ in range(2):
        expected, got = eager(a), compiled(b)
        expected.square().sum().backward()
        got.square().sum().backward()
    same([got], [expected])
    same([b.grad], [a.grad], rtol=1e-3, atol=1e-3)
    same([ours.weight.grad, ours.bias.grad], [eager.weight.grad, eager.bias.grad], rtol=1e-3, atol=1e-3)
    same([ours.running_mean, ours.running_var], [eager.running_mean, eager.running_var])
    assert not [op for entry in pallascope.compile_log() for op in entry["torch"]]


# A group of one element is left out: its variance is 0, and what eager gives there is its own rounding times 1/sqrt(eps).
@pytest.mark.parametrize("name", ["4d", "square"])
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_group_norm(name, groups):
    torch.manual_seed(4)
    x, weight, bias = torch.randn(SHAPES[name]) + 2, torch.randn(6), torch.randn(6)
    fn = lambda x, w, b: (F.group_norm(x, groups, w, b), F.group_norm(x, groups))
    got, expected, left = lowered(fn, x, weight, bias)
    same(got, expected)
    assert not left


def test_group_norm_of_a_permuted_square_input():
    torch.manual_seed(5)
    x = torch.randn(6, 6, 6).permute(2, 0, 1)
    got, expected, left = lowered(lambda x: F.group_norm(x, 2), x)
    same(got, expected)
    assert not left


@pytest.mark.parametrize("name", ["4d", "square"])
def test_instance_norm(name):
    torch.manual_seed(6)
    x = torch.randn(SHAPES[name])
    fn = lambda x: F.instance_norm(x)
    compiled = torch.compile(fn, backend="pallascope", dynamic=False, fullgraph=True)
    same([compiled(x)], [fn(x)])
    assert not pallascope.compile_log()[0]["torch"]


def test_group_norm_gradients():
    torch.manual_seed(7)
    eager, ours = nn.GroupNorm(3, 6), nn.GroupNorm(3, 6)
    ours.load_state_dict(eager.state_dict())
    x = torch.randn(SHAPES["4d"])
    a, b = [x.clone().requires_grad_() for _ in range(2)]
    eager(a).square().sum().backward()
    torch.compile(ours, backend="pallascope", dynamic=False)(b).square().sum().backward()
    same([b.grad, ours.weight.grad], [a.grad, eager.weight.grad], rtol=1e-3, atol=1e-3)
