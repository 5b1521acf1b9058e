"""Writes, views and aliases: arguments that are changed, results that share memory, the order of reads and writes.

The cases of the package `mutation` run in eager and compiled, through `pallascope.lower` and through torch.compile, in
both modes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import mutation.in_place
import mutation.results
import mutation.views  # noqa: F401
import pytest
import torch
import torch.nn.functional as F
from mutation import CASES, Maker, differences, ramp

from differential import compare, pallascope

# dynamo does not trace out= into a tensor with gaps.
NOT_COMPILED = ("out variants through views",)
# Debug mode compiles each kernel by itself; the operators of a kind differ in one line of a kernel.
PLAIN = tuple(n for n in CASES if n.startswith(("unary ", "binary ", "integers ")))


@pytest.mark.parametrize("source", ["lower", "compile"])
def test_agrees_with_eager(source: str) -> None:
    names = [n for n in CASES if not n.startswith("aliased")]
    if source == "compile":  # aot_autograd takes operators one by one to the twins that the other source has tried
        names = [n for n in names if n not in PLAIN and n not in NOT_COMPILED]
    found = []
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(0, len(names), 30):
            found += differences(names[k : k + 30], source, ("steady",))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("source", ["lower", "compile"])
def test_agrees_with_eager_in_debug(source: str) -> None:
    names = [n for n in CASES if n not in PLAIN and not n.startswith("aliased") and n not in NOT_COMPILED]
    # Half of them through each source: the module is the same text in both modes.
    names = names[::2] if source == "lower" else names[1::2]
    found = []
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(0, len(names), 30):
            found += differences(names[k : k + 30], source, ("debug",))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("mode", ["steady", "debug"])
def test_arguments_that_share_memory(mode: str) -> None:
    """torch.compile traces them as such."""
    found = []
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in CASES:
            if name.startswith("aliased"):
                found += differences([name], "compile", (mode,))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("aliased") and n not in ("aliased: read only", "aliased: disjoint halves")])
def test_a_lowered_graph_refuses_arguments_that_share_memory(name: str) -> None:
    function, make = CASES[name]
    lowered = pallascope.lower(function, *make())
    with pytest.raises(pallascope.PallascopeError, match="share memory") as caught:
        lowered.call(*make())
    assert caught.value.kind == "invalid_argument"


def test_a_lowered_graph_takes_arguments_that_do_not_meet() -> None:
    assert not differences(["aliased: read only"], "lower", ("steady",))
    assert not differences(["aliased: disjoint halves"], "lower", ("steady",))


# ---------------------------------------------------------------------------------------------------- refusals

def write_items(x):
    e = x.expand(4, 3)
    e[:, 1] = 2
    return e


RAISING: dict[str, tuple[Callable[..., Any], Maker, bool]] = {
    # name -> function, arguments, whether eager raises too
    "a write to an expanded tensor": (lambda x: x.expand(4, 3).add_(1), lambda: (ramp(1, 3),), True),
    "a write to an expanded argument": (lambda x: x.mul_(2), lambda: (ramp(1, 3).expand(4, 3),), True),
    "a write to overlapping windows": (lambda x: x.unfold(0, 3, 1).add_(1), lambda: (ramp(8),), False),
    "a float written to integers": (lambda x: x.add_(0.5), lambda: (ramp(3, dtype=torch.int32),), True),
    "sizes that do not broadcast": (lambda x, y: x.add_(y), lambda: (ramp(3), ramp(2, 3)), True),
    "resize_": (lambda x: (x + 1).resize_(2, 2), lambda: (ramp(3, 3),), False),
    "columns of an expanded tensor": (lambda x: x.expand(4, 3)[:, 1].fill_(2), lambda: (ramp(1, 3),), False),
    "an item of an expanded tensor": (write_items, lambda: (ramp(1, 3),), True),
}


@pytest.mark.parametrize("name", RAISING)
def test_refusals(name: str) -> None:
    function, make, eager_raises = RAISING[name]
    if eager_raises:
        with pytest.raises(RuntimeError):
            function(*make())
    with pytest.raises(Exception) as caught:
        pallascope.lower(function, *make()).call(*make())
    assert str(caught.value).strip()
    torch._dynamo.reset()
    with pytest.raises(Exception):
        torch.compile(function, backend="pallascope", fullgraph=True, dynamic=False)(*make())


def test_set_is_refused_by_name() -> None:
    with pytest.raises(pallascope.PallascopeError, match="set_") as caught:
        pallascope.lower(lambda x, y: (x + 1).set_(y), ramp(3, 3), ramp(2))
    assert caught.value.kind == "unsupported" and "test_mutation.py" in caught.value.where


def test_shapes_that_two_names_share_are_refused_where_the_trace_is_wrong() -> None:
    """Without training dropout gives back its argument; torch.export's trace has a copy, so one name's shape is wrong there."""

    def dropped(x):
        y = x + 1
        F.dropout(y, 0.5, False).unsqueeze_(0)
        return y * 2

    def of_the_input(x):
        return x.to(torch.float32).squeeze_() + 1

    for function, words in ((dropped, "another name too"), (of_the_input, "changes the shape of the input")):
        with pytest.raises(pallascope.PallascopeError, match=words) as caught:
            pallascope.lower(function, ramp(1, 3))
        assert caught.value.kind == "unsupported"


def test_gradients_through_writes() -> None:
    def f(x, w):
        y = x * w
        y[1:].mul_(2)
        y[:, 0] = w.sum()
        v = y.t()
        v.add_(x.t())
        return y.relu_() * 3, v[1]

    results = []
    for run in (f, torch.compile(f, backend="pallascope", fullgraph=True, dynamic=False)):
        x, w = (ramp(4, 5) / 3).requires_grad_(), (ramp(5) / 2).requires_grad_()
        a, b = run(x, w)
        (a.pow(2).sum() + b.sin().sum()).backward()
        results.append((a, b, x.grad, w.grad))
    assert not compare(results[1], results[0], {"rtol": 1e-5, "atol": 1e-5})


def test_running_statistics() -> None:
    def model():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.ReLU(inplace=True), torch.nn.BatchNorm1d(4, momentum=0.3)).train()

    mine, theirs = model(), model()
    compiled = torch.compile(mine, backend="pallascope", fullgraph=True, dynamic=False)
    for k in range(2):
        x = ramp(6, 4) + k
        with torch.no_grad():
            assert not compare(compiled(x), theirs(x), {"rtol": 1e-5, "atol": 1e-5})
    assert not compare(dict(mine.state_dict()), dict(theirs.state_dict()), {"rtol": 1e-5, "atol": 1e-5})
