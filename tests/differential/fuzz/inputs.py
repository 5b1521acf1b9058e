"""Input tensors: sizes, values that tell (indices, ties, specials) and layouts."""

from __future__ import annotations

import random

import torch

from .program import Input

DTYPE_WEIGHTS = {"f32": 40, "f64": 9, "bf16": 9, "f16": 7, "i64": 12, "i32": 6, "i16": 2, "i8": 3, "u8": 3, "b8": 7}
VALUE_WEIGHTS = {"index": 30, "normal": 30, "ties": 22, "negative": 6, "special": 6, "zeros": 3, "extreme": 3}
LAYOUT_WEIGHTS = {
    "contiguous": 34, "permuted": 16, "stepped": 12, "offset": 8, "expanded": 8, "channels_last": 4, "overlapping": 4,
    "one_odd": 3,
}  # fmt: skip


def weighted(rng: random.Random, table: dict[str, int]) -> str:
    return rng.choices(list(table), list(table.values()))[0]


def random_sizes(rng: random.Random, favourites: list[int], rank: int | None = None) -> tuple[int, ...]:
    if rank is None:
        rank = rng.choices(range(5), (5, 15, 40, 28, 12))[0]
    sizes = [rng.choice(favourites) if rng.random() < 0.8 else rng.choice((1, 2, 3, 4, 5, 8)) for _ in range(rank)]
    while torch.Size(sizes).numel() > 300:
        sizes[sizes.index(max(sizes))] //= 2
    return tuple(sizes)


def random_values(rng: random.Random, dtype: torch.dtype, count: int, kind: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rng.getrandbits(31))
    if dtype == torch.bool:
        return torch.rand(count, generator=generator) > 0.5
    floating = dtype.is_floating_point
    if kind == "index":
        # Exact in every dtype, and no two neighbours alike.
        made = torch.arange(count, dtype=torch.float64)
        return (made.remainder(251) - (3 if dtype != torch.uint8 else 0)).div(8 if floating else 1).remainder(100).to(dtype)
    if kind == "zeros":
        return torch.zeros(count, dtype=dtype)
    if kind == "ties" or not floating and kind in ("normal", "negative"):
        low, high = (0, 4) if dtype == torch.uint8 else (-5, 0) if kind == "negative" else (-2, 3) if kind == "ties" else (-20, 20)
        return torch.randint(low, high, (count,), generator=generator).to(dtype)
    if floating:
        made = torch.randn(count, generator=generator, dtype=torch.float64)
        if kind == "negative":
            made = -made.abs() - 0.25
        if kind == "special":
            specials = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0, -1.0, 0.5, 2.0, -2.5], dtype=torch.float64)
            chosen = specials[torch.randint(0, len(specials), (count,), generator=generator)]
            made = torch.where(torch.rand(count, generator=generator) < 0.4, chosen, made)
        if kind == "extreme":
            made = made * 10.0 ** torch.randint(-6, 5, (count,), generator=generator)
        return made.to(dtype)
    info = torch.iinfo(dtype)
    specials = torch.tensor([info.min, info.max, info.max - 1, 0, 1, 2, 3, min(info.max, 1 << 40), max(info.min, -7)])
    return specials[torch.randint(0, len(specials), (count,), generator=generator)].to(dtype)


def dense_strides(sizes: tuple[int, ...], order: list[int]) -> list[int]:
    """Strides without gaps whose dimensions lie in memory as `order` says, outermost first."""
    strides, step = [0] * len(sizes), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(sizes[d], 1)
    return strides


def random_input(rng: random.Random, sizes: tuple[int, ...], dtype: torch.dtype, kind: str | None = None, layout: str | None = None) -> Input:
    kind = kind or weighted(rng, VALUE_WEIGHTS)
    layout = layout or weighted(rng, LAYOUT_WEIGHTS)
    order, offset = list(range(len(sizes))), 0
    stored = list(sizes)
    if layout == "permuted":
        rng.shuffle(order)
    if layout == "channels_last" and len(sizes) >= 3:
        order = [0, *range(2, len(sizes)), 1]
    if layout in ("offset", "stepped"):
        offset = rng.randrange(1, 5)
    steps = [rng.choice((1, 1, 2, 3)) if layout == "stepped" else 1 for _ in sizes]
    stored = [max(n * s, 1) for n, s in zip(sizes, steps)]
    strides = [s * k for s, k in zip(dense_strides(tuple(stored), order), steps)]
    if layout == "expanded":
        kept = [d for d in range(len(sizes)) if rng.random() < 0.5]
        inner = dense_strides(tuple(sizes[d] for d in kept), list(range(len(kept))))
        strides = [0] * len(sizes)
        for d, s in zip(kept, inner):
            strides[d] = s
    if layout == "overlapping":
        strides = [rng.choice((1, 1, 2, 3)) for _ in sizes]
    if layout == "one_odd":
        strides = [s if n > 1 else rng.choice((1, 5, 7)) for n, s in zip(sizes, strides)]
    last = offset + sum((n - 1) * s for n, s in zip(sizes, strides)) if 0 not in sizes else offset
    return Input(random_values(rng, dtype, last + 1 + rng.choice((0, 0, 3)), kind), tuple(sizes), tuple(strides), offset)


def index_input(rng: random.Random, sizes: tuple[int, ...], bound: int, negative: bool, dtype: torch.dtype = torch.int64) -> Input:
    """Indices into an axis of extent `bound`, in a random layout."""
    made = random_input(rng, sizes, dtype, "zeros", rng.choice(("contiguous", "contiguous", "permuted", "stepped", "expanded")))
    low = -bound if negative else 0
    values = torch.tensor([rng.randrange(low, bound) for _ in range(len(made.storage))], dtype=dtype)
    return Input(values, made.sizes, made.strides, made.offset)
