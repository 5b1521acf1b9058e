"""Chains of operators as models have them: normalisations over each axis of square shapes, attention, rotary
embeddings, reductions over several axes, embeddings, and training graphs through torch.compile."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from differential import MODES, Case, assert_agree, compare, like, plain, run

import pallascope  # noqa: E402  (differential puts the package on the path)

f32, f64, bf16, f16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
dtypes = pytest.mark.parametrize("dtype", [f32, f64, bf16, f16], ids=lambda d: str(d).removeprefix("torch."))


@dtypes
def test_softmax_over_each_axis(dtype):
    """Equal extents, so that no axis can be told by its size; ties, rows of -inf, infinities."""
    square, cube = plain(dtype, 5, 5), plain(dtype, 4, 4, 4)
    rows = square.clone()
    rows[1] = float("-inf")
    rows[2, 3] = float("inf")
    rows[3] = 7.0
    # Near 0 eager's 16-bit log_softmax has lost the difference of two rounded numbers.
    wide = {bf16: {"atol": 5e-3, "rtol": 1.6e-2}, f16: {"atol": 5e-4, "rtol": 2e-3}}.get(dtype, {})
    cases = []
    for name, x in {"square": square, "transposed": square.t(), "cube": cube, "permuted": cube.permute(2, 0, 1), "special": rows,
                    "special_t": rows.t(), "rank1": square[0], "rank0": square[0, 0], "one": square[:, :1]}.items():  # fmt: skip
        for d in range(-1, x.dim() - 1) if x.dim() else [0]:
            cases += [
                Case(f"softmax {name} {d}", lambda t, d=d: torch.softmax(t, d), (x,)),
                Case(f"log_softmax {name} {d}", lambda t, d=d: torch.log_softmax(t, d), (x,), wide),
                Case(f"residual {name} {d}", lambda t, d=d: torch.softmax(t * 0.5, d) * t + t.sum(d, keepdim=True), (x,), wide),
            ]
    assert_agree(cases)


@dtypes
def test_layer_norm_over_each_axis(dtype):
    x, w, b = plain(dtype, 6, 6, 6), plain(dtype, 6, seed=1), plain(dtype, 6, seed=2)
    wide = {"atol": 2e-2, "rtol": 2e-2} if dtype in (bf16, f16) else {}
    cases = [
        Case("plain", lambda x, w, b: F.layer_norm(x, (6,)), (x, w, b), wide),
        Case("affine", lambda x, w, b: F.layer_norm(x, (6,), w, b), (x, w, b), wide),
        Case("two axes", lambda x, w, b: F.layer_norm(x, (6, 6)), (x, w, b), wide),
        Case("transposed", lambda x, w, b: F.layer_norm(x.transpose(0, 2), (6,), w), (x, w, b), wide),
        Case("middle", lambda x, w, b: F.layer_norm(x.transpose(1, 2), (6,), w, b).transpose(1, 2), (x, w, b), wide),
        Case("rms", lambda x, w, b: F.rms_norm(x, (6,), w), (x, w, b), wide),
        Case("rms eps", lambda x, w, b: F.rms_norm(x, (6, 6), eps=1e-3), (x, w, b), wide),
        Case("by hand", lambda x, w, b: (x - x.mean(1, True)) * torch.rsqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5) * w + b,
             (x, w, b), wide),
        Case("constant row", lambda x, w, b: F.layer_norm(torch.full_like(x, 3.0), (6,), w, b), (x, w, b), wide),
    ]  # fmt: skip
    assert_agree(cases)


REDUCTIONS = {
    "sum": lambda x, d, k: x.sum(d, k), "mean": lambda x, d, k: x.mean(d, k), "amax": lambda x, d, k: x.amax(d, k),
    "amin": lambda x, d, k: x.amin(d, k), "var": lambda x, d, k: x.var(d, keepdim=k), "std0": lambda x, d, k: x.std(d, correction=0, keepdim=k),
    "logsumexp": lambda x, d, k: torch.logsumexp(x, d, k), "norm": lambda x, d, k: torch.linalg.vector_norm(x, 2, d, k),
    "norm1": lambda x, d, k: torch.linalg.vector_norm(x, 1, d, k), "norm_inf": lambda x, d, k: torch.linalg.vector_norm(x, math.inf, d, k),
    "norm3": lambda x, d, k: torch.linalg.vector_norm(x, 3.5, d, k), "any": lambda x, d, k: (x > 1.5).any(d, k),
    "all": lambda x, d, k: (x > -2).all(d, k), "std_mean": lambda x, d, k: torch.std_mean(x, d, keepdim=k),
    "minus": lambda x, d, k: x - x.sum(d, True), "both": lambda x, d, k: x.sin().sum(d, k) * 2 + 1,
}  # fmt: skip


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (-1, -3), (0, 1, 2), (1, 0)], ids=str)
def test_reductions_over_several_axes(dims):
    cube, odd = plain(f32, 4, 4, 4), plain(f32, 3, 7, 5)[:, ::2].permute(2, 0, 1)
    cases = [
        Case(f"{name} {keep} {tuple(x.shape)}", lambda x, f=f, keep=keep: f(x, dims, keep), (x,))
        for name, f in REDUCTIONS.items() for x, keep in ((cube, False), (odd, True))
    ]  # fmt: skip
    assert_agree(cases)


@pytest.mark.parametrize("dtype", [f32, f64, bf16, f16, torch.int64, torch.int32, torch.uint8, torch.bool], ids=str)
def test_reductions_of_each_dtype(dtype):
    x = plain(dtype, 5, 6)
    ties = torch.tensor([[1, 3, 3, 0], [2, 2, 2, 2], [0, 1, 0, 1]]).to(dtype)
    table = {
        "sum": lambda x: x.sum(), "sum0": lambda x: x.sum(0), "sum_to": lambda x: x.sum(1, dtype=f64), "any": lambda x: x.any(), "all1": lambda x: x.all(1),
        "argmax": lambda x: x.argmax() if x.dtype != torch.bool else x.sum(), "argmax1": lambda x: x.argmax(1) if x.dtype != torch.bool else x.sum(),
        "argmin0": lambda x: x.argmin(0, keepdim=True) if x.dtype != torch.bool else x.sum(), "amax": lambda x: x.amax(1), "amin": lambda x: x.amin(),
        "max": lambda x: x.max(), "min": lambda x: x.min(), "max0": lambda x: tuple(x.max(0)), "min1": lambda x: tuple(x.min(1, keepdim=True)),
        "prod": lambda x: x[:2].prod(0), "rank0": lambda x: x[0, 0].sum() + x[0, 0].amax(), "empty_sum": lambda x: x[:0].sum(0), "empty_all": lambda x: x[:0].all(),
        "empty_prod": lambda x: x[:, :0].prod(1), "mean": lambda x: x.to(f32).mean(0), "count": lambda x: (x > 0).sum(1),
    }  # fmt: skip
    assert_agree([Case(f"{n} {k}", f, (t,)) for n, f in table.items() for k, t in (("x", x), ("ties", ties), ("transposed", x.t()))])


def test_reductions_with_nan_and_infinities():
    x = plain(f32, 4, 5)
    x[0, 1], x[1, 2], x[2, 0], x[2, 4] = float("nan"), float("inf"), float("-inf"), float("inf")
    x[3] = float("-inf")
    names = ("sum", "amax", "amin", "logsumexp", "norm_inf", "mean", "any")
    cases = [Case(f"{n} {d}", lambda x, f=REDUCTIONS[n], d=d: f(x, d, False), (x,)) for n in names for d in ((0,), (1,), (0, 1))]
    cases += [Case(f"arg {d}", lambda x, d=d: (x.argmax(d), x.argmin(d), x.max(d).indices, x.min(d).values), (x,)) for d in (0, 1)]
    cases += [Case("argmax", lambda x: (x.argmax(), x[1:].argmax(), x.max(), x[1:].min()), (x,))]
    assert_agree(cases, MODES)


@pytest.mark.parametrize("count", [7, 8, 9, 15, 16, 17, 127, 129, 1025])
def test_sizes_around_blocks(count):
    x = torch.randn(count, 3), torch.randn(3, count)
    assert not (difference := run(lambda a, b: (torch.softmax(a, 0), (b - b.mean(1, True)).t() * a, a.sum(0), b.amax(1), a.t() @ b.t()), x)), difference


def rope(x, cos, sin):
    a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return x * cos + torch.cat([-b, a], -1) * sin


def rope_pairs(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


@pytest.mark.parametrize("mode", MODES)
def test_rotary_embeddings(mode):
    x, angle = torch.randn(2, 4, 6, 8), torch.randn(6, 8)
    half = angle[:, ::2].contiguous()
    args = x, angle.cos(), angle.sin(), half.cos(), half.sin()

    def f(x, c, s, hc, hs):
        return rope(x, c, s), rope_pairs(x, hc, hs), rope(x.transpose(1, 2), c[:4], s[:4]), rope(rope(x, c, s), c, -s)

    assert not (difference := run(f, args, (mode,))), difference


def attention(q, k, v, mask):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return torch.softmax(scores.masked_fill(~mask, float("-inf")), -1) @ v


def heads(x, w):
    b, t, c = x.shape
    q, k, v = (x @ w).view(b, t, 3, 4, c // 4).permute(2, 0, 3, 1, 4)
    causal = torch.ones(t, t, dtype=torch.bool).tril()
    return attention(q, k, v, causal).transpose(1, 2).reshape(b, t, c)


def grouped(q, k, v):
    k, v = (t[:, :, None].expand(-1, -1, 2, -1, -1).reshape(2, 4, 8, 8) for t in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@pytest.mark.parametrize("mode", MODES)
def test_attention(mode):
    q, k, v = (torch.randn(2, 4, 8, 8) for _ in range(3))
    mask = torch.rand(8, 8) > 0.3
    mask[:, 0] = True
    bias = torch.randn(8, 8)

    def f(q, k, v, mask, bias):
        return (
            attention(q, k, v, mask), F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, mask),
            F.scaled_dot_product_attention(q, k, v, bias, scale=0.3), F.scaled_dot_product_attention(q, k, v, is_causal=True),
            grouped(q, k[:, :2], v[:, :2]), F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
            attention(q.transpose(-1, -2), k.transpose(-1, -2), v, mask.t()),
        )  # fmt: skip

    assert not (difference := run(f, (q, k, v, mask | torch.eye(8, dtype=torch.bool), bias), (mode,))), difference
    assert not (difference := run(heads, (torch.randn(2, 8, 16), torch.randn(16, 48)), (mode,))), difference


@dtypes
def test_products(dtype):
    a, b, v, batch = plain(dtype, 6, 6), plain(dtype, 6, 6, seed=1), plain(dtype, 6, seed=2), plain(dtype, 3, 6, 6, seed=3)
    wide = {"atol": 5e-2, "rtol": 2e-2} if dtype in (bf16, f16) else {}
    table = {
        "mm": lambda a, b, v, c: a @ b, "mm_t": lambda a, b, v, c: a.t() @ b, "mm_tt": lambda a, b, v, c: a.t() @ b.t(), "slices": lambda a, b, v, c: a[::2] @ b[:, 1::2],
        "mv": lambda a, b, v, c: a @ v, "vm": lambda a, b, v, c: v @ a, "dot": lambda a, b, v, c: v @ v, "bmm": lambda a, b, v, c: torch.bmm(c, c.transpose(1, 2)),
        "broadcast": lambda a, b, v, c: c @ a, "broadcast_left": lambda a, b, v, c: a @ c, "addmm": lambda a, b, v, c: torch.addmm(v, a, b, beta=0.5, alpha=2),
        "linear": lambda a, b, v, c: F.linear(c, a, v), "linear_vector": lambda a, b, v, c: F.linear(v, a), "baddbmm": lambda a, b, v, c: torch.baddbmm(c, c, c),
        "expanded": lambda a, b, v, c: v.expand(6, 6) @ a, "expanded_columns": lambda a, b, v, c: a @ v[:, None].expand(6, 6),
        "expanded_both": lambda a, b, v, c: v.expand(3, 6, 6) @ v[:, None].expand(3, 6, 6), "expanded_inner": lambda a, b, v, c: v[:, None].expand(6, 4) @ v.expand(4, 6), "chain": lambda a, b, v, c: ((a @ b).t() @ a + v).relu() @ b, "row": lambda a, b, v, c: a[:1] @ b[:, :1],
        "outer": lambda a, b, v, c: v[:, None] @ v[None], "empty": lambda a, b, v, c: a[:, :0] @ b[:0], "flipped": lambda a, b, v, c: a.flip(0) @ b.flip(1),
    }  # fmt: skip
    assert_agree([Case(n, f, (a, b, v, batch), wide) for n, f in table.items()])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8], ids=str)
def test_integer_products(dtype):
    a, b = torch.arange(25).reshape(5, 5).to(dtype), torch.arange(25, 50).reshape(5, 5).to(dtype)
    assert_agree([Case("mm", lambda a, b: (a @ b, a.t() @ b, a @ b[0]), (a, b))])


def test_indexing():
    w, cube = torch.arange(36.0).reshape(6, 6), torch.arange(125.0).reshape(5, 5, 5)
    i, j = torch.tensor([[0, 5], [2, -1]]), torch.tensor([1, 0])
    k = torch.tensor([[0, 1, 2, 0, 1, 2]] * 3).remainder(6)
    table = {
        "embedding": lambda w, c, i, j, k: F.embedding(i.abs(), w), "embedding_t": lambda w, c, i, j, k: F.embedding(i.abs(), w.t()), "rows": lambda w, c, i, j, k: w[i],
        "columns": lambda w, c, i, j, k: w[:, i], "pairs": lambda w, c, i, j, k: w[i, j], "apart": lambda w, c, i, j, k: c[j, :, j], "middle": lambda w, c, i, j, k: c[:, j, j],
        "outer": lambda w, c, i, j, k: w[i[:, :, None], j], "gather0": lambda w, c, i, j, k: w.gather(0, k), "gather1": lambda w, c, i, j, k: w.gather(1, k),
        "select": lambda w, c, i, j, k: w.index_select(1, j), "select_cube": lambda w, c, i, j, k: c.index_select(1, j) * 2, "of_value": lambda w, c, i, j, k: (w + 1)[i].sum(-1),
        "computed": lambda w, c, i, j, k: w[(i * 2) % 6], "slice_of": lambda w, c, i, j, k: w[1:, ::2][i.abs() % 5], "then_view": lambda w, c, i, j, k: w[i].transpose(0, 1).reshape(2, 12),
        "one": lambda w, c, i, j, k: w[j[:1]], "twice": lambda w, c, i, j, k: w[i][:, j], "rank0_gather": lambda w, c, i, j, k: w[0].gather(0, j), "bytes": lambda w, c, i, j, k: w.to(torch.uint8)[i],
        "one_hot": lambda w, c, i, j, k: (torch.arange(6) == i.abs()[..., None]).to(f32) @ w,
    }  # fmt: skip
    assert_agree([Case(n, f, (w, cube, i, j, k)) for n, f in table.items()], MODES)


def test_chains_of_pieces():
    a, b = torch.arange(16.0).reshape(4, 4), torch.arange(16.0, 32.0).reshape(4, 4)

    def rolled(x):
        return torch.cat([x[1:], x[:1]])

    table = {
        "cat_softmax": lambda a, b: torch.softmax(torch.cat([a, b.t()], 1), 0), "pad_sum": lambda a, b: F.pad(a, (1, 1, 1, 1)).sum(0) - F.pad(b, (0, 2)).sum(0),
        "window": lambda a, b: F.pad(a, (1, 1)).unfold(1, 3, 1).sum(-1), "roll": lambda a, b: rolled(rolled(a)) + rolled(b).t(), "stack_reduce": lambda a, b: torch.stack([a, b, a.t()]).amax(0),
        "interleave": lambda a, b: torch.stack([a, b], 2).reshape(4, 8), "scatter_read": lambda a, b: torch.slice_scatter(a, b[:2], 0, 1, 3)[::2] * 2,
        "scatter_twice": lambda a, b: torch.slice_scatter(torch.slice_scatter(a, b[:2], 0, 0, 2), b[:, :1] * 10, 1, 2, 3), "split_swap": lambda a, b: torch.cat(list(reversed(a.split(1, 1))), 1),
        "causal_mask": lambda a, b: a.masked_fill(torch.ones(4, 4).triu(1).bool(), -1.0), "checker": lambda a, b: torch.where(((torch.arange(4)[:, None] + torch.arange(4)) % 2).bool(), a, b),
        "patches": lambda a, b: a.reshape(2, 2, 2, 2).permute(0, 2, 1, 3).reshape(4, 4).mean(1), "pool": lambda a, b: a.reshape(2, 2, 2, 2).mean((1, 3)),
        "shift": lambda a, b: F.pad(a, (1, -1)) - a, "diff": lambda a, b: a[1:] - a[:-1], "trace": lambda a, b: a.diagonal().sum() + (a * torch.eye(4)).sum(), "outer_sum": lambda a, b: (a[:, None] * b[None]).sum(-1),
        "group_norm": lambda a, b: ((x := a.reshape(2, 8)) - x.mean(1, True)).div(x.std(1, keepdim=True)).reshape(4, 4), "flip_cat": lambda a, b: torch.cat([a.flip(0), a, a.flip(1)]),
        "triangle": lambda a, b: (a.tril() @ b.triu(1)).tril(-1), "repeat_heads": lambda a, b: a[:, None].repeat(1, 3, 1).reshape(12, 4) + b.repeat(3, 1),
    }  # fmt: skip
    cases = [Case(n, f, (a, b)) for n, f in table.items()]
    cases += [Case(f"{n} transposed", f, (a.t(), b[:, ::1].t())) for n, f in table.items()]
    assert_agree(cases, MODES)


@pytest.mark.parametrize("fusion", [True, False])
def test_fusion_changes_no_answer(fusion):
    def f(x, y):
        h = (x.sin() * y).exp()
        return h.sum(0), h.sum(1), torch.softmax(h, 0).t() @ y, h.t() + x, (x.sum() / y).sqrt(), torch.cat([h, x])[::2].amax(1)

    assert not (difference := run(f, (torch.rand(9, 9) + 1, torch.rand(9, 9) + 1), fusion=fusion)), difference


# ------------------------------------------------------------------------------------------------------ training


class Block(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.RMSNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        q, k, v = (t.view(*t.shape[:2], 2, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        h = attention(q, k, v, causal).transpose(1, 2).flatten(2)
        x = x + self.out(h)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.place = nn.Embedding(8, 8), nn.Parameter(torch.randn(8, 8))
        self.mix = nn.Linear(8, 8)

    def forward(self, x):
        i = (x.detach() * 3).long().abs() % 8
        h = self.table(i[..., 0]) + self.place[: x.shape[1]]
        return F.log_softmax(torch.tanh(self.mix(h.transpose(1, 2))) + x, 1)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.channels, self.scale = nn.Linear(8, 8), nn.Linear(8, 8), nn.Parameter(torch.ones(8))

    def forward(self, x):
        x = x + F.silu(self.tokens(x.transpose(1, 2))).transpose(1, 2)
        x = x + self.channels(F.relu(x)) * self.scale
        return F.pad(x, (1, 1))[:, 1:, ::2] * x.std(-1, keepdim=True)[:, 1:] + x.amax((1, 2), keepdim=True)


class Gates(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 8)
        out = []
        for step in x.unbind(1):
            z = torch.sigmoid(self.a(step) + self.b(h))
            h = (1 - z) * h + z * F.leaky_relu(step, 0.1)
            out.append(h)
        return torch.stack(out, 1) * torch.where(x > 0, x, x.exp()) / (1 + x.abs()) - x.clamp(-1, 1)


@pytest.mark.parametrize("model", [Block, Words, Mixer, Gates])
@pytest.mark.parametrize("mode", ["infer", "train"])
def test_models_and_their_gradients(model, mode):
    torch._dynamo.reset()
    torch.manual_seed(0)
    eager = model()
    compiled = torch.compile(eager, backend="pallascope", fullgraph=True)
    for seed in range(2):
        x = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(seed))
        if mode == "infer":
            with torch.no_grad():
                assert not (difference := compare(compiled(x), eager(x))), difference
            continue
        found = []
        for f in (compiled, eager):
            eager.zero_grad()
            mine = like(x).requires_grad_()
            out = f(mine)
            (out * torch.arange(out.numel()).view_as(out).cos()).sum().backward()
            found.append([out.detach(), mine.grad, *[p.grad.clone() for p in eager.parameters()]])
        assert len(found[0]) == 2 + len(list(eager.parameters()))
        assert not (difference := compare(*found, {"rtol": 1e-4, "atol": 1e-5}, strides=False)), difference


def test_training_in_place_and_optimiser_step():
    """Several steps: the weights after them agree, so every gradient of every step did."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    models = [Mixer(), Mixer()]
    models[1].load_state_dict(models[0].state_dict())
    for k, model in enumerate(models):
        step = torch.compile(model, backend="pallascope", fullgraph=True) if k else model
        optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for seed in range(4):
            x = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(seed))
            optimiser.zero_grad()
            step(x).pow(2).mean().backward()
            optimiser.step()
    assert not (difference := compare(list(models[1].parameters()), list(models[0].parameters()), {"rtol": 1e-4, "atol": 1e-5})), difference


def test_compiled_functions_with_mutation_and_aliases():
    torch._dynamo.reset()

    def f(x, y):
        x.mul_(2)
        z = x.t()
        y[1:] += z[1:]
        return z, y.view(-1), x + y

    compiled = torch.compile(f, backend="pallascope", fullgraph=True)
    for _ in range(2):
        args = torch.randn(4, 4), torch.randn(4, 4)
        mine, other = [like(a) for a in args], [like(a) for a in args]
        got, want = compiled(*mine), f(*other)
        assert not compare(got, want) and not compare(mine, other)
        assert got[0].data_ptr() == mine[0].data_ptr() and got[1].data_ptr() == mine[1].data_ptr()


@pytest.mark.parametrize("mask", ["none", "causal", "bool", "float"])
@pytest.mark.parametrize("train", [False, True])
def test_attention_of_torch_compile_is_kernels_and_products(mask, train):
    """What aot_autograd leaves of scaled_dot_product_attention on a CPU, square in length and width of a head."""
    torch._dynamo.reset()
    torch.manual_seed(11)
    q, k, v = [torch.randn(2, 3, 8, 8) for _ in range(3)]
    masks = {
        "none": None,
        "causal": None,
        "bool": (torch.rand(8, 8) > 0.3) | torch.eye(8, dtype=torch.bool),
        "float": torch.randn(2, 1, 8, 8),
    }

    def f(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=masks[mask], is_causal=mask == "causal")

    compiled = torch.compile(f, backend="pallascope", dynamic=False, fullgraph=True)
    pallascope.reset_log()
    if not train:
        with torch.no_grad():
            torch.testing.assert_close(compiled(q, k, v), f(q, k, v))
        assert pallascope.compile_log()[0]["kernels"] >= 1
        assert not pallascope.compile_log()[0]["torch"]
        return
    ours = [t.clone().requires_grad_() for t in (q, k, v)]
    theirs = [t.clone().requires_grad_() for t in (q, k, v)]
    compiled(*ours).square().sum().backward()
    f(*theirs).square().sum().backward()
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-4)
