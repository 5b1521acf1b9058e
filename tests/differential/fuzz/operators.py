"""Statements that compute: pointwise, comparisons, casts, reductions, scans, normalisations, products.

An operator takes the growing program and gives the text of a call and the names that it reads; a third element is the
number of results. It raises NoChoice (through `pick`) where the program has no operand for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .program import NAMES

if TYPE_CHECKING:
    from .generate import Growing

Made = Any


def scalar(g: Growing) -> str:
    if g.chance(0.5):
        return str(g.rng.choice((0, 1, 2, 3, -1, -2, 5)))
    return str(g.rng.choice((0.5, -0.5, 1.5, 2.0, 0.1, -3.0, 1e-3, 0.7)))


UNARY = """torch.sin({0}) torch.cos({0}) torch.tanh({0}) torch.sigmoid({0}) torch.erf({0}) torch.neg({0}) torch.square({0})
torch.abs({0}) F.relu({0}) F.gelu({0}) F.silu({0}) torch.exp(-{0}.abs()) torch.log1p({0}.abs()) torch.sqrt({0}.abs()) torch.rsqrt({0}.abs()+1)
torch.reciprocal({0}.abs()+0.5) torch.sign({0}) torch.atan({0}) F.leaky_relu({0},0.1) F.hardtanh({0}) F.elu({0}) F.softplus({0})
torch.expm1({0}.clamp(max=2)) F.gelu({0},approximate="tanh") -{0} {0}*{0} {0}+{0} torch.nan_to_num({0}) F.logsigmoid({0}) F.hardswish({0})
torch.log({0}) torch.exp({0}) {0}.clamp(min=-1,max=1.5) {0}.clamp(min=0) F.threshold({0},0.5,2.0) torch.sinh({0}.clamp(-3,3)) torch.exp2(-{0}.abs())
torch.sgn({0}) torch.positive({0}) torch.special.expit({0}) torch.log2({0}.abs()+1) torch.asinh({0})""".split()
ROUNDERS = ["torch.floor({0})", "torch.ceil({0})", "torch.round({0})", "torch.trunc({0})", "torch.frac({0})", "torch.round({0},decimals=1)"]
PREDICATES = ["torch.isnan({0})", "torch.isfinite({0})", "torch.logical_not({0})", "{0}!=0", "{0}.bool()", "torch.signbit({0})", "torch.isinf({0})"]


def unary(g: Growing) -> Made:
    return g.rng.choice(UNARY), g.pick()


def rounder(g: Growing) -> Made:
    return g.rng.choice(ROUNDERS), g.pick()


def predicate(g: Growing) -> Made:
    return g.rng.choice(PREDICATES), g.pick()


BINARY = ["{0} + {1}", "{0} - {1}", "{0} * {1}", "torch.add({0}, {1}, alpha=2)", "torch.sub({0}, {1}, alpha=-1)", "torch.maximum({0}, {1})",
          "torch.minimum({0}, {1})", "{0} / ({1}.abs() + 1)", "torch.atan2({0}, {1})", "torch.hypot({0}, {1})", "torch.div({0}, {1})",
          "torch.fmax({0}, {1})", "torch.copysign({0}, {1})", "torch.rsub({0}, {1})", "torch.xlogy({0}, {1}.abs())", "torch.logaddexp({0}, {1})",
          "({0} - {1}) * ({0} - {1})"]  # fmt: skip
COMPARE = ["{0} < {1}", "{0} <= {1}", "{0} == {1}", "{0} != {1}", "{0} > {1}", "torch.ge({0}, {1})", "torch.logical_and({0}, {1})",
           "torch.logical_or({0}, {1})", "torch.logical_xor({0}, {1})"]  # fmt: skip
WITH_SCALAR = ["{0} + S", "S - {0}", "{0} * S", "{0} / 4", "torch.add({0}, S, alpha=2)", "S / ({0}.abs() + 1)", "torch.rsub({0}, S)",
               "{0} < S", "{0} == S", "{0} >= S", "torch.pow({0}, 2)", "torch.pow({0}.abs(), 0.5)", "torch.pow({0}, 3)", "torch.remainder({0}, 3)",
               "torch.fmod({0}, 3)", "torch.div({0}, 3, rounding_mode='floor')", "torch.div({0}, 2, rounding_mode='trunc')", "{0} // 2",
               "torch.clamp({0}, max=S)", "torch.pow(2, -{0}.abs())", "torch.float_power({0}.abs(), 2)", "{0} % 2.5", "torch.ldexp({0}, torch.ones_like({0}))",
               "torch.where({0} > S, {0}, S)", "torch.div(S, {0})", "torch.mul({0}, True)"]  # fmt: skip
INTEGER = ["{0} & {1}", "{0} | {1}", "{0} ^ {1}", "torch.bitwise_not({0})", "{0} << 2", "{0} >> 1", "{0} // {1}.clamp(min=1)", "torch.remainder({0}, {1}.clamp(min=1))",
           "torch.fmod({0}, {1}.abs().clamp(min=1))", "torch.bitwise_and({0}, 6)", "torch.gcd({0}, {1})"]  # fmt: skip


def binary(g: Growing) -> Made:
    a = g.pick()
    b = g.broadcastable(a)
    return g.rng.choice(BINARY), (a, b) if g.chance(0.6) else (b, a)


def compare(g: Growing) -> Made:
    a = g.pick()
    return g.rng.choice(COMPARE), (a, g.broadcastable(a))


def with_scalar(g: Growing) -> Made:
    return g.rng.choice(WITH_SCALAR).replace("S", scalar(g)), g.pick()


def integer(g: Growing) -> Made:
    whole = lambda t: not t.is_floating_point()  # noqa: E731
    a = g.pick(whole)
    text = g.rng.choice(INTEGER)
    if g.tensor(a).dtype == torch.bool and ("<<" in text or ">>" in text):
        return None  # PyTorch's own trace refuses what its kernel takes
    return text, (a, g.broadcastable(a, whole))


def choose(g: Growing) -> Made:
    condition = g.pick(lambda t: t.dtype == torch.bool)
    a = g.broadcastable(condition)
    kind = g.rng.randrange(4)
    if kind == 0:
        return "torch.where({0}, {1}, %s)" % scalar(g), (condition, a)
    if kind == 1:
        return "torch.where({0}, %s, {1})" % scalar(g), (condition, a)
    if kind == 2:
        return "{1}.masked_fill({0}, %s)" % scalar(g), (condition, a)
    return "torch.where({0}, {1}, {2})", (condition, a, g.broadcastable(a))


def ternary(g: Growing) -> Made:
    a = g.pick()
    b = g.broadcastable(a)
    c = g.broadcastable(a)
    text = g.rng.choice(("torch.addcmul({0}, {1}, {2}, value=2)", "torch.addcdiv({0}, {1}, {2}.abs() + 1)", "torch.lerp({0}, {1}, {2})", "torch.clamp({0}, {1}, {2})",
                         "torch.lerp({0}, {1}, 0.25)", "{0} * {1} + {2}", "torch.where({0} > {1}, {1}, {2})"))  # fmt: skip
    return text, (a, b, c)


def cast(g: Growing) -> Made:
    name = g.pick()
    to = g.dtype()
    whole = not to.is_floating_point and to != torch.bool
    if g.tensor(name).is_floating_point() and whole:
        return f"torch.nan_to_num({{0}}).clamp({0 if to == torch.uint8 else -100}, 100).to({NAMES[to]})", name
    if g.chance(0.15):
        return "{0}.type_as({1})" if not whole else "{0}.to(bool)", (name, g.floating())
    return g.rng.choice((f"{{0}}.to({NAMES[to]})", f"{{0}}.to({NAMES[to]})", f"{{0}}.to({NAMES[to]}, copy=True)", "{0}.float()", "{0}.bfloat16()", "{0}.double()")), name


def some_dims(g: Growing, name: str) -> str:
    rank = g.tensor(name).dim()
    dims = [d - (rank if g.chance(0.3) else 0) for d in range(rank) if g.chance(0.5)]
    g.rng.shuffle(dims)
    if not dims:
        return "()" if rank == 0 else str(g.dim(name))
    return str(tuple(dims)) if len(dims) > 1 or g.chance(0.5) else str(dims[0])


def reduction(g: Growing) -> Made:
    name = g.pick()
    keep = g.rng.choice(("", ", keepdim=True"))
    if g.chance(0.2):
        return g.rng.choice(("{0}.sum()", "{0}.amax()", "{0}.max()", "{0}.argmax()", "{0}.any()", "{0}.float().mean()", "{0}.min()", "{0}.all()", "{0}.prod()")), name
    dims = some_dims(g, name)
    text = g.rng.choice(("sum", "sum", "sum", "mean", "mean", "amax", "amin", "any", "all", "sum_dtype", "norm", "logsumexp", "count_nonzero", "nansum"))
    if text == "sum_dtype":
        return f"{{0}}.sum({dims}{keep}, dtype={NAMES[g.float_dtype()]})", name
    if text == "norm":
        return f"torch.linalg.vector_norm({{0}}, {g.rng.choice((1, 2, 2, 'inf', 3))}, {dims}{keep})", name
    if text == "mean":
        name = g.floating()
        return f"{{0}}.mean({some_dims(g, name)}{keep})", name
    if text == "count_nonzero":
        return f"torch.count_nonzero({{0}}, {dims})", name
    if text == "logsumexp":
        return f"torch.logsumexp({{0}}, {dims}{keep})", name
    if text in ("any", "all"):
        return f"{{0}}.{text}({g.dim(name)}{keep})", name
    return f"{{0}}.{text}({dims}{keep})", name


def arg_reduction(g: Growing) -> Made:
    name = g.pick(lambda t: t.dim() > 0)
    d, keep = g.dim(name), g.rng.choice(("", ", keepdim=True"))
    text = g.rng.choice(("argmax", "argmin", "max", "min", "prod", "values"))
    if text == "values":
        return f"{{0}}.{g.rng.choice(('max', 'min'))}({d}{keep})[0]", name
    if text in ("max", "min"):
        return f"torch.{text}({{0}}, {d}{keep})", name, 2
    return f"{{0}}.{text}({d}{keep})", name


def variance(g: Growing) -> Made:
    name = g.floating()
    dims, keep = some_dims(g, name), g.rng.choice(("", ", keepdim=True"))
    finite = bool(g.tensor(name).isfinite().all())  # else PyTorch's mean depends on the order in which it adds
    text = g.rng.choice(("{0}.var(D, correction=C", "{0}.std(D, correction=C", "torch.var_mean({0}, D, correction=C", "torch.std_mean({0}, D, correction=C"))
    made = text.replace("D", dims).replace("C", str(g.rng.choice((0, 1)))) + keep + ")"
    if "_mean" in text:
        return (made, name, 2) if finite else None
    return made, name


def normalisation(g: Growing) -> Made:
    name = g.floating()
    x = g.tensor(name)
    kind = g.rng.randrange(7)
    if kind < 3:
        return g.rng.choice((f"torch.softmax({{0}}, {g.dim(name)})", f"F.log_softmax({{0}}, {g.dim(name)})", f"torch.softmax({{0}}, {g.dim(name)}, dtype=f32)")), name
    if x.dim() == 0:
        return None
    if kind < 5:
        last = x.dim() - g.rng.randrange(1, min(x.dim(), 2) + 1)
        shape = tuple(x.shape[last:])
        if g.chance(0.5):
            return f"F.layer_norm({{0}}, {shape})", name
        return f"F.layer_norm({{0}}, {shape}, {{1}}, {{2}})", (name, g.input(shape, x.dtype, "normal"), g.input(shape, x.dtype, "normal"))
    if kind == 5:
        return f"F.normalize({{0}}, dim={g.dim(name)})", name
    return f"F.rms_norm({{0}}, ({x.shape[-1]},))", name


def scan(g: Growing) -> Made:
    name = g.pick(lambda t: t.dim() > 0)
    d = g.dim(name)
    return g.rng.choice((f"{{0}}.cumsum({d})", f"torch.cumsum({{0}}, {d}, dtype=f32)", f"{{0}}.cumprod({d})", f"torch.cummax({{0}}, {d})[0]", f"torch.diff({{0}}, dim={d})",
                         f"torch.logcumsumexp({{0}}, {d})", f"torch.cummin({{0}}, {d})[1]")), name  # fmt: skip


def product(g: Growing) -> Made:
    name = g.pick(lambda t: t.dim() in (1, 2, 3, 4) and t.dtype != torch.bool)
    x = g.tensor(name)
    k = x.shape[-1]
    fits = lambda t: t.dtype == x.dtype and t.dim() >= 1  # noqa: E731

    def other(sizes: tuple[int, ...]) -> str:
        try:
            if g.chance(0.5):
                return g.pick(lambda t: fits(t) and tuple(t.shape) == sizes)
        except Exception:
            pass
        return g.input(sizes, x.dtype)

    n = g.rng.choice((*g.favourites, 1, 7))
    kind = g.rng.randrange(9)
    if kind == 0 and x.dim() >= 2:
        return "{0} @ {0}.mT", name
    if kind == 1 and x.dim() >= 2:
        return "torch.matmul({0}.transpose(-1, -2), {0})", name
    if kind == 2:
        return "{0} @ {1}", (name, other((k, n)))
    if kind == 3:
        return "F.linear({0}, {1})", (name, other((n, k)))
    if kind == 4:
        return "F.linear({0}, {1}, {2})", (name, other((n, k)), other((n,)))
    if kind == 5:
        return "{0} @ {1}", (name, other((k,)))
    if kind == 6 and x.dim() == 3:
        return "torch.bmm({0}, {1})", (name, other((x.shape[0], k, n)))
    if kind == 7 and x.dim() == 2:
        return "torch.addmm({2}, {0}, {1})", (name, other((k, n)), other((n,)))
    if kind == 8 and x.dim() == 2:
        return g.rng.choice(("torch.einsum('ij,kj->ik', {0}, {0})", "torch.einsum('ij,ik->jk', {0}, {0})", "torch.einsum('ij,kl->il', {0}, {0})", "torch.einsum('ii->i', {0})")), name
    return "{0} @ {1}", (name, other((k, n)))


TABLE = [
    (14, unary), (2, rounder), (3, predicate), (16, binary), (5, compare), (9, with_scalar), (3, integer), (5, choose), (3, ternary), (5, cast),
    (9, reduction), (4, arg_reduction), (2, variance), (5, normalisation), (2, scan), (4, product),
]  # fmt: skip
