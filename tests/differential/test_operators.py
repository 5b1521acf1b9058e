"""Every lowered operator against eager, over dtypes, layouts and special values. Strides are compared too."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from differential import DTYPES, FLOATS, INTEGERS, Case, assert_agree, layouts, plain, values

f32, f64, bf16, f16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
i64, i32, i16, i8, u8, b8 = torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool


def by_dtype(*dtypes):
    return pytest.mark.parametrize("dtype", dtypes, ids=lambda d: str(d).removeprefix("torch."))


def without(table, names):
    assert set(names) <= set(table)
    return {k: v for k, v in table.items() if k not in names}


def cases_of(table, *args, **tolerances):
    return [Case(name, fn, args, tolerances.get(name, {})) for name, fn in table.items()]


# What XLA's functions miss of assert_close's defaults (FIELD.md, "XLA on a CPU against eager").
XLA_F32 = dict.fromkeys(("sinh", "cosh", "exp2"), {"rtol": 1e-5, "atol": 1e-5})

FLOAT_UNARY = {
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": torch.asin, "acos": torch.acos,
    "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh, "asinh": torch.asinh,
    "acosh": torch.acosh, "atanh": torch.atanh, "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1,
    "log": torch.log, "log2": torch.log2, "log10": torch.log10, "log1p": torch.log1p, "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt, "erf": torch.erf, "erfc": torch.erfc, "erfinv": torch.erfinv,
    "lgamma": torch.lgamma, "digamma": torch.digamma, "sigmoid": torch.sigmoid, "reciprocal": torch.reciprocal,
    "true_div": lambda x: x / 3, "mean": lambda x: x.double().mean(),
}  # fmt: skip
KEEPING = {
    "neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "sgn": torch.sgn, "square": torch.square,
    "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc, "round": torch.round,
    "relu": torch.relu, "pow2": lambda x: x**2, "pow3": lambda x: x**3, "pow1": lambda x: x**1, "pow0": lambda x: x**0,
    "rsub": lambda x: 1 - x, "clamp": lambda x: x.clamp(1, 5), "clamp_min": lambda x: x.clamp_min(2),
    "clamp_max": lambda x: x.clamp_max(2), "floor_divide": lambda x: x // 3, "remainder": lambda x: x % 3,
    "fmod": lambda x: torch.fmod(x, 3), "div_trunc": lambda x: torch.div(x, 3, rounding_mode="trunc"),
    "sub_scalar": lambda x: x - 2,
}  # fmt: skip
ANY_UNARY = {
    "isnan": torch.isnan, "isinf": torch.isinf, "isfinite": torch.isfinite, "logical_not": torch.logical_not,
    "clone": torch.clone, "contiguous": lambda x: x.contiguous() + 0, "zeros_like": torch.zeros_like,
    "ones_like": torch.ones_like, "full_like": lambda x: torch.full_like(x, 3), "add1": lambda x: x + 1,
    "mul3": lambda x: x * 3, "eq1": lambda x: x == 1, "ne1": lambda x: x != 1, "lt0": lambda x: x < 0, "le0": lambda x: x <= 0,
    "gt0": lambda x: x > 0, "ge0": lambda x: x >= 0, "where": lambda x: torch.where(x > 2, x, 1),
    "masked_fill": lambda x: x.masked_fill(x > 2, 1), "to_bool": lambda x: x.to(b8), "new_full": lambda x: x.new_full((2, 3), 1),
    "eq_half": lambda x: x == 0.5, "add_half": lambda x: x + 0.5, "mul_half": lambda x: x * 0.7,
}  # fmt: skip
ACTIVATIONS = {
    "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "relu6": F.relu6,
    "hardtanh": F.hardtanh, "silu": F.silu, "leaky_relu": F.leaky_relu, "elu": F.elu, "softplus": F.softplus,
    "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "log_sigmoid": F.logsigmoid, "frac": torch.frac,
    "pow_half": lambda x: x**0.5, "pow_neg_half": lambda x: x**-0.5, "pow_neg1": lambda x: x**-1,
    "pow_neg2": lambda x: x**-2, "pow_1_7": lambda x: x.abs() ** 1.7, "scalar_pow": lambda x: 2.5**x.clamp(-9, 9),
    "sub_alpha": lambda x: torch.sub(x, x.cos(), alpha=2.5), "rsub_alpha": lambda x: torch.rsub(x, 2.5, alpha=3),
    "lerp": lambda x: torch.lerp(x, x + 1, 0.3), "addcmul": lambda x: torch.addcmul(x, x, x, value=0.3),
    "addcdiv": lambda x: torch.addcdiv(x, x, x + 3, value=0.3), "sigmoid_gate": lambda x: x * torch.sigmoid(x),
}  # fmt: skip
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum, "minimum": torch.minimum,
    "eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
    "logical_and": torch.logical_and, "logical_or": torch.logical_or, "logical_xor": torch.logical_xor,
    "add_alpha": lambda a, b: torch.add(a, b, alpha=2), "where": lambda a, b: torch.where(a > b, a, b),
    "div": torch.div, "atan2": torch.atan2,
}  # fmt: skip
DIVISIONS = {
    "floor_divide": torch.floor_divide, "remainder": torch.remainder, "fmod": torch.fmod,
    "div_floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "div_trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
}  # fmt: skip
FLOAT_BINARY = {
    "pow": torch.pow, "hypot": torch.hypot, "copysign": torch.copysign,
    "lerp": lambda a, b: torch.lerp(a, b, b), "clamp_tensor": lambda a, b: a.clamp(b, b + 1),
    "clamp_min_tensor": lambda a, b: a.clamp_min(b), "clamp_max_tensor": lambda a, b: a.clamp_max(b),
    "addcmul": lambda a, b: torch.addcmul(a, a, b), "addcdiv": lambda a, b: torch.addcdiv(a, a, b),
}  # fmt: skip
BITWISE = {
    "and": torch.bitwise_and, "or": torch.bitwise_or, "xor": torch.bitwise_xor,
    "not": lambda a, b: torch.bitwise_not(a), "and_scalar": lambda a, b: a & 1,
    "or_scalar": lambda a, b: a | 1, "xor_scalar": lambda a, b: a ^ 1,
}  # fmt: skip


@by_dtype(*FLOATS)
def test_float_unary(dtype):
    x = values(dtype, 48).reshape(6, 8)
    finite = x[x.abs() > 0].reshape(-1)
    table = without(FLOAT_UNARY, ["digamma"])
    # digamma(0) is -inf in eager and NaN in XLA.
    assert_agree(cases_of(table, x, **XLA_F32) + [Case("digamma", torch.digamma, (finite,))])


@by_dtype(i64, i32, u8, b8)
def test_float_unary_of_integers(dtype):
    x = plain(dtype, 6, 8)
    assert_agree(cases_of(without(FLOAT_UNARY, ["digamma"]), x, **XLA_F32))


@by_dtype(*DTYPES)
def test_any_unary(dtype):
    assert_agree(cases_of(ANY_UNARY, values(dtype, 48).reshape(6, 8)))


@by_dtype(*FLOATS, *INTEGERS)
def test_keeping_unary(dtype):
    assert_agree(cases_of(KEEPING, values(dtype, 48).reshape(6, 8)))


@by_dtype(*FLOATS)
def test_activations(dtype):
    x = plain(dtype, 6, 8) * 3
    special = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 3.0, -3.0, 6.0, 20.0, 21.0], dtype=dtype)
    # Eager's gelu of an infinity is NaN, by the library that it calls for f32.
    finite = torch.cat([x.reshape(-1), special[special.isfinite()]])
    table = without(ACTIVATIONS, ["gelu", "gelu_tanh"])
    wide = {}
    if dtype == f16:
        # Eager's f16 pow has no square root of its own: pow(-inf, 0.5) is inf; its add with an alpha is fused.
        table = without(table, ["pow_half", "pow_neg_half"])
        wide = dict.fromkeys(("sub_alpha", "rsub_alpha"), {"atol": 2e-3, "rtol": 1e-3})
    assert_agree(cases_of(table, torch.cat([x.reshape(-1), special]), **wide) + [Case(k, ACTIVATIONS[k], (finite,)) for k in ("gelu", "gelu_tanh")])


@by_dtype(*DTYPES)
def test_binary(dtype):
    a, b = values(dtype, 24, 1), values(dtype, 24, 2)
    cases = cases_of(without(BINARY, ["add_alpha", "sub"] if dtype == b8 else ["add_alpha"]), a.reshape(24, 1), b)
    if dtype.is_floating_point:
        # Eager's add with an alpha is one fused multiply-add: beyond the largest number they differ.
        a, b = (torch.where(t.isfinite() & (t.abs() > 1e4), t.sign(), t) for t in (a, b))
    if dtype != b8:
        cases.append(Case("add_alpha", BINARY["add_alpha"], (a.reshape(24, 1), b)))
    assert_agree(cases)


@by_dtype(*FLOATS, *INTEGERS)
def test_divisions(dtype):
    a, b = values(dtype, 24, 1), values(dtype, 24, 2)
    if not dtype.is_floating_point:
        # ATen itself crashes on INT_MIN / -1; division by zero raises (test_illegal_values.py).
        a, b = a[a != torch.iinfo(dtype).min], b[b != 0]
    if dtype.is_floating_point:
        # Quotients beyond 1/eps are rounding of the remainder alone.
        a, b = (torch.where(t.isfinite() & (t.abs() > 1e4), t.sign() * 9, t) for t in (a, b))
    assert_agree(cases_of(DIVISIONS, a.reshape(-1, 1), b))


@by_dtype(*FLOATS)
def test_float_binary(dtype):
    a, b = values(dtype, 24, 1), values(dtype, 24, 2)
    assert_agree(cases_of(FLOAT_BINARY, a.reshape(24, 1), b))


@by_dtype(*INTEGERS, b8)
def test_bitwise(dtype):
    a, b = values(dtype, 24, 1), values(dtype, 24, 2)
    cases = cases_of(BITWISE, a.reshape(24, 1), b)
    if dtype != b8:
        bits = torch.iinfo(dtype).bits
        by = torch.arange(bits - 1).to(dtype)
        cases += [
            Case("left_shift", torch.bitwise_left_shift, (a.reshape(24, 1), by)),
            Case("right_shift", torch.bitwise_right_shift, (a.reshape(24, 1), by)),
            Case("left_shift_scalar", lambda x: x << 2, (a,)),
            Case("right_shift_scalar", lambda x: x >> 2, (a,)),
            Case("integer_pow", torch.pow, (plain(dtype, 9, 1), torch.arange(3).to(dtype))),
        ]
    assert_agree(cases)


def test_promotion():
    """Every pair of dtypes, tensor with tensor, tensor with rank 0, tensor with number."""
    cases = []
    for a in DTYPES:
        x = plain(a, 3)
        for b in DTYPES:
            y, scalar = plain(b, 3, seed=1), plain(b, seed=2)
            cases.append(Case(f"{a} + {b}", torch.add, (x, y)))
            cases.append(Case(f"{a} * rank 0 {b}", torch.mul, (x, scalar)))
            cases.append(Case(f"{a} < rank 0 {b}", torch.lt, (x, scalar)))
        cases += [Case(f"{a} {n}", f, (x,)) for n, f in {"+ 2.5": lambda t: t + 2.5, "* 2": lambda t: t * 2, "/ 2": lambda t: t / 2,
                                                     "+ True": lambda t: t + True, "== 1.5": lambda t: t == 1.5}.items()]
    assert_agree(cases)


@pytest.mark.parametrize("target", DTYPES, ids=str)
def test_casts(target):
    cases = []
    for source in DTYPES:
        x = values(source, 32)
        if source.is_floating_point and not target.is_floating_point:
            # What is beyond the target's range has no value of its own (C++'s rule).
            x = torch.where(x.isfinite() & (x.abs() < 100), x, 1).abs() if target == u8 else torch.where(x.isfinite() & (x.abs() < 100), x, 1)
        cases.append(Case(f"{source} to {target}", lambda t: t.to(target), (x,)))
    assert_agree(cases)


LAYOUT_OPERATORS = {
    "neg": lambda x, y: ~x if x.dtype == b8 else -x, "outer": lambda x, y: y * x + x, "clone": lambda x, y: x.clone(),
    "cat": lambda x, y: torch.cat([x.reshape(-1), x.t().reshape(-1) if x.dim() == 2 else x.reshape(-1)]),
    "sum_first": lambda x, y: x.sum(0), "sum_last": lambda x, y: x.sum(-1, keepdim=True), "amax": lambda x, y: x.amax(),
}  # fmt: skip
REDUCING = ("sum_first", "sum_last", "amax")


@by_dtype(*DTYPES)
def test_layouts(dtype):
    cases = []
    for name, x in layouts(lambda n: plain(dtype, n)).items():
        table = LAYOUT_OPERATORS if dtype in (f32, i64, b8) else without(LAYOUT_OPERATORS, REDUCING)
        if name == "size_one_odd_stride" and dtype in (f16, bf16):
            # Torch's fake tensors, and so the graph, state other strides than eager's for extents of 1.
            table = without(table, ["neg", "outer"])
        if x.numel() == 0 and "amax" in table:
            table = without(table, ["amax"])
        cases += [Case(f"{k} {name}", f, (x, plain(dtype, seed=3))) for k, f in table.items()]
    assert_agree(cases)


def test_layouts_against_layouts():
    """Each pair of layouts of one square matrix, data that encodes its own index."""
    base = torch.arange(36.0).reshape(6, 6)
    wide = torch.arange(144.0).reshape(12, 12)
    same = {
        "contiguous": base, "transposed": base.t(), "step": wide[::2, ::2], "step_transposed": wide[1::2, ::2].t(),
        "row": torch.arange(6.0).expand(6, 6), "column": torch.arange(6.0).reshape(6, 1).expand(6, 6),
        "offset": wide[3:9, 4:10], "one": torch.tensor(3.0).expand(6, 6),
    }  # fmt: skip
    cases = [
        Case(f"{a} {b}", lambda x, y: (x * 100 + y, ((x - y).sum(0) + x).t()), (x, y))
        for a, x in same.items() for b, y in same.items()
    ]  # fmt: skip
    assert_agree(cases)


VIEWS = {
    "t": lambda x: x.transpose(0, 1), "permute": lambda x: x.permute(2, 0, 1), "view": lambda x: x.reshape(4, 12),
    "flatten": lambda x: x.flatten(1), "unflatten": lambda x: x.unflatten(2, (2, 2)), "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x[:, :1].squeeze(1), "squeeze_all": lambda x: x[:1, :1].squeeze(), "slice": lambda x: x[1:3, ::2],
    "slice_negative": lambda x: x[-3:-1, :, 1:], "select": lambda x: x.select(1, -1), "narrow": lambda x: x.narrow(2, 1, 2),
    "expand": lambda x: x[:, :, :1].expand(4, 3, 5), "diagonal": lambda x: x.diagonal(0, 0, 2), "diagonal_offset": lambda x: x.diagonal(1, 0, 2),
    "diagonal_below": lambda x: x.diagonal(-2, 0, 2), "unfold": lambda x: x.unfold(2, 2, 1), "unfold_step": lambda x: x.unfold(0, 2, 2),
    "flip": lambda x: x.flip(0, 2), "split": lambda x: torch.split(x, 3, 0), "split_sizes": lambda x: torch.split(x, [1, 3], 0),
    "chunk": lambda x: x.chunk(3, 2), "unbind": lambda x: x.unbind(1), "movedim": lambda x: x.movedim(0, 2), "mT": lambda x: x.mT,
    "swapaxes": lambda x: x.swapaxes(0, 2), "numpy_T": lambda x: x.permute(2, 1, 0), "view_as": lambda x: x.view_as(x.clone()),
    "step_of_step": lambda x: x[::2][:, 1:][..., ::3], "transposed_view": lambda x: x.transpose(0, 1).reshape(3, 16),
    "roll": lambda x: torch.cat([x[1:], x[:1]]), "repeat": lambda x: x.repeat(2, 1, 3), "ravel": lambda x: x.transpose(1, 2).ravel(),
    "select_flip": lambda x: x.flip(1)[:, 0], "flip_slice": lambda x: x[1:3].flip(0), "as_strided": lambda x: x.as_strided((3, 2), (4, 1), 2),
}  # fmt: skip


@pytest.mark.parametrize("after", ["value", "sum", "both"])
def test_views(after):
    x = torch.arange(48.0).reshape(4, 3, 4)
    finish = {
        "value": lambda v: v * 2, "sum": lambda v: v.sum(0), "both": lambda v: (v.sin() + 1, v.sum(-1, keepdim=True) - v),
    }[after]  # fmt: skip
    cases = []
    for name, view in VIEWS.items():
        for where, make in {"input": lambda t: t, "value": lambda t: t + 1, "reduction": lambda t: t - t.mean(0)}.items():
            if name == "as_strided" and where != "input":
                continue

            def f(t, view=view, make=make):
                found = view(make(t))
                return [finish(v) for v in found] if isinstance(found, tuple) else finish(found)

            cases.append(Case(f"{name} of {where}", f, (x,)))
    assert_agree(cases)


def test_views_as_results():
    """A view that is returned has eager's strides."""
    x = torch.arange(48.0).reshape(4, 3, 4)
    cases = [Case(n, lambda t, v=v: v(t.sin()), (x,)) for n, v in VIEWS.items() if n != "as_strided"]
    cases += [Case(f"{n} of the input", v, (x,)) for n, v in VIEWS.items()]
    assert_agree(cases, ("steady", "debug"))


def test_views_of_views():
    square = torch.arange(64.0).reshape(8, 8)
    chains = {
        "t_slice_t": lambda x: x.t()[::2].t()[1:], "slices": lambda x: x[::2][:, 1::3][1:], "flip_t_slice": lambda x: x.flip(0).t()[:, ::2],
        "reshape_permute_reshape": lambda x: x.reshape(4, 2, 2, 4).permute(0, 2, 1, 3).reshape(8, 8),
        "patches": lambda x: x.reshape(2, 4, 2, 4).permute(0, 2, 1, 3).reshape(4, 16), "unfold2": lambda x: x.unfold(0, 3, 2).unfold(1, 3, 2),
        "diag_of_slice": lambda x: x[1::2, ::2].diagonal(), "expand_reshape": lambda x: x[:, None].expand(8, 2, 8).reshape(16, 8),
        "heads": lambda x: x.view(2, 4, 2, 4).transpose(1, 2), "merge_heads": lambda x: x.view(2, 2, 4, 4).transpose(1, 2).reshape(2, 4, 8),
        "flip_reshape": lambda x: x.flip(1).reshape(4, 16), "select_expand": lambda x: x[3].expand(5, 8),
    }  # fmt: skip
    cases = []
    for name, chain in chains.items():
        cases += [
            Case(f"{name} scaled", lambda x, c=chain: c(x) * 2, (square,)),
            Case(f"{name} of value", lambda x, c=chain: c(x + 1).sum(-1), (square,)),
            Case(f"{name} of transposed", lambda x, c=chain: c(x + x.t()) - 1, (square,)),
            Case(f"{name} softmax", lambda x, c=chain: torch.softmax(c(x / 9), -1), (square,)),
        ]
    assert_agree(cases, ("steady", "debug"))


@by_dtype(f32, bf16, i64, u8, b8)
def test_shapes(dtype):
    x, y = plain(dtype, 3, 4), plain(dtype, 3, 4, seed=1)
    cube = plain(dtype, 2, 3, 4)
    table = {
        "cat0": lambda a, b, c: torch.cat([a, b]), "cat1": lambda a, b, c: torch.cat([a, b.t().reshape(3, 4), a], 1),
        "cat_empty": lambda a, b, c: torch.cat([a, a[:0], b]), "stack0": lambda a, b, c: torch.stack([a, b]),
        "cat_legacy": lambda a, b, c: torch.cat([a.new_empty(0), a]),
        "stack1": lambda a, b, c: torch.stack([a, b], 1), "stack2": lambda a, b, c: torch.stack([a, b], -1),
        "pad": lambda a, b, c: F.pad(a, (1, 2)), "pad2": lambda a, b, c: F.pad(a, (1, 0, 0, 2), value=1),
        "pad_negative": lambda a, b, c: F.pad(a, (-1, 1, 1, -1)), "pad_cube": lambda a, b, c: F.pad(c, (0, 1, 1, 0, 2, 0)),
        "slice_scatter": lambda a, b, c: torch.slice_scatter(a, b[:, :2], 1, 1, 3), "slice_scatter_step": lambda a, b, c: torch.slice_scatter(a, b[:, :2], 1, 0, 4, 2),
        "slice_scatter_step3": lambda a, b, c: torch.slice_scatter(a, b[:, :1], 1, 1, 4, 3),
        "select_scatter": lambda a, b, c: torch.select_scatter(a, b[0], 0, -1), "diagonal_scatter": lambda a, b, c: torch.diagonal_scatter(a, b[:, 0]),
        "repeat": lambda a, b, c: a.repeat(2, 3), "repeat_more": lambda a, b, c: a.repeat(2, 1, 2), "tril": lambda a, b, c: torch.tril(a), "triu": lambda a, b, c: torch.triu(c, 1),
        "tril_negative": lambda a, b, c: torch.tril(c, -1), "flip": lambda a, b, c: a.flip(0) ^ b if dtype in (i64, u8, b8) else a.flip(0) + b,
        "assign": lambda a, b, c: assigned(a, b), "assign_column": lambda a, b, c: assigned_column(a, b),
        "chain": lambda a, b, c: torch.cat([F.pad(torch.stack([a, b]), (1, 1)), torch.stack([b, a]).repeat(1, 1, 2)[:, :, :6]], 1),
        "cat_of_cats": lambda a, b, c: torch.cat([torch.cat([a, b], 1), torch.cat([b, a], 1)], 0)[1:5, ::3],
    }  # fmt: skip
    assert_agree(cases_of(table, x, y, cube), ("steady", "debug"))


def assigned(a, b):
    c = a.clone()
    c[1] = b[0]
    c[:, ::2] = b[:, 1::2]
    return c


def assigned_column(a, b):
    c = a.clone()
    c[:, 1] = c[:, 1] + b[:, 2]
    c.t()[0].copy_(b.t()[1])
    return c


def test_creation():
    x = torch.zeros(())
    table = {
        "arange": lambda x: torch.arange(7), "arange_start": lambda x: torch.arange(2, 9), "arange_step": lambda x: torch.arange(9, -3, -2),
        "arange_float": lambda x: torch.arange(0.5, 3, 0.3), "arange_f16": lambda x: torch.arange(5, dtype=f16), "arange_i32": lambda x: torch.arange(5, dtype=i32),
        "arange_empty": lambda x: torch.arange(0), "zeros": lambda x: torch.zeros(3, 4), "ones_i64": lambda x: torch.ones(3, dtype=i64),
        "full": lambda x: torch.full((2, 3), 1.5), "full_big": lambda x: torch.full((2,), 2**40), "full_bool": lambda x: torch.full((2,), True),
        "full_inf": lambda x: torch.full((2,), float("-inf")), "full_nan": lambda x: torch.full((2,), float("nan")), "full_rank0": lambda x: torch.full((), 7),
        "full_min": lambda x: torch.full((2,), -(2**63)), "zeros_empty": lambda x: torch.zeros(0, 3), "eye": lambda x: torch.eye(4), "eye_m": lambda x: torch.eye(3, 5, dtype=i64),
        "linspace": lambda x: torch.linspace(-1, 2, 7), "linspace1": lambda x: torch.linspace(3, 4, 1), "linspace_f64": lambda x: torch.linspace(0, 1, 11, dtype=f64),
        "new_zeros": lambda x: x.new_zeros(3), "new_ones": lambda x: x.new_ones(2, 2), "scalar": lambda x: torch.scalar_tensor(2.5),
        "neg_zero": lambda x: 1 / torch.full((2,), -0.0), "fill": lambda x: x.expand(3, 3).clone().fill_(7), "fill_tensor": lambda x: torch.ones(3).fill_(x),
        "full_u8": lambda x: torch.full((3,), 255, dtype=u8), "tiny": lambda x: torch.full((2,), 1e-300, dtype=f64), "third": lambda x: torch.full((2,), 1 / 3, dtype=f64),
    }  # fmt: skip
    assert_agree([Case(n, lambda x, f=f: f(x), (x,)) for n, f in table.items()], ("steady", "debug"))
