"""Exact behaviour by dtype: integers at their limits, casts, shifts, comparisons of two dtypes, numbers out of range, zeros."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from differential import DTYPES, FLOATS, INTEGERS, Case, assert_agree, values

f32, f64, bf16, f16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
i64, i32, i16, i8, u8, b8 = torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool
inf, nan = float("inf"), float("nan")


def by_dtype(*dtypes):
    return pytest.mark.parametrize("dtype", dtypes, ids=lambda d: str(d).removeprefix("torch."))


def limits(dtype):
    """The numbers around the limits of an integer dtype, and small ones of both signs."""
    if dtype == b8:
        return torch.tensor([True, False, True])
    info = torch.iinfo(dtype)
    some = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, 100]
    return torch.tensor(some + ([-1, -2, -3, -7, -100] if info.min < 0 else [200, 255]), dtype=dtype)


def test_integers_at_their_limits():
    cases = []
    for dtype in INTEGERS:
        x = limits(dtype)
        row, column = x, x.reshape(-1, 1)
        name = str(dtype).removeprefix("torch.")
        table = {
            "abs": torch.abs, "neg": torch.neg, "sign": torch.sign, "square": torch.square, "pow4": lambda x: x**4, "pow7": lambda x: x**7,
            "pow0": lambda x: x**0, "add300": lambda x: x + 300, "mul300": lambda x: x * 300, "rsub": lambda x: 1 - x, "lt300": lambda x: x < 300,
            "eq261": lambda x: x == 261, "gt-1": lambda x: x > -1, "ge-200": lambda x: x >= -200, "shl": lambda x: x << 3,
            "shl_all": lambda x: x << 70, "shl_neg": lambda x: x << -1, "shr": lambda x: x >> 3, "shr_all": lambda x: x >> 70,
            "shr_neg": lambda x: x >> -1, "signbit": torch.signbit, "fill": lambda x: torch.where(x > 2, x, 1), "isneginf": torch.isneginf,
            "mul_half": lambda x: x * 0.5, "div3": lambda x: x / 3, "clamp": lambda x: x.clamp(1, 100), "clamp_float": lambda x: x.clamp(1.5, 9),
            "nan_to_num": torch.nan_to_num, "float_power": lambda x: torch.float_power(x, 2), "heaviside": lambda x: torch.heaviside(x, x),
        }  # fmt: skip
        cases += [Case(f"{k} {name}", fn, (x,)) for k, fn in table.items()]
        pairs = {
            "add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum, "fmin": torch.fmin,
            "and": torch.bitwise_and, "xor": torch.bitwise_xor,
        }  # fmt: skip
        cases += [Case(f"{k} {name}", fn, (row, column)) for k, fn in pairs.items()]
        counts = torch.tensor([0, 1, 5, 7, 8, 15, 31, 33, 63, 64, 100], dtype=dtype)
        if dtype != u8:
            counts = torch.cat([counts, -counts])
        cases.append(Case(f"left {name}", torch.bitwise_left_shift, (column, counts)))
        cases.append(Case(f"right {name}", torch.bitwise_right_shift, (column, counts)))
        cases.append(Case(f"scalar shifts {name}", lambda c: (5 << c, -9 >> c) if c.dtype != u8 else (5 << c, 9 >> c), (counts,)))
        exponents = torch.arange(-4, 9).to(dtype) if dtype != u8 else torch.arange(0, 9, dtype=u8)
        cases.append(Case(f"pow {name}", torch.pow, (column, exponents)))
        cases.append(Case(f"scalar pow {name}", lambda e: (torch.pow(3, e), torch.pow(-1, e) if e.dtype != u8 else e), (exponents,)))
        # ATen stops with a signal where it divides the least number by -1, and raises at 0.
        least, over = x[x != torch.iinfo(dtype).min] if dtype != u8 else x, x[x != 0]
        cases += [Case(f"{k} {name}", fn, (least, least.reshape(-1, 1))) for k, fn in (("gcd", torch.gcd), ("lcm", torch.lcm))]
        for k, fn in {
            "floor_divide": torch.floor_divide, "remainder": torch.remainder, "fmod": torch.fmod,
            "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"), "floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
        }.items():  # fmt: skip
            cases.append(Case(f"{k} {name}", fn, (least.reshape(-1, 1), over)))
    assert_agree(cases, left=())


def test_casts():
    floats = torch.tensor([0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.5, 128.0, 200.7, 255.9, 256.0, 300.0, -1.0, -129.0, 4e4, -4e4, 7e4, 3e9, -3e9,
                           1e10, 1e19, -1e19, inf, -inf, nan, 16777217.0, 1e-3], dtype=f64)  # fmt: skip
    cases = [
        Case(f"{source} to {target}", lambda x, target=target: x.to(target), (floats.to(source),))
        for source in FLOATS
        for target in DTYPES
        if target != source
    ]
    whole = torch.tensor([2**53 + 1, 2**63 - 1, -(2**63), 16777217, -16777219, 70000, 300, -1, 0, 255, 65519, 65520], dtype=i64)
    cases += [Case(f"{s} to {t}", lambda x, t=t: x.to(t), (whole.to(s),)) for s in (i64, i32, i16, u8, b8) for t in DTYPES if t != s]
    cases += [
        Case("round trip", lambda x: x.to(bf16).to(f32) + x.to(f16).to(f32), (values(f32, 40),)),
        Case("rounds before it compares", lambda x: (x.to(bf16) == x, (x.to(bf16) * 3).floor(), (x.to(f16) + 1).to(f32) - 1), (values(f32, 40),)),
    ]
    assert_agree(cases, left=())


def test_two_dtypes():
    compare = {"eq": torch.eq, "lt": torch.lt, "ge": torch.ge, "add": torch.add, "mul": torch.mul, "where": lambda a, b: torch.where(a > b, a, b),
               "maximum": torch.maximum, "logical_and": torch.logical_and}  # fmt: skip
    pairs = ((i64, f32), (i64, f64), (i32, f32), (i64, bf16), (u8, i8), (u8, i64), (b8, i64), (b8, f16), (f16, bf16), (f32, f64), (i16, f16))
    cases = []
    for a, b in pairs:
        x, y = values(a, 20, 1), values(b, 20, 2)
        if a == i64:
            x = torch.cat([x, torch.tensor([2**24 + 1, 2**53 + 1])])
            y = torch.cat([y, torch.tensor([2.0**24, 2.0**53], dtype=b)]) if b.is_floating_point else torch.cat([y, torch.tensor([1, 2], dtype=b)])
        cases += [Case(f"{k} {a} {b}", fn, (x, y)) for k, fn in compare.items()]
    x, whole = values(f32, 24), values(i64, 24)
    cases += [
        Case("number beyond", lambda x: (x == 2**53 + 1, x > 0.1, x + 1e300, x * 2**40), (whole,)),
        Case("bounds that are NaN", lambda x: (x.clamp(nan, 2.0), x.clamp(0.0, nan), x.clamp_min(nan)), (x,)),
        Case("bounds turned round", lambda x: x.clamp(5.0, 2.0), (x,)),
        Case("bounds of another dtype", lambda x, b: (b.clamp(x, x + 1), x.clamp(b, b), b.clamp(0.5), x.clamp(max=b)), (x, whole % 7)),
        Case("where of another dtype", lambda x, b: (torch.where(x > 0, b, x), torch.where(x > 0, 1, b), torch.where(x > 0, 1.5, b)), (x, whole)),
        Case("bools", lambda a, b: (a + b, a * b, a & b, a ^ b, a | True, a + 1, a * 2.5, a / b.logical_not(), a.sum(), a < b, ~a),
             (values(b8, 16, 1), values(b8, 16, 2))),
    ]  # fmt: skip
    for d in (bf16, f16):
        y = values(d, 24)
        cases.append(Case(f"numbers in {d}", lambda y: (y + 0.7, y * 0.7, y - 0.3, y / 0.3, y.clamp(0.1, 0.7), y > 0.7, y == 0.3, 0.3 - y), (y,)))
    assert_agree(cases, left=())


SIGNED = {
    "maximum": torch.maximum, "minimum": torch.minimum, "atan2": torch.atan2, "fmod": torch.fmod, "remainder": torch.remainder,
    "floor_divide": torch.floor_divide, "copysign": torch.copysign, "div": torch.div, "hypot": torch.hypot, "pow": torch.pow,
    "mul": torch.mul, "add": torch.add,
}  # fmt: skip
SIGNED_ONE = {
    "relu": F.relu, "clamp_min": lambda x: x.clamp_min(0), "clamp_max": lambda x: x.clamp_max(-0.0), "ceil": torch.ceil, "trunc": torch.trunc,
    "round": torch.round, "floor": torch.floor, "sign": torch.sign, "plus_0": lambda x: x + 0.0, "zeros": lambda x: torch.ceil(x) + torch.zeros_like(x),
    "pow_half": lambda x: x**0.5, "pow_neg_half": lambda x: x**-0.5, "pow_neg": lambda x: x**-1, "pow_3": lambda x: x**3,
    "softshrink": F.softshrink, "hardshrink": F.hardshrink, "neg": torch.neg, "frac": torch.frac, "sqrt": torch.sqrt, "sinh": torch.sinh,
    "digamma": torch.digamma, "exp2": torch.exp2, "hardtanh": F.hardtanh, "leaky_relu": F.leaky_relu, "expm1": torch.expm1, "log1p": torch.log1p,
}  # fmt: skip


@by_dtype(f32, bf16)
def test_signs_of_zero(dtype):
    """Of each result its sign bit too, which comparison of values does not see."""

    def seen(fn):
        return lambda *a: (fn(*a), torch.signbit(fn(*a)) & ~torch.isnan(fn(*a)))

    # Shorter than one vector register: eager's vectors take the other zero of a maximum.
    x = torch.tensor([0.0, -0.0, 2.0, -2.0, inf, -inf, nan], dtype=dtype)
    cases = [Case(f"{name} {k}", seen(SIGNED[name]), (x, x.roll(k))) for name in ("maximum", "minimum") for k in range(7)]
    cases += [Case(name, seen(fn), (x.reshape(-1, 1), x)) for name, fn in SIGNED.items() if name not in ("maximum", "minimum")]
    small = torch.tensor([0.0, -0.0, -0.3, -0.5, 0.5, -1.5, -inf], dtype=dtype)
    cases += [Case(name, seen(fn), (small,)) for name, fn in SIGNED_ONE.items()]
    assert_agree(cases, left=())


def test_roots_in_f16():
    """Eager's f16 computes powers of a half as powers: of -inf and -0 they differ from roots."""
    x = torch.tensor([0.0, -0.0, 2.0, -2.0, inf, -inf, nan], dtype=f16)
    assert_agree([Case("roots", lambda x: (x**0.5, x**-0.5, torch.signbit(x**0.5) & (x != -2), x**2, x**-1), (x,))], left=())
