"""Convolutions, sorting, products and attention against eager: library calls of the JAX program, none of them PyTorch's."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from differential import Case, assert_agree, compare, layouts, like, plain, values
from torch import nn

import pallascope

F32 = torch.float32
INF, NAN = float("inf"), float("nan")


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    pallascope.reset_log()


def all_lowered(cases, modes=("steady",)):
    """They agree with eager, and PyTorch runs none of them."""
    args = [tuple(like(a) for a in c.args) for c in cases]
    with torch.no_grad():
        want = [c.function(*[like(a) for a in c.args]) for c in cases]
    lowered = pallascope.lower(lambda *groups: [c.function(*group) for c, group in zip(cases, groups)], *args)
    for mode in modes:
        got = lowered.call(*args, mode=mode)
        if any(compare(g, w, c.tolerance) for c, g, w in zip(cases, got, want)):
            assert_agree(cases, (mode,))  # names those that differ
            raise AssertionError("only together")
    assert not lowered.log["torch"]


# ------------------------------------------------------------------------------------------------- convolutions


def images(kind, dtype=F32):
    """An input of 6 channels in a layout, by the number of its spatial dimensions."""
    sizes = {1: (2, 6, 11), 2: (2, 6, 9, 8), 3: (2, 6, 5, 6, 7)}
    made = {n: plain(dtype, *s, seed=n) for n, s in sizes.items()}
    if kind == "channels_last":
        # Not in three dimensions: there PyTorch's trace says that the result is contiguous, and its eager is not.
        return {1: made[1].transpose(1, 2).contiguous().transpose(1, 2), 2: made[2].to(memory_format=torch.channels_last)}
    if kind == "sliced":
        return {n: t[..., ::2] if n == 1 else t[..., 1:] for n, t in made.items()}
    if kind == "transposed":
        return {n: t.transpose(0, 1).contiguous().transpose(0, 1) for n, t in made.items() if n < 3}
    if kind == "expanded":
        return {n: t[:1].expand(3, *t.shape[1:]) for n, t in made.items()}
    if kind == "unbatched":
        return {n: t[0] for n, t in made.items()}
    return made


CONVS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
# name: settings, for a kernel of 3 (2 along the last dimension)
FORMS = {
    "plain": {},
    "stride": {"stride": 2},
    "padding": {"padding": 1},
    "dilation": {"dilation": 2, "padding": 2},
    "groups": {"groups": 2},
    "depthwise": {"groups": 6, "padding": 1},
    "all": {"groups": 3, "stride": 2, "padding": 2, "dilation": 2},
}


def kernel(n, groups=1, out=6, dtype=F32, seed=5):
    return plain(dtype, out, 6 // groups, *([3] * (n - 1)), 2, seed=seed)


def tolerance(dtype):
    return {"rtol": 2e-5, "atol": 2e-5} if dtype == F32 else {}


@pytest.mark.parametrize("kind", ["contiguous", "channels_last", "sliced", "expanded", "transposed", "unbatched"])
def test_convolutions(kind):
    cases = []
    for n, x in images(kind).items():
        for name, form in FORMS.items():
            if name not in ("plain", "all") and (n == 3 or kind not in ("contiguous", "channels_last")):
                continue
            w, b = kernel(n, form.get("groups", 1)), plain(F32, 6)
            with_bias = name in ("plain", "groups", "all")
            function = lambda x, w, b, n=n, form=form, with_bias=with_bias: CONVS[n](x, w, b if with_bias else None, **form)
            cases.append(Case(f"{n} {name}", function, (x, w, b), tolerance(F32)))
    all_lowered(cases, ("steady", "debug") if kind == "channels_last" else ("steady",))


@pytest.mark.parametrize("kind", ["contiguous", "channels_last", "unbatched"])
def test_transposed_convolutions(kind):
    cases = []
    forms = {**FORMS, "output": {"stride": 3, "output_padding": 2}, "output dilated": {"stride": 2, "dilation": 3, "output_padding": 2, "padding": 1}}
    for n, x in images(kind).items():
        for name, form in forms.items():
            if name not in ("plain", "all", "output") and (n == 3 or kind != "contiguous"):
                continue
            groups = form.get("groups", 1)
            w, b = plain(F32, 6, 4, *([3] * (n - 1)), 2, seed=7), plain(F32, 4 * groups)
            function = lambda x, w, b, n=n, form=form: TRANSPOSED[n](x, w, b, **form)
            cases.append(Case(f"{n} {name}", function, (x, w, b), tolerance(F32)))
    all_lowered(cases)


def test_convolutions_by_name_of_their_padding_dtypes_and_edges():
    cases = []
    for n, x in images("contiguous").items():
        for k in (2, 3, 4):
            w = plain(F32, 4, 6, *([k] * n), seed=k)
            cases.append(Case(f"same {n} {k}", lambda x, w, n=n: CONVS[n](x, w, padding="same"), (x, w), tolerance(F32)))
        cases.append(Case(f"valid {n}", lambda x, w, n=n: CONVS[n](x, w, padding="valid", stride=2), (x, w), tolerance(F32)))
        cases.append(Case(f"same dilated {n}", lambda x, w, n=n: CONVS[n](x, w, padding="same", dilation=2), (x, w), tolerance(F32)))
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        x, w, b = plain(dtype, 2, 6, 9, 8), kernel(2, dtype=dtype), plain(dtype, 6) * 50
        cases.append(Case(f"{dtype} bias", lambda x, w, b: F.conv2d(x, w, b), (x, w, b)))
        cases.append(Case(f"{dtype}", lambda x, w: F.conv2d(x, w, stride=2, padding=1), (x, w)))
        cases.append(Case(f"{dtype} transposed", lambda x, w, b: F.conv_transpose2d(x, w, b), (x, w, b), {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.float16 else {}))
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        x, w = plain(dtype, 2, 6, 7, 7), kernel(2, dtype=dtype)
        cases.append(Case(f"{dtype}", lambda x, w: F.conv2d(x, w, padding=1), (x * 11, w * 7)))
    # A kernel turned, sliced or expanded; no batch, no result, nothing to add up.
    x = plain(F32, 2, 6, 9, 8)
    cases.append(Case("kernel transposed", lambda x, w: F.conv2d(x, w), (x, plain(F32, 6, 6, 3, 3).transpose(0, 1)), tolerance(F32)))
    cases.append(Case("kernel channels last", lambda x, w: F.conv2d(x, w), (x, kernel(2).to(memory_format=torch.channels_last)), tolerance(F32)))
    cases.append(Case("kernel expanded", lambda x, w: F.conv2d(x, w), (x, plain(F32, 6, 1, 3, 3).expand(6, 6, 3, 3)), tolerance(F32)))
    cases.append(Case("batch 0", lambda x, w: F.conv2d(x, w) + 1, (plain(F32, 0, 6, 9, 8), kernel(2))))
    all_lowered(cases)


@pytest.mark.parametrize("kind", ["contiguous", "channels_last"])
def test_convolution_gradients(kind):
    """Each of the gradients, wanted or not, of all forms, in one graph."""
    cases = []
    for n, x in images(kind).items():
        for name, form in {**FORMS, "transposed": {"transposed": True, "stride": 3, "output_padding": 1},
                           "transposed groups": {"transposed": True, "stride": 2, "groups": 3, "padding": 1, "dilation": 2}}.items():
            if name not in ("all", "transposed groups") and (n == 3 or kind != "contiguous"):
                continue
            is_transposed, groups = form.get("transposed", False), form.get("groups", 1)
            each = lambda key, default: [form.get(key, default)] * n
            w = plain(F32, 6, 4, *([3] * (n - 1)), 2) if is_transposed else kernel(n, groups)
            arguments = (each("stride", 1), each("padding", 0), each("dilation", 1), is_transposed, each("output_padding", 0), groups)
            out = torch.ops.aten.convolution(x, w, None, *arguments)
            gradient = torch.randn(out.shape, generator=torch.Generator().manual_seed(n))
            if kind == "channels_last" and n == 2:
                gradient = gradient.to(memory_format=torch.channels_last)
            wanted = {"stride": [True, False, False], "padding": [False, True, True], "dilation": [True, False, True]}.get(name, [True] * 3)
            biases = [w.shape[1] * groups if is_transposed else w.shape[0]]

            def function(g, x, w, arguments=arguments, wanted=wanted, biases=biases):
                made = torch.ops.aten.convolution_backward(g, x, w, biases, *arguments, wanted)
                return [t for t, asked in zip(made, wanted) if asked]

            cases.append(Case(f"{n} {name}", function, (gradient, x, w), {"rtol": 1e-4, "atol": 1e-4}))
    all_lowered(cases)


def test_a_convolution_fuses_with_what_follows():
    lowered = pallascope.lower(lambda x, w, b: F.relu(F.conv2d(x, w, b)) * 2, plain(F32, 1, 6, 8, 8), kernel(2), plain(F32, 6))
    assert lowered.log["library"] == ["aten.conv2d.default"] and lowered.log["kernels"] == 1


# ------------------------------------------------------------------------------------------------------ sorting


def test_sorting_in_every_layout():
    cases = []
    for dtype in (F32, torch.int64):
        for name, x in layouts(lambda n: values(dtype, n)).items():
            function = lambda x: (torch.sort(x, dim=-1, stable=True), torch.sort(x, dim=0, descending=True, stable=True))
            cases.append(Case(f"{dtype} {name}", function, (x,)))
    all_lowered(cases, ("steady", "debug"))


def test_sorting_keeps_equal_elements_in_order():
    cases = []
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
        x = values(dtype, 60).reshape(3, 20)
        cases.append(Case(f"{dtype}", lambda x: (torch.sort(x, stable=True), torch.sort(x, stable=True, descending=True)), (x,)))
        cases.append(Case(f"{dtype} alone", lambda x: (torch.argsort(x, dim=0, descending=True, stable=True), torch.msort(x), torch.sort(x)[0]), (x,)))
        if dtype.is_floating_point:
            signs = torch.tensor([[1.0, NAN, -0.0, 0.0, -NAN, -1.0, 0.0, -0.0, INF, -INF]]).to(dtype)
            signs[0, 4] = torch.copysign(torch.tensor(NAN), torch.tensor(-1.0)).to(dtype)
            cases.append(Case(f"{dtype} zeros and NaN", lambda x: (torch.sort(x, stable=True), torch.sort(x, stable=True, descending=True)), (signs,)))
    all_lowered(cases)


def distinct(dtype, *sizes):
    """Elements of which no two are equal."""
    count = torch.Size(sizes).numel()
    return torch.randperm(count, generator=torch.Generator().manual_seed(3)).sub(count // 2).to(dtype).reshape(sizes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
def test_the_largest_and_the_kth(dtype):
    cases = []
    square = distinct(dtype, 10, 10)
    kinds = {"rows": square, "transposed": square.t(), "step": distinct(dtype, 6, 16)[:, ::2], "rank 3": distinct(dtype, 3, 4, 5).permute(2, 0, 1)}
    for name, x in kinds.items() if dtype == F32 else {"rows": square}.items():
        for dim in (0, -1):
            for k in (3,):
                for largest in (True, False):
                    cases.append(Case(f"topk {name} {dim} {k} {largest}", lambda x, a=(k, dim, largest): torch.topk(x, *a), (x,)))
                cases.append(Case(f"kth {name} {dim} {k}", lambda x, k=k, dim=dim: torch.kthvalue(x, k, dim), (x,)))
            cases.append(Case(f"median {name} {dim}", lambda x, dim=dim: (torch.median(x, dim), torch.median(x, dim, keepdim=True), torch.median(x)), (x,)))
    special = values(dtype, 36).reshape(6, 6)
    cases.append(Case("values of ties", lambda x: [torch.topk(x, 4, dim, big)[0] for dim in (0, 1) for big in (True, False)], (special,)))
    cases.append(Case("medians of ties", lambda x: (torch.median(x, 0)[0], torch.median(x), torch.nanmedian(x, 1)[0], torch.nanmedian(x)), (special,)))
    cases.append(Case("all, none, number", lambda x: (torch.topk(x, 6), torch.topk(x, 0), torch.topk(x[0, 0], 1), torch.kthvalue(x[0, 0], 1)), (distinct(dtype, 6, 6),)))
    cases.append(Case("empty", lambda x: (torch.topk(x, 2), torch.sort(x)), (distinct(dtype, 0, 4),)))
    if dtype.is_floating_point:
        rows = torch.tensor([[1, NAN, 3, NAN, 2], [NAN] * 5, [5, 4, 3, 2, 1], [INF, -INF, NAN, 0, 1]]).to(dtype)
        cases.append(Case("medians of NaN", lambda x: (torch.median(x, 1), torch.nanmedian(x, 1), torch.nanmedian(x), torch.nanmedian(x, 0)), (rows[[0, 2, 3]],)))
        cases.append(Case("a row of NaN", lambda x: torch.nanmedian(x, 1)[0], (rows,)))
        negative = rows.clone()
        negative[0, 1] = torch.copysign(torch.tensor(NAN), torch.tensor(-1.0)).to(dtype)
        cases.append(Case("NaN is the largest", lambda x: (torch.topk(x, 3)[0], torch.topk(x, 4, largest=False)[0], torch.kthvalue(x, 4)[0]), (negative[[0, 3]],)))
    all_lowered(cases)


def test_quantiles():
    cases = []
    for dtype in (torch.float32,):
        x = plain(dtype, 7, 9)
        holed = x.masked_fill(x > 0.7, NAN)
        for how in ("linear", "lower", "higher", "nearest", "midpoint"):
            cases.append(Case(f"{how}", lambda x, how=how: (torch.quantile(x, 0.3, interpolation=how), torch.quantile(x, 0.7, 1, True, interpolation=how)), (x,)))
        cases.append(Case("NaN", lambda x: (torch.quantile(x, 0.5, 0), torch.nanquantile(x, 0.4, 0), torch.nanquantile(x, 0.4), torch.nanquantile(x, 1.0, 1)), (holed,)))
        q = torch.tensor([0.0, 0.25, 0.5, 1.0], dtype=dtype)
        cases.append(Case("several", lambda x, q: (torch.quantile(x, q), torch.quantile(x, q, 1), torch.quantile(x.t(), q, 1, True), torch.nanquantile(x, q, 0)), (x, q)))
    all_lowered(cases)


# ----------------------------------------------------------------------------------------------------- products

EQUATIONS = {
    "ij,jk->ik": ((4, 5), (5, 6)), "ij,jk": ((4, 5), (5, 6)), "ij,jk->ki": ((4, 5), (5, 6)), "ij,ij->i": ((4, 5), (4, 5)),
    "ij,ij->": ((4, 4), (4, 4)), "i,j->ij": ((4,), (5,)), "i,i": ((4,), (4,)), "ii->i": ((5, 5),), "ii": ((5, 5),),
    "iji->j": ((4, 3, 4),), "ij->ji": ((4, 5),), "ij->j": ((4, 5),), "ijk->": ((2, 3, 4),), "bij,bjk->bik": ((3, 4, 5), (3, 5, 2)),
    "...ij,...jk->...ik": ((2, 1, 4, 5), (3, 5, 2)), "...i,...i": ((2, 3, 4), (3, 4)), "b...,b->...": ((3, 4, 2), (3,)),
    "...->...": ((2, 3),), "ij,kj,kl->il": ((2, 3), (4, 3), (4, 5)), "bhid,bhjd->bhij": ((2, 3, 4, 5), (2, 3, 6, 5)),
    "bhij,bhjd->bihd": ((2, 3, 4, 6), (2, 3, 6, 5)), "i,ij,j->": ((4,), (4, 5), (5,)), "ijk,ilm->jm": ((2, 3, 4), (2, 5, 3)),
    "ij,jk->ijk": ((2, 3), (3, 4)), "ba ...->b...a": ((2, 3, 4),), "aab,bcc->ac": ((3, 3, 2), (2, 4, 4)), "ij,jk->k": ((1, 5), (5, 6)),
    "ij,ij->ij": ((4, 5), (1, 5)), "ij , jk -> ik": ((0, 5), (5, 6)), "ij,jk->ik ": ((4, 0), (0, 6)),
}


@pytest.mark.parametrize("dtype", [F32, torch.bfloat16, torch.int64], ids=str)
def test_einsum(dtype):
    cases = []
    for equation, sizes in EQUATIONS.items():
        if dtype != F32 and equation not in ("ij,jk->ki", "ij,ij->", "...ij,...jk->...ik", "ii->i", "i,j->ij"):
            continue
        function = lambda *a, equation=equation: torch.einsum(equation, *a)
        cases.append(Case(equation, function, tuple(plain(dtype, *s, seed=k) for k, s in enumerate(sizes))))
    if dtype == F32:
        cases.append(Case("transposed", lambda a, b: torch.einsum("ij,jk->ik", a, b), (plain(F32, 5, 5).t(), plain(F32, 5, 10)[:, ::2])))
        cases.append(Case("expanded", lambda a, b: torch.einsum("ij,jk->ik", a, b), (plain(F32, 1, 5).expand(4, 5), plain(F32, 5, 1).expand(5, 3))))
    all_lowered(cases)


def product_cases(dtype):
    make = lambda *sizes, seed=0: plain(dtype, *sizes, seed=seed)
    a, b, v, w = make(4, 5), make(5, 6, seed=1), make(5, seed=2), make(4, seed=3)
    batch, other = make(3, 4, 5, seed=4), make(3, 5, 6, seed=5)
    yield "matmul ranks", lambda a, b, v, w: (a @ v, w @ a, v @ b, v @ v, torch.mv(a, v), torch.dot(v, v), torch.vdot(v, v)), (a, b, v, w)
    yield "matmul batches", lambda x, y, v: (x @ y, x @ y[0], x @ v, x[0] @ y, v @ y, x[:, None] @ y[None], x[:1] @ y), (batch, other, v)
    yield "outer", lambda v, w: (torch.outer(v, w), torch.ger(w, v), torch.inner(v, v)), (v, w)
    yield "inner", lambda a, x: (torch.inner(a, a), torch.inner(x, a), torch.inner(a, a[0, 0])), (a, batch)
    yield "tensordot", lambda a, b, x: (torch.tensordot(a, b, 1), torch.tensordot(x, a, ([1, 2], [0, 1])), torch.tensordot(a, b, 0)), (a, b, batch)
    yield "kron", lambda a, b, v: (torch.kron(a, b), torch.kron(a, v), torch.kron(v, v)), (a, b, v)
    yield "transposed", lambda a, s, x: (a.t() @ a, s.t() @ s.t(), x.mT @ x, s[:, ::2].t() @ s), (a, make(6, 6), batch)
    yield "empty", lambda a, b: (a[:, :0] @ b[:0], a[:0] @ b, a @ b[:, :0], torch.mv(a[:, :0], b[0, :0])), (a, b)
    scale = {} if dtype.is_floating_point else {"integers": True}
    beta, alpha = (2, 3) if scale else (0.3, 1.7)
    bias, square, big = make(6, seed=6), make(4, 6, seed=7), make(3, 4, 6, seed=8)
    yield "addmm", lambda s, a, b, v: (torch.addmm(s, a, b), torch.addmm(v, a, b, beta=beta, alpha=alpha), torch.addmm(s, a[:, :0], b[:0], beta=beta)), (square, a, b, bias)
    yield "baddbmm", lambda s, x, y: (torch.baddbmm(s, x, y, beta=beta, alpha=alpha), torch.addbmm(s[0], x, y, beta=beta, alpha=alpha), torch.bmm(x, y)), (big, batch, other)
    yield "addmv", lambda w, a, v: (torch.addmv(w, a, v), torch.addmv(w, a, v, beta=beta, alpha=alpha)), (w, a, v)
    yield "addr", lambda a, v, w: (torch.addr(a, w, v), torch.addr(a, w, v, beta=beta, alpha=alpha), torch.addr(a, w, v, beta=0)), (a, v, w)
    yield "linear", lambda x, a, w: (F.linear(x, a), F.linear(x, a, w), F.linear(x[0], a, w * 50), F.linear(x, a[0]), F.linear(x[0, 0], a)), (batch, a, w)


@pytest.mark.parametrize("dtype", [F32, torch.bfloat16, torch.float16, torch.int64, torch.uint8], ids=str)
def test_products(dtype):
    # Eager's own sums in f16 are not rounded once everywhere.
    all_lowered([Case(*case, {"rtol": 4e-3, "atol": 4e-3} if dtype == torch.float16 else {}) for case in product_cases(dtype)])


def test_products_that_overflow_or_are_not_read():
    big = torch.tensor([[2**62, -(2**63)], [2**63 - 1, 3]])
    cases = [
        Case("i64", lambda x: (x @ x, x @ x[0]), (big,)),
        Case("i32", lambda x: x @ x, (torch.tensor([[2**31 - 1, 2**30], [-(2**31), 7]], dtype=torch.int32),)),
        Case("int_mm", lambda x, y: torch._int_mm(x, y), (plain(torch.int8, 32, 16) * 13, plain(torch.int8, 16, 24) * 13)),
    ]
    hole = torch.full((3, 3), NAN)
    x = plain(F32, 3, 3)
    cases.append(Case("beta 0", lambda s, x: (torch.addmm(s, x, x, beta=0), torch.baddbmm(s[None], x[None], x[None], beta=0),
                                              torch.addmv(s[0], x, x[0], beta=0), torch.addr(s, x[0], x[1], beta=0)), (hole, x)))
    all_lowered(cases)


def test_chains_bilinear_and_distances():
    cases = []
    for dtype in (F32, torch.bfloat16):
        make = lambda *sizes, seed=0, dtype=dtype: plain(dtype, *sizes, seed=seed)
        chain = (make(5), make(5, 8, seed=1), make(8, 3, seed=2), make(3, 6, seed=3), make(6, seed=4))
        loose = {"rtol": 5e-2, "atol": 0.3} if dtype == torch.bfloat16 else {}
        cases.append(Case(f"chains {dtype}", lambda a, b, c, d, e: (torch.linalg.multi_dot([a, b, c, d, e]), torch.linalg.multi_dot([b, c, d]),
                                                                   torch.linalg.multi_dot([b, c])), chain, loose))
        cases.append(Case(f"bilinear {dtype}", lambda x, y, w, b: (F.bilinear(x, y, w, b), F.bilinear(x[0], y[0], w)),
                          (make(2, 7, 3), make(2, 7, 4, seed=1), make(5, 3, 4, seed=2), make(5, seed=3)), loose))
        x, y = make(4, 9), make(4, 9, seed=1)
        cases.append(Case(f"vecdot {dtype}", lambda x, y: (torch.linalg.vecdot(x, y), torch.linalg.vecdot(x, y, dim=0), torch.linalg.vecdot(x[0], y)), (x, y)))
        cases.append(Case(f"cosine {dtype}", lambda x, y: (F.cosine_similarity(x, y), F.cosine_similarity(x, y, dim=0), F.cosine_similarity(x[:, None], y[None], dim=-1),
                                                          F.cosine_similarity(x * 0, y)), (x, y)))
        cases.append(Case(f"pairwise {dtype}", lambda x, y: (F.pairwise_distance(x, y), F.pairwise_distance(x, y, p=1, keepdim=True), F.pairwise_distance(x, y[0], p=3)), (x, y)))
        if dtype != torch.bfloat16:
            for p in (0.0, 1.0, 2.0, 3.0, INF):
                cases.append(Case(f"cdist {p}", lambda x, y, p=p: (torch.cdist(x, y, p), torch.cdist(x[None], torch.stack([y, x]), p), torch.cdist(x[:0], y, p), torch.cdist(x[:, :0], y[:, :0], p)), (x, y)))
            many = make(30, 5, seed=6), make(40, 5, seed=7)
            cases.append(Case("cdist of many", lambda x, y: (torch.cdist(x, y), torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")), many, {"rtol": 1e-4, "atol": 1e-4}))
    all_lowered(cases)


# ---------------------------------------------------------------------------------------------------- attention


@pytest.mark.parametrize("dtype", [F32, torch.bfloat16], ids=str)
def test_attention(dtype):
    sdpa = F.scaled_dot_product_attention
    make = lambda *sizes, seed=0: plain(dtype, *sizes, seed=seed)
    q, k, v = make(2, 4, 5, 8), make(2, 4, 7, 8, seed=1), make(2, 4, 7, 8, seed=2)
    keep = plain(torch.bool, 5, 7)
    keep[2] = False
    cases = [
        Case("plain", lambda q, k, v: sdpa(q, k, v), (q, k, v)),
        Case("rank 3", lambda q, k, v: sdpa(q[0], k[0], v[0]), (q, k, v)),
        Case("rank 2", lambda q, k, v: sdpa(q[0, 0], k[0, 0], v[0, 0]), (q, k, v)),
        Case("causal", lambda q, k, v: (sdpa(q, k, v, is_causal=True), sdpa(k, q, q, is_causal=True)), (q, k, v)),
        Case("scale", lambda q, k, v: sdpa(q, k, v, scale=0.1), (q, k, v)),
        Case("another width", lambda q, k, v: sdpa(q, k, v[..., :6]), (q, k, v)),
        Case("bool mask", lambda q, k, v, m: (sdpa(q, k, v, m), sdpa(q[0], k[0], v[0], m)), (q, k, v, keep)),
        Case("masks", lambda q, k, v, m: (sdpa(q, k, v, m), sdpa(q, k, v, m[:1]), sdpa(q, k, v, m[None, None, :, :1])), (q, k, v, make(5, 7, seed=3))),
        Case("mask a head", lambda q, k, v, m: sdpa(q, k, v, m), (q, k, v, make(2, 4, 5, 7, seed=3))),
        Case("grouped", lambda q, k, v: sdpa(q, k[:, :2], v[:, :2], enable_gqa=True), (q, k, v)),
        Case("transposed", lambda q, k: sdpa(q.transpose(1, 2), k.transpose(1, 2), k.transpose(1, 2)), (make(2, 5, 4, 8), make(2, 7, 4, 8))),
        Case("empty", lambda q, k, v: (sdpa(q[:0], k[:0], v[:0]), sdpa(q[:, :, :0], k, v), sdpa(q, k[:, :, :0], v[:, :, :0])), (q, k, v)),
        Case("a large product", lambda q, k, v: sdpa(q * 30, k * 30, v), (q, k, v)),
    ]
    all_lowered(cases)


def test_attention_with_dropout_is_left_to_torch():
    q = plain(F32, 1, 2, 4, 8)
    lowered = pallascope.lower(lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=0.5), q)
    assert lowered.log["torch"] == ["aten.scaled_dot_product_attention.default"]


class Block(nn.Module):
    def __init__(self, causal=False, width=16):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.causal = causal

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        made = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return x + self.out(made.transpose(1, 2).flatten(2))


class Image(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.up = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, stride=2, groups=2), nn.ConvTranspose2d(8, 4, 2, stride=2)

    def forward(self, x):
        return self.up(torch.relu(self.second(torch.relu(self.first(x)))))


class Grouped(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        q = self.q(x).unflatten(-1, (4, 4)).transpose(1, 2)
        k, v = self.kv(x).unflatten(-1, (2, 2, 4)).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


TRAINED = {
    "causal": (lambda: Block(True), (2, 5, 16)), "grouped": (Grouped, (2, 5, 16)),
    "image": (Image, (2, 3, 9, 9)), "multi-head": (lambda: nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), (2, 5, 16)),
}


@pytest.mark.parametrize("name", TRAINED)
def test_training_leaves_nothing_to_torch(name):
    make, sizes = TRAINED[name]
    torch.manual_seed(1)
    eager = make()
    torch.manual_seed(1)
    ours = make()
    x = torch.randn(sizes)
    a, b = [x.clone().requires_grad_() for _ in range(2)]
    expected, got = eager(a), torch.compile(ours, backend="pallascope", dynamic=False)(b)
    expected.square().sum().backward()
    got.square().sum().backward()
    close = lambda p, q: torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-4)
    close(got, expected)
    close(b.grad, a.grad)
    for p, q in zip(ours.parameters(), eager.parameters()):
        close(p.grad, q.grad)
    assert not [op for entry in pallascope.compile_log() for op in entry["torch"]]


# --------------------------------------------------------------------------------------------------- recurrences


def test_recurrent_layers_and_cells():
    torch.manual_seed(2)
    x = torch.randn(3, 2, 4)
    layers = [nn.LSTM(4, 6, 2, bidirectional=True), nn.RNN(4, 6, bias=False), nn.RNN(4, 6, nonlinearity="relu"),
              nn.LSTM(4, 6, proj_size=2, batch_first=True), nn.GRU(4, 6, bidirectional=True)]
    cells = [nn.LSTMCell(4, 6), nn.GRUCell(4, 6), nn.RNNCell(4, 6, bias=False)]
    cases = [Case(str(m), lambda x, m=m: m(x), (x,)) for m in layers]
    cases += [Case(str(m), lambda x, m=m: (m(x[0]), m(x[1, 0])), (x,)) for m in cells]
    all_lowered(cases)


def test_what_pytorch_refuses_is_refused():
    """Booleans have no matrix product and short integers no dilated convolution: PyTorch's own error comes."""
    ones = torch.ones(4, 4, dtype=torch.bool)
    image, window = torch.ones(1, 2, 5, 5, dtype=torch.int32), torch.ones(3, 2, 2, 2, dtype=torch.int32)
    for function, args in ((lambda x: x @ x, (ones,)), (lambda x, w: F.conv2d(x, w, dilation=2), (image, window))):
        with pytest.raises(RuntimeError, match="not implemented for"):
            pallascope.lower(function, *args).call(*args)


def in_memory_order(tensor, order):
    """The same tensor with its dimensions lying in this order in memory, outermost first."""
    back = [order.index(d) for d in range(tensor.dim())]
    return tensor.permute(order).contiguous().permute(back)


def test_convolutions_of_operands_in_any_order_in_memory():
    """Strides, padding and dilation differ by dimension: they belong to the dimension, wherever it lies."""
    torch.manual_seed(0)
    orders = [(0, 1, 2, 3), (0, 2, 3, 1), (0, 1, 3, 2), (3, 2, 1, 0)]
    cases = []
    for x_order in orders:
        for w_order in orders:
            x, w = in_memory_order(torch.randn(2, 2, 5, 4), x_order), in_memory_order(torch.randn(3, 2, 2, 3), w_order)
            turned = in_memory_order(torch.randn(2, 3, 2, 3), w_order)

            def f(x, w, turned):
                y = torch.ops.aten.convolution(x, w, None, [1, 2], [1, 0], [2, 1], False, [0, 0], 1)
                z = torch.ops.aten.convolution(x, turned, None, [1, 2], [1, 0], [1, 1], True, [0, 1], 1)
                grads = torch.ops.aten.convolution_backward(y * 0.5, x, w, None, [1, 2], [1, 0], [2, 1], False, [0, 0], 1, [True, True, False])
                return y, z, grads[0], grads[1]

            cases.append(Case(f"{x_order} {w_order}", f, (x, w, turned), {"rtol": 1e-4, "atol": 1e-4}))
    assert_agree(cases)
