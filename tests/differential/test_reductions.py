"""Reductions, norms and normalisations against eager: every dtype, ties, NaN, no axis, empty axes; all of them are kernels."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from differential import DTYPES, Case, assert_agree, pallascope, plain, values

f32, f64, bf16, f16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
i64, i32, i16, i8, u8, b8 = torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool
aten = torch.ops.aten
inf, nan = float("inf"), float("nan")


def by_dtype(*dtypes):
    return pytest.mark.parametrize("dtype", dtypes, ids=lambda d: str(d).removeprefix("torch."))


ANY = {
    "sum": lambda x: (x.sum(), x.sum(0), x.sum((0, 2), keepdim=True), x.sum(dim=[])), "amax": lambda x: (x.amax(), x.amax((0, 1)), x.amax(-1, True)),
    "amin": lambda x: (x.amin(), x.amin((1, 2)), x.amin(0)), "max": lambda x: (x.max(), *x.max(1), *x.max(2, True)),
    "min": lambda x: (x.min(), *x.min(1), *x.min(0, True)), "argmax": lambda x: (x.argmax(), x.argmax(1), x.argmax(-1, True)),
    "argmin": lambda x: (x.argmin(), x.argmin(0), x.argmin(2, True)), "any": lambda x: (x.any(), x.any(1), torch.any(x, dim=(0, 2)), torch.any(x, dim=())),
    "all": lambda x: (x.all(), x.all(1), torch.all(x, dim=(0, 2), keepdim=True), torch.all(x, dim=())), "aminmax": lambda x: (*x.aminmax(), *x.aminmax(dim=1, keepdim=True)),
    "count_nonzero": lambda x: (x.count_nonzero(), x.count_nonzero((0, 2))), "sum_f64": lambda x: x.sum(1, dtype=f64), "nansum": lambda x: (x.nansum(), x.nansum(1)),
    "sum_i64": lambda x: (x > 1).sum(1), "prod": lambda x: (x[:, :1, :2].prod(), x[:2, :2].prod(1)),
}  # fmt: skip
FLOAT = {
    "mean": lambda x: (x.mean(), x.mean((0, 2)), x.mean(1, dtype=f64)), "nanmean": lambda x: (x.nanmean(), x.nanmean(1)),
    "var": lambda x: (x.var(), x.var(1), torch.var(x, (0, 2), correction=0), torch.var(x, 1, correction=1.5), torch.var(x, 1, correction=50)),
    "std": lambda x: (x.std(), torch.std_mean(x, 2), torch.var_mean(x, (0, 1), keepdim=True)), "logsumexp": lambda x: (x.logsumexp(1), x.logsumexp((0, 2), True)),
    "vector_norm": lambda x: [torch.linalg.vector_norm(x, p, d) for p in (2, 1, 0, 3, 0.5, -1, inf, -inf) for d in (None, (0, 2))],
    "norm": lambda x: (torch.norm(x), torch.norm(x, p=1, dim=1), torch.norm(x, p=3, dim=(0, 1), keepdim=True), torch.norm(x, p="fro", dim=(0, 1)), x.norm(inf)),
    "norm_f64": lambda x: (torch.norm(x, 2, 1, dtype=f64), torch.linalg.vector_norm(x, 2, dtype=f64)),
    "matrix_norm": lambda x: [torch.linalg.matrix_norm(x.float(), p) for p in ("fro", 1, -1, inf, -inf)], "linalg_norm": lambda x: (torch.linalg.norm(x), torch.linalg.norm(x, dim=1), torch.linalg.norm(x[0, 0], 3)),
    "normalize": F.normalize, "dist": lambda x: [torch.dist(x, x.flip(0) + 1, p) for p in (2, 1, 0, inf)], "renorm": lambda x: torch.renorm(x, 2, 1, 1.5),
    "softmax": lambda x: (x.softmax(1), x.softmax(0, dtype=f64), x.log_softmax(2, dtype=f64), torch.special.log_softmax(x, 1)),
    "batch_norm": lambda x: F.batch_norm(x, x[0, :, 0], x[0, :, 1].abs(), x[1, :, 0], x[1, :, 1]), "batch_norm_training": lambda x: F.batch_norm(x, None, None, x[1, :, 0], training=True),
    "instance_norm": lambda x: (F.instance_norm(x), F.instance_norm(x, weight=x[0, :, 0], bias=x[0, :, 1])),
    "instance_norm_running": lambda x: F.instance_norm(x, x[0, :, 0], x[0, :, 1].abs(), use_input_stats=False),
    "weight_norm": lambda x: (torch._weight_norm(x, x[:, :1, :1], 0), *aten._weight_norm_interface(x, x[:, :1, :1].contiguous(), 0)),
}  # fmt: skip


@by_dtype(*DTYPES)
def test_any_dtype(dtype):
    x = values(dtype, 60).reshape(3, 4, 5)
    table = dict(ANY)
    if dtype.is_floating_point:
        x = torch.where(x.abs() > 1e4, x.sign() * 8, x) if dtype in (f16, bf16) else x  # sums of 16 bits overflow at other places
    ties = (plain(dtype, 60) if dtype == b8 else plain(dtype, 60).div(4, rounding_mode="floor") if dtype != u8 else plain(dtype, 60) // 4).to(dtype).reshape(3, 4, 5)
    if dtype in (f16, bf16):
        del table["prod"]
    if dtype == b8:
        del table["argmax"], table["argmin"]  # eager has none
    assert_agree([Case(f"{k} {n}", fn, (t,)) for k, fn in table.items() for n, t in (("special", x), ("ties", ties))], left=())


@by_dtype(f32, f64, bf16)
def test_floats(dtype):
    x = plain(dtype, 3, 4, 5)
    holes = x.clone()
    holes[0, 1] = nan
    holes[1, 2, 3] = -inf
    wide = {"atol": 2e-2, "rtol": 2e-2} if dtype == bf16 else {}
    cases = [Case(k, fn, (x,), wide) for k, fn in FLOAT.items()]
    cases += [Case(f"{k} holes", FLOAT[k], (holes,), wide) for k in ("mean", "nanmean", "logsumexp", "vector_norm", "var", "softmax")]
    rows = torch.tensor([[-inf, -inf], [inf, -inf], [inf, inf], [nan, inf], [1.0, 2.0]], dtype=dtype)
    cases += [
        Case("rows of infinities", lambda r: (r.logsumexp(1), r.softmax(1), r.log_softmax(1), r.amax(1), r.sum(1), r.prod(1)), (rows,)),
        Case("of one", lambda r: (r[:, :1].var(1), r[:, :1].std(1, correction=0), r[:1].std(0), r[0, 0].var(), r[0, 0].sum(), r[0, 0].amax()), (rows,)),
        Case("of none", lambda r: (r[:0].sum(0), r[:0].prod(0), r[:0].mean(0), r[:0].any(0), r[:0].all(0), r[:0].var(0), r[:0].logsumexp(0),
                                   torch.linalg.vector_norm(r[:0], dim=0), r[:0].nansum(), r[:0].count_nonzero(), r[:0].amax(1), r[:, :0].sum()), (rows,)),
        Case("of integers", lambda i: (i.logsumexp(0), i.sum(), i.float().mean()), (torch.tensor([1, 2, 3]),)),
        Case("far from 0", lambda v: (v.var(), v.std(0), torch.var_mean(v)), ((torch.arange(400, dtype=f64) / 7 + 1e4).reshape(20, 20).to(f32),)),
        Case("long", lambda v: (v.sum(), v.mean(), v.norm(), v.var()), (torch.linspace(0, 1, 30000, dtype=f64).to(dtype),), wide),
        Case("one number", lambda v: (v.sum(0), v.amax(0), v.argmax(0), v.softmax(0), v.logsumexp(0), v.mean(-1), *v.max(0), v.cumsum(0)), (torch.tensor(2.5, dtype=dtype),)),
    ]  # fmt: skip
    assert_agree(cases, left=("aten.cumsum.default",))


@by_dtype(f32, bf16)
def test_gradients(dtype):
    x, grad, weight = plain(dtype, 2, 6, 3, 4), plain(dtype, 2, 6, 3, 4, seed=1), plain(dtype, 6, seed=2)
    row, row_grad, row_weight = plain(dtype, 5, 8), plain(dtype, 5, 8, seed=1), plain(dtype, 8, seed=2)

    def group(g, x, w):
        _, mean, rstd = aten.native_group_norm(x, w, None, 2, 6, 12, 3, 1e-5)
        return aten.native_group_norm_backward(g, x, mean, rstd, w, 2, 6, 12, 3, [True, True, True])

    def rms(g, x, w):
        _, rstd = aten._fused_rms_norm(x, [8], w, 1e-5)
        return aten._fused_rms_norm_backward(g, x, [8], rstd, w, [True, True])

    def weight_norm(g, v, w):
        _, norms = aten._weight_norm_interface(v, v[:, :1].contiguous(), 0)
        return aten._weight_norm_interface_backward(g, v, v[:, :1].contiguous(), norms, 0)

    wide = {"atol": 6e-2, "rtol": 6e-2} if dtype == bf16 else {"atol": 1e-4, "rtol": 1e-4}
    args = (row_grad, row, row_weight)
    cases = [Case("group_norm", group, (grad, x, weight), wide), Case("weight_norm", weight_norm, args, wide)]
    try:
        rms(*args)
        cases.append(Case("rms_norm", rms, args, wide))
    except NotImplementedError:  # not in this eager
        pass
    assert_agree(cases, left=())


@by_dtype(f16, bf16)
def test_roundings_inside_of_softmax(dtype):
    """Within a unit in the last place: along the last dimension log_softmax keeps a row's sum and its logarithm in 16 bits,
    along others in f32; a `dtype=` casts first."""
    torch.manual_seed(0)
    shapes = [((40, 2), 1), ((40, 7), 1), ((9, 70), 1), ((2, 40), 0), ((7, 40), 0), ((3, 7, 5), 1), ((5,), 0), ((3, 40, 2), 2), ((9, 4, 1), 1)]
    cases = [Case(f"log_softmax {sizes} {d}", lambda x, d=d: (F.log_softmax(x, d), F.log_softmax(x.mT if x.dim() > 1 else x, d)), (torch.randn(sizes) * 4,)) for sizes, d in shapes]
    cases = [Case(c.name, c.function, (c.args[0].to(dtype),)) for c in cases]
    x, labels, shares = (torch.randn(30, 7) * 4).to(dtype), torch.randint(0, 7, (30,)), torch.rand(30, 7).to(dtype)
    cases += [Case("cross_entropy", lambda x, i, p: (F.cross_entropy(x, i, reduction="none"), F.cross_entropy(x[:, :, None], i[:, None], reduction="none"), F.cross_entropy(x, p, reduction="none")), (x, labels, shares))]
    cases += [Case("dtype=", lambda x: (torch.log_softmax(x, 1, dtype=dtype), torch.softmax(x, 1, dtype=dtype)), (torch.randn(30, 7) * 9,))]
    one_unit = {"rtol": torch.finfo(dtype).eps, "atol": 1e-4}
    assert_agree([Case(c.name, c.function, c.args, one_unit) for c in cases], left=())


@by_dtype(f16, bf16)
def test_products_of_16_bits_are_rounded_after_each_factor(dtype):
    """Where a part of the product has no place in the dtype it is infinite, whatever comes after."""
    torch.manual_seed(0)
    rows = torch.rand(5, 3, 17).mul(1.2).add(0.4).to(dtype)
    big = torch.tensor([[99, 99, 99, 0.01], [99, 99, 99, 0], [0.5, 0.01, 0.01, 0.01], [1, nan, 2, inf]]).to(dtype)

    def f(rows, big):
        return (rows.prod(2), rows.prod(0), rows.prod(1, keepdim=True), (rows * 2).prod(2) * 3, rows.float().prod(2, dtype=rows.dtype), big.prod(1), big.T.contiguous().prod(0),
                big[0].prod(), big[2].prod(), big[:0].prod(0))  # fmt: skip

    lowered = pallascope.lower(f, rows, big)
    assert lowered.log["torch"] == []
    for mode in ("steady", "debug"):
        for got, wanted in zip(lowered.call(rows, big, mode=mode), f(rows, big), strict=True):
            torch.testing.assert_close(got, wanted, rtol=2 * torch.finfo(dtype).eps, atol=torch.finfo(dtype).tiny, equal_nan=True)


@by_dtype(f16, bf16, f32, i32)
def test_a_sum_with_a_dtype_casts_first(dtype):
    wide = torch.tensor([[201600, -816480, 3], [7, 70000, 2**31 - 1]])
    odd = torch.tensor([[1.0009765625, 2.5, nan], [-70000.0, 70000.0, 1e39]], dtype=f64)

    def f(wide, odd):
        whole = () if not dtype.is_floating_point else (odd.sum(1, dtype=dtype), odd[0, :2].sum(dtype=dtype), odd.nansum(1, dtype=dtype))
        return (wide.sum(1, dtype=dtype), wide.sum(dtype=dtype), wide.prod(0, dtype=dtype), *whole)

    lowered = pallascope.lower(f, wide, odd)
    for got, wanted in zip(lowered.call(wide, odd), f(wide, odd), strict=True):
        torch.testing.assert_close(got, wanted, rtol=torch.finfo(dtype).eps if dtype.is_floating_point else 0, atol=0, equal_nan=True)


@by_dtype(u8, i8, i16, i32, i64)
def test_integer_powers_take_every_bit_of_the_exponent(dtype):
    top = torch.iinfo(dtype).max
    base = torch.tensor([0, 1, 2, 3, 5, top, top - 1]).to(dtype)[:, None]
    exponent = torch.tensor([0, 1, 2, 7, 8, 63, 64, 127, top // 2, top // 2 + 1, top - 1, top]).to(dtype).clamp_(min=0)
    f = lambda base, exponent: (base**exponent, 3**exponent)
    lowered = pallascope.lower(f, base, exponent)
    for got, wanted in zip(lowered.call(base, exponent), f(base, exponent), strict=True):
        assert torch.equal(got, wanted)
