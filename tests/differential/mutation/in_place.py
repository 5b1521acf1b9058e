"""In-place operators of every family."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from . import CASES, case, ramp

UNARY = (
    "abs_ neg_ sin_ exp_ floor_ round_ frac_ sign_ erf_ reciprocal_ zero_ relu_ square_ sigmoid_ logical_not_ "
    "nan_to_num_ negative_ sinc_ conj_physical_"
).split()
for name in UNARY:
    CASES[f"unary {name}"] = (lambda x, name=name: getattr(x, name)() * 1, lambda: (ramp(3, 4),))

BINARY = {
    "add_": (2, 0.5), "sub_": (2, 0.5), "mul_": (0, 3), "div_": (2, 4), "floor_divide_": (2, 3), "remainder_": (2, 3),
    "fmod_": (2, 3), "pow_": (0, 2), "eq_": (0, 1), "ne_": (0, 1), "lt_": (2, 1), "le_": (0, 1), "gt_": (2, 1),
    "ge_": (0, 1), "copysign_": (2, -1.0), "clamp_min_": (0, 0.5), "clamp_max_": (0, 0.5), "true_divide_": (2, 4),
    "multiply_": (0, 3), "subtract_": (0, 3), "divide_": (2, 4), "greater_": (0, 1), "less_equal_": (2, 1),
    "not_equal_": (2, 1),
}
for name, (_, number) in BINARY.items():
    CASES[f"binary {name}"] = (
        lambda x, y, z, name=name, number=number: (getattr(x, name)(y), getattr(z, name)(number))[0] + 1,
        lambda: (ramp(3, 4), ramp(4).abs() + 1, ramp(3, 4)),
    )
for name in ("atan2_", "hypot_", "nextafter_", "logical_and_", "logical_or_", "logical_xor_", "arctan2_", "xlogy_"):
    CASES[f"binary {name}"] = (lambda x, y, name=name: getattr(x, name)(y) + 1, lambda: (ramp(3, 4), ramp(4).abs() + 1))
for name in ("bitwise_and_", "bitwise_or_", "bitwise_xor_", "bitwise_left_shift_", "bitwise_right_shift_", "gcd_", "lcm_",
             "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__", "floor_divide_", "remainder_", "add_", "mul_"):
    CASES[f"integers {name}"] = (
        lambda x, y, name=name: getattr(x, name)(y) + 1,
        lambda: (ramp(3, 4, dtype=torch.int32), ramp(4, dtype=torch.int32).abs() + 1),
    )


@case("integers bitwise_not_", lambda: (ramp(3, 4, dtype=torch.int64),))
def _(x): return x.bitwise_not_() + 1


@case("activations in place", lambda: tuple(ramp(3, 4) for _ in range(12)))
def _(*x):
    return [
        F.relu(x[0], inplace=True) + 1, F.leaky_relu(x[1], 0.1, inplace=True) + 1, F.elu(x[2], inplace=True) + 1,
        F.silu(x[3], inplace=True) + 1, F.hardswish(x[4], inplace=True) + 1, F.hardtanh(x[5], inplace=True) + 1,
        F.hardsigmoid(x[6], inplace=True) + 1, F.celu(x[7], inplace=True) + 1, F.selu(x[8], inplace=True) + 1,
        F.mish(x[9], inplace=True) + 1, F.threshold(x[10], 0.5, 2.0, inplace=True) + 1, F.relu6(x[11], inplace=True) + 1,
    ]


@case("dropouts in eval", lambda: (ramp(3, 4), ramp(2, 3, 4, 4)))
def _(x, y):
    a = F.dropout(x, 0.5, False, inplace=True).add_(1)
    return a * 2, F.dropout2d(y, 0.5, False).mul_(2) + 1


@case("clamps and ternaries", lambda: tuple(ramp(3, 4) for _ in range(6)))
def _(a, b, c, d, e, f):
    a.clamp_(-0.5, 0.5)
    b.clamp_(min=c)
    d.addcmul_(e, f, value=2)
    e.addcdiv_(d, f.abs() + 1)
    f.lerp_(a, 0.25)
    return a + b, d + e, f * 1


@case("lerp_ and clip_", lambda: (ramp(3, 4), ramp(3, 4), ramp(3, 4)))
def _(a, b, c):
    a.lerp_(b, c.sigmoid())
    b.clip_(0, 1)
    return a, b + 1


@case("matrix products in place", lambda: (ramp(3, 3), ramp(3, 4), ramp(4, 3), ramp(3), ramp(2, 3, 3), ramp(2, 3, 4), ramp(2, 4, 3), ramp(4)))
def _(m, a, b, v, bm, ba, bb, w):
    m.addmm_(a, b, beta=0.5, alpha=2)
    v.addmv_(a, w)
    bm.baddbmm_(ba, bb)
    return m + 1, v + 1, bm + 1


@case("addr_ and addbmm_", lambda: (ramp(3, 3), ramp(3), ramp(3), ramp(3, 3), ramp(2, 3, 4), ramp(2, 4, 3)))
def _(m, a, b, n, ba, bb):
    m.addr_(a, b)
    n.addbmm_(ba, bb)
    return m + 1, n + 1


@case("masked and indexed writes", lambda: (ramp(4, 5), ramp(4, 5), ramp(4, 5), ramp(4, 5), torch.tensor([0, 2]), ramp(2, 5), ramp(4, 5)))
def _(a, b, c, d, i, s, e):
    a.masked_fill_(a > 1, -7)
    b.index_fill_(0, i, 3.0)
    c.index_add_(0, i, s)
    d.index_copy_(0, i, s)
    e.masked_fill_(e < 0, torch.tensor(2.5))
    return a + 1, b + 1, c + 1, d + 1, e + 1


@case("index_put_", lambda: (ramp(4, 5), ramp(4, 5), ramp(4, 5), torch.tensor([0, 2, 0]), ramp(3, 5), ramp(4, 5)))
def _(a, b, c, i, s, d):
    a[i] = s.abs().amax()
    b.index_put_((i,), s, accumulate=True)
    c[:, i] = 2.0
    d[d > 1] = 0.0
    return a + 1, b + 1, c + 1, d + 1


@case("scatters", lambda: (ramp(4, 5), ramp(4, 5), ramp(4, 5), torch.tensor([[0, 1, 2, 3, 0]]), ramp(1, 5), ramp(4, 5)))
def _(a, b, c, i, s, d):
    a.scatter_(0, i, s)
    b.scatter_add_(0, i, s)
    c.scatter_(0, i, 9.0)
    d.scatter_reduce_(0, i, s, "amax")
    return a + 1, b + 1, c + 1, d + 1


@case("masked_scatter_ and put_", lambda: (ramp(4, 5), ramp(4, 5), torch.tensor([0, 7]), ramp(2), ramp(20)))
def _(a, b, i, s, v):
    a.masked_scatter_(a > 1, v)
    b.put_(i, s)
    return a + 1, b + 1


@case("scans and triangles", lambda: (ramp(4, 5), ramp(4, 5), ramp(4, 5), ramp(4, 5)))
def _(a, b, c, d):
    a.cumsum_(1)
    b.cumprod_(0)
    c.tril_()
    d.triu_(1)
    return a + 1, b + 1, c + 1, d + 1


@case("fill_diagonal_", lambda: (ramp(4, 5), ramp(7, 3), ramp(7, 3), ramp(3, 3, 3), ramp(5, 4).t()))
def _(a, b, c, d, e):
    a.fill_diagonal_(9)
    b.fill_diagonal_(9)
    c.fill_diagonal_(9, wrap=True)
    d.fill_diagonal_(9)
    e.fill_diagonal_(9)
    return a + 1, b + 1, c + 1, d + 1, e + 1


@case("random numbers keep their order", lambda: (ramp(4, 5), ramp(4, 5), ramp(4, 5), ramp(4, 5)))
def _(a, b, c, d):
    a.uniform_()
    b.normal_()
    c.bernoulli_(0.5)
    d.exponential_()
    return a + b, c + d


@case("foreach", lambda: (ramp(3), ramp(2, 2), ramp(3), ramp(2, 2)))
def _(a, b, c, d):
    torch._foreach_add_([a, b], [c, d], alpha=2)
    torch._foreach_mul_([a, b], 3.0)
    return a + 1, b + 1


@case("out variants", lambda: (ramp(3, 4), ramp(3, 4), torch.empty(3, 4), torch.empty(3), torch.empty(3, 4), torch.empty(3, 3), torch.empty(3, 4)))
def _(x, y, a, b, c, d, e):
    torch.add(x, y, out=a)
    torch.sum(x, 1, out=b)
    torch.sin(x, out=c)
    torch.mm(x, y.t(), out=d)
    torch.mul(x, 2, out=e)
    return a + 1, b + 1, c * 2


@case("out variants through views", lambda: (ramp(3, 4), torch.zeros(3, 8), torch.zeros(4, 3)))
def _(x, a, b):
    torch.exp(x, out=a[:, ::2])
    torch.mul(x, x, out=b.t())
    return a + 1, b + 1


@case("out with several results", lambda: (ramp(3, 4), torch.empty(3), torch.empty(3, dtype=torch.int64), torch.empty(3, 4), torch.empty(3)))
def _(x, v, i, m, q):
    torch.max(x, 1, out=(v, i))
    torch.clamp(x, 0, 1, out=m)
    torch.mean(x, 1, out=q)
    return v + 1, i + 1, m + 1, q + 1
