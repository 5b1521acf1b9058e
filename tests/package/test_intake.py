"""Graphs that make no sense, or hold what cannot be lowered: one diagnostic each, with the node and the model's line."""

from __future__ import annotations

import logging

import pytest
import torch

import pallascope
from pallascope import PallascopeError

pytestmark = pytest.mark.usefixtures("real_core")


def ones(*sizes, dtype=torch.float32):
    return torch.ones(sizes, dtype=dtype)


# name -> function, arguments, kind and words of the refusal
REFUSED = {
    "as_strided of a value": (
        lambda x: (x + 1).as_strided((4,), (1,), 18) + 1, (ones(20),), "storage_bounds", "reaches element 21 of a storage of 20"),
    "max of nothing": (lambda x: x.max(), (ones(0, 3),), "invalid_argument", "has no identity"),
    "min of an empty axis": (lambda x: x.min(0)[0], (ones(0, 3),), "invalid_argument", "has no identity"),
    "floor division by 0": (lambda x: x // 0, (torch.arange(6),), "invalid_argument", "divides integers by 0"),
    "remainder by 0": (lambda x: x % 0, (torch.arange(6),), "invalid_argument", "divides integers by 0"),
    "fmod by 0": (lambda x: torch.fmod(x, 0), (torch.arange(6),), "invalid_argument", "divides integers by 0"),
    "truncated division by 0": (
        lambda x: torch.div(x, 0, rounding_mode="trunc"), (torch.arange(6),), "invalid_argument", "divides integers by 0"),
    "a float8 that has no name here": (
        lambda x: x.to(torch.float8_e4m3fnuz), (ones(3),), "unknown_dtype", "float8_e4m3fnuz"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("source", ["lower", "compile"])
def test_refused(name, source):
    function, args, kind, words = REFUSED[name]
    with pytest.raises(PallascopeError) as caught:
        if source == "lower":
            pallascope.lower(function, *args)
        else:
            torch._dynamo.reset()
            torch.compile(function, backend="pallascope", fullgraph=True, dynamic=False)(*args)
    assert caught.value.kind == kind
    assert words in caught.value.message
    assert "test_intake.py:" in caught.value.where
    assert caught.value.remedy


# What eager raises for, whoever says it first: dynamo, export or the lowering.
RAISING = {
    "select": (lambda x: torch.select(x, 0, 9), (ones(3, 3),)),
    "narrow": (lambda x: torch.narrow(x, 0, 2, 5), (ones(3, 3),)),
    "unfold": (lambda x: x.unfold(0, 5, 1), (ones(3, 3),)),
    "amax": (lambda x: x.amax(0), (ones(0, 3),)),
    "argmax": (lambda x: x.argmax(0), (ones(0, 3),)),
    "negative size": (lambda x: torch.zeros(2, -3) + x, (ones(1),)),
    "overflowing size": (lambda x: x.expand(1 << 40, 1 << 40) + 1, (ones(1, 1),)),
    "strides and sizes": (lambda x: x.as_strided((2, 2), (1,)), (ones(20),)),
    "reshape": (lambda x: x.reshape(4, 2), (ones(3, 3),)),
    "broadcast": (lambda x, y: x + y, (ones(3), ones(4))),
}


@pytest.mark.parametrize("name", RAISING)
def test_raises_as_eager_does(name):
    logging.disable(logging.CRITICAL)  # torch logs what it is about to raise
    function, args = RAISING[name]
    try:
        with pytest.raises((RuntimeError, IndexError)):
            function(*args)
        with pytest.raises(PallascopeError) as caught:
            pallascope.lower(function, *args)
        assert "PyTorch refuses these arguments" in caught.value.remedy
        torch._dynamo.reset()
        with pytest.raises(Exception):
            torch.compile(function, backend="pallascope", fullgraph=True, dynamic=False)(*args)
    finally:
        logging.disable(logging.NOTSET)


def test_a_division_by_data_is_checked_when_it_runs():
    def quotient(x, y):
        return x // (y + 1) + 1

    def indexed(x, y):
        return x[y + 1] * 2

    lowered = pallascope.lower(quotient, torch.arange(4), torch.arange(4))
    assert lowered.call(torch.arange(4), torch.arange(4)).tolist() == [1, 1, 1, 1]
    with pytest.raises(RuntimeError, match=r"in floor_divide \(aten.floor_divide.default\), .*test_intake.py"):
        lowered.call(torch.arange(4), torch.tensor([0, -1, 2, 3]))
    lowered = pallascope.lower(indexed, torch.arange(4.0), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(IndexError, match=r"in index \(aten.index.Tensor\)"):
        lowered.call(torch.arange(4.0), torch.tensor([0, 1, 3]))


def test_a_view_outside_of_an_arguments_storage():
    """How large the storage of an argument is, only the call knows."""
    def f(x):
        return x.as_strided((10, 10), (10, 1)) + 1

    with pytest.raises(RuntimeError, match="out of bounds"):
        pallascope.lower(f, ones(20)).call(ones(20))
    torch._dynamo.reset()
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.compile(f, backend="pallascope", fullgraph=True, dynamic=False)(ones(20))


def test_layouts_that_are_not_dense():
    with pytest.raises(PallascopeError, match="sparse_coo") as caught:
        pallascope.lower(lambda x: x.to_dense(), torch.eye(3).to_sparse())
    assert caught.value.kind == "unsupported" and "dense" in caught.value.remedy
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    torch._dynamo.reset()
    with pytest.raises(PallascopeError, match="nested tensor"):
        torch.compile(lambda x: x * 2, backend="pallascope", fullgraph=True)(nested)


def test_dtypes_that_kernels_do_not_hold_are_calls_of_pytorch():
    z = torch.ones(3, 4, dtype=torch.complex64)
    lowered = pallascope.lower(lambda a, b: torch.slice_scatter(a, b, 0, 1, 2), z, z[:1] * 2)
    assert lowered.log["torch"] == ["aten.slice_scatter.default"]
    for x in (torch.ones(3, dtype=torch.complex64), torch.ones(3, dtype=torch.uint16)):
        lowered = pallascope.lower(lambda x: x * 2, x)
        assert lowered.log["torch"] == ["aten.mul.Tensor"]
        assert torch.equal(lowered.call(x), x * 2)


def test_symbolic_sizes():
    torch._dynamo.reset()
    with pytest.raises(PallascopeError) as caught:
        torch.compile(lambda x: x + 1, backend="pallascope", fullgraph=True, dynamic=True)(torch.ones(3, 4))
    assert caught.value.kind == "symbolic_size" and "dynamic=False" in caught.value.remedy


# ------------------------------------------------------------------------------------------------- operator table

FLOATS = ["f16", "bf16", "f32", "f64"]
INTEGERS = ["u8", "i8", "i16", "i32", "i64"]
CLAIMS = {
    # overload -> a call on a tensor of the dtype; the row's dtypes are those that PyTorch takes and that lower
    "aten.add.Tensor": lambda x: x + x,
    "aten.sin.default": lambda x: x.sin(),
    "aten.bitwise_and.Tensor": lambda x: x & x,
    "aten.bitwise_left_shift.Tensor": lambda x: torch.bitwise_left_shift(x, x),
    "aten.neg.default": lambda x: -x,
    "aten.copysign.Tensor": lambda x: torch.copysign(x, x),
    "aten.relu.default": lambda x: x.relu(),
    "aten.gelu.default": lambda x: torch.nn.functional.gelu(x),
    "aten.sum.dim_IntList": lambda x: x.sum(1),
    "aten.amax.default": lambda x: x.amax(1),
    "aten.argmax.default": lambda x: x.argmax(1),
    "aten.mean.dim": lambda x: x.mean(1),
    "aten.logsumexp.default": lambda x: x.logsumexp(1),
    "aten.softmax.int": lambda x: torch.ops.aten.softmax.int(x, 1),
    "aten.t.default": lambda x: x.t(),
    "aten.flip.default": lambda x: x.flip(0),
    "aten.cat.default": lambda x: torch.cat([x, x]),
    "aten.clone.default": lambda x: x.clone(),
    "aten.tril.default": lambda x: x.tril(),
    "aten.index_select.default": lambda x: x.index_select(0, torch.tensor([1, 0])),
    "aten.mm.default": lambda x: x.mm(x),
    "aten.linear.default": lambda x: torch.nn.functional.linear(x, x),
}


@pytest.mark.parametrize("op", CLAIMS)
def test_the_dtypes_of_a_row_are_true(op, real_core):
    (row,) = [r for r in real_core.operator_table() if r["op"] == op]
    taken = []
    for name in ["bool", *INTEGERS, *FLOATS, "c64"]:
        x = torch.tensor([[1, 2], [3, 1]]).to(pallascope.dtypes.torch_dtype(name))
        try:
            CLAIMS[op](x)
        except (RuntimeError, NotImplementedError):
            continue
        outcome = pallascope.lower(CLAIMS[op], x).log["torch"]
        if op not in outcome:
            taken.append(name)
    assert [d for d in row["dtypes"] if d in ["bool", *INTEGERS, *FLOATS, "c64"]] == taken


def test_the_table_holds_refusals_too(real_core):
    rows = {r["op"]: r for r in real_core.operator_table()}
    assert rows["aten.resize_"]["outcome"] == "unsupported" and rows["aten.resize_"]["why"]
    assert rows["aten.mm.default"]["outcome"] == "library" and rows["aten.t.default"]["outcome"] == "view"
    assert {r["outcome"] for r in rows.values()} <= {"kernel", "view", "library", "torch", "unsupported"}
