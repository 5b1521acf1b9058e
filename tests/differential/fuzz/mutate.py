"""Statements that write: to values, to inputs, to views of both; the names that alias see the new numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .operators import scalar
from .structure import permutation, ranked, subscript

if TYPE_CHECKING:
    from .generate import Growing

Made = Any
UNARY = ["neg_()", "abs_()", "relu_()", "zero_()", "fill_(S)", "sin_()", "sigmoid_()", "add_(S)", "mul_(S)", "sub_(S)", "clamp_(min=0)", "square_()", "tanh_()",
         "div_(2)", "logical_not_()", "cumsum_(0)", "clamp_(-1, 1)", "exp_()", "add_(1)", "mul_(2)", "masked_fill_({0} > 0, S)", "t_()", "unsqueeze_(0)", "squeeze_()"]  # fmt: skip
BINARY = ["add_({1})", "mul_({1})", "sub_({1})", "copy_({1})", "copy_({1})", "add_({1}, alpha=2)", "div_({1}.abs() + 1)", "addcmul_({1}, {1})", "lt_({1})", "lerp_({1}, 0.5)",
          "copysign_({1})", "atan2_({1})", "masked_fill_({1} > 0, S)", "clamp_(max={1})"]  # fmt: skip


def place(g: Growing, name: str) -> str:
    """The value itself or a view of it, as text after the name."""
    x = g.tensor(name)
    kind = g.rng.random()
    if x.dim() == 0 or kind < 0.3:
        return ""
    if kind < 0.7:
        return subscript(g, x)
    if kind < 0.78:
        return f".select({g.rng.randrange(x.dim())}, 0)"
    if kind < 0.86:
        return f".permute({permutation(g, x.dim())})"
    if kind < 0.9 and x.dim() >= 2:
        return ".diagonal()" if g.chance(0.7) else ".mT" + subscript(g, x.mT)
    if kind < 0.94:
        return ".view(-1)[::2]"
    return g.rng.choice((".unsqueeze(0)", f".narrow({g.rng.randrange(x.dim())}, 0, 1)", ".flatten()[1:]", ".view(-1)", f".unbind({g.rng.randrange(x.dim())})[0]", ".chunk(2)[-1]"))


def overlaps(x: torch.Tensor) -> bool:
    """Whether elements may be one place in memory: writes to such have no order in eager either."""
    reach = 0
    for stride, size in sorted((s, n) for s, n in zip(x.stride(), x.shape) if n > 1):
        if stride <= reach:
            return True
        reach += (size - 1) * stride
    return False


def places(x: torch.Tensor) -> torch.Tensor:
    """Where in its storage each element lies."""
    count = x.untyped_storage().nbytes() // x.element_size()
    return torch.arange(count).as_strided(x.shape, x.stride(), x.storage_offset())


def races(written: torch.Tensor, read: torch.Tensor) -> bool:
    """Whether an element is written that another place reads: eager's order is then nobody's promise."""
    if written.untyped_storage().data_ptr() != read.untyped_storage().data_ptr() or not written.numel():
        return False
    if read.dtype != written.dtype:
        return True
    to = places(written)
    try:
        of = places(read).expand(written.shape)
    except RuntimeError:
        return True
    return bool((torch.isin(of, to) & (of != to)).any())


def writable(x: torch.Tensor) -> bool:
    return not overlaps(x)


def target(g: Growing) -> tuple[str, torch.Tensor, str]:
    """(name, the tensor that is written, its text)."""
    name = g.pick(writable)
    text = place(g, name)
    with torch.no_grad():
        try:
            return name, eval(f"x{text}", {"x": g.tensor(name)}), "{0}" + text
        except Exception:
            return name, g.tensor(name), "{0}"


def bind(g: Growing, text: str, reads: Any) -> Made:
    """Now and then the result of the in-place call is a name of its own; otherwise only the effect stays."""
    return (text, reads, 1) if g.chance(0.4) and "=" not in text.split("(")[0] else (text, reads, 0)


def alone(g: Growing) -> Made:
    name, _, text = target(g)
    return bind(g, f"{text}.{g.rng.choice(UNARY).replace('S', scalar(g))}", (name,))


def with_other(g: Growing) -> Made:
    name, written, text = target(g)
    source = [v for v in g.values if broadcasts(g.tensor(v), written)]
    other = g.rng.choice(source) if source and g.chance(0.8) else g.input(tuple(1 if g.chance(0.2) else n for n in written.shape))
    made = f"{text}.{g.rng.choice(BINARY).replace('S', scalar(g))}"
    if races(written, g.tensor(other)):
        made = made.replace("{1}", "{1}.clone()")
    return bind(g, made, (name, other))


def broadcasts(source: torch.Tensor, written: torch.Tensor) -> bool:
    try:
        return torch.broadcast_shapes(source.shape, written.shape) == written.shape
    except RuntimeError:
        return False


def assign(g: Growing) -> Made:
    name = g.pick(lambda t: ranked(t) and writable(t))
    x = g.tensor(name)
    where = subscript(g, x)
    if g.chance(0.3):
        return f"{{0}}{where} = {scalar(g)}", (name,), 0
    written = eval(f"x{where}", {"x": x})
    source = [v for v in g.values if broadcasts(g.tensor(v), written)]
    other = g.rng.choice(source) if source else g.input(tuple(written.shape))
    kind = g.rng.random()
    copy = ".clone()" if races(written, g.tensor(other)) else ""
    if kind < 0.6:
        return f"{{0}}{where} = {{1}}{copy}", (name, other), 0
    if kind < 0.8:
        return f"{{0}}{where} {g.rng.choice(('+', '*', '-'))}= {{1}}{copy}", (name, other), 0
    return f"{{0}}[{{0}} {g.rng.choice(('>', '<=', '=='))} {scalar(g)}] = {scalar(g)}", (name,), 0


def own_neighbour(g: Growing) -> Made:
    """A write that reads the same tensor through another view: shifts, swaps, its transpose."""
    name = g.pick(lambda t: ranked(t) and writable(t))
    x = g.tensor(name)
    choices = ["{0}[1:] = {0}[:-1].clone()", "{0}.copy_({0}.flip(0))", "{0}[0].add_({0}[-1])", "{0}[1:].mul_({0}[:1])", "{0}.add_({0}.sum(0))"]
    if x.dim() == 2 and x.shape[0] == x.shape[1]:
        choices += ["{0}.add_({0}.t().clone())", "{0}.copy_({0}.t() + 0)", "{0}.diagonal().add_({0}[0].clone())", "{0}.t().mul_({0}.clone())"]
    return g.rng.choice(choices), (name,), 0


def scatter(g: Growing) -> Made:
    name = g.pick(lambda t: ranked(t) and writable(t))
    x = g.tensor(name)
    d = g.rng.randrange(x.dim())
    extent = x.shape[d]
    kind = g.rng.randrange(7)
    if kind == 0:
        return f"{{0}}.index_fill_({d}, {{1}}, {scalar(g)})", (name, g.indices((2,), extent)), 0
    if kind == 1:
        sizes = tuple(x.shape[:d]) + (2,) + tuple(x.shape[d + 1 :])
        return f"{{0}}.index_add_({d}, {{1}}, {{2}})", (name, g.indices((2,), extent), g.input(sizes, x.dtype, "ties")), 0
    if kind == 2:
        sizes = tuple(min(n, 3) for n in x.shape)
        return f"{{0}}.scatter_add_({d}, {{1}}, {{2}})", (name, g.indices(sizes, extent), g.input(sizes, x.dtype, "ties")), 0
    if kind == 3:
        return f"{{0}}[{{1}}] {g.rng.choice(('=', '+='))} {scalar(g)}", (name, g.indices((2,), x.shape[0], True)), 0
    if kind == 4:
        return "{0}[{1}] = {0}[{2}]", (name, g.indices((1,), x.shape[0], True), g.indices((1,), x.shape[0])), 0
    if kind == 5:
        return "{0}.index_put_(({1},), {2}, accumulate=True)", (name, g.indices((3,), x.shape[0]), g.input((3, *x.shape[1:]), x.dtype, "ties")), 0
    sizes = tuple(1 if k == d else n for k, n in enumerate(x.shape))
    return f"{{0}}.scatter_({d}, {{1}}, {scalar(g)})", (name, g.indices(sizes, extent)), 0


TABLE = [(7, alone), (9, with_other), (6, assign), (2, own_neighbour), (3, scatter)]
