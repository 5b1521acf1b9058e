"""Statements that move elements: views, copies in another order, joining, padding, gathers and functional scatters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .generate import Growing

Made = Any
ranked = lambda t: t.dim() > 0  # noqa: E731
matrix = lambda t: t.dim() >= 2  # noqa: E731


def permutation(g: Growing, rank: int) -> list[int]:
    order = list(range(rank))
    g.rng.shuffle(order)
    return order


def reorder(g: Growing) -> Made:
    name = g.pick(matrix)
    rank = g.tensor(name).dim()
    a, b = g.dim(name), g.dim(name)
    return g.rng.choice((f"{{0}}.transpose({a}, {b})", f"{{0}}.permute({permutation(g, rank)})", "{0}.mT", f"{{0}}.movedim({a}, {b})", f"{{0}}.swapaxes({a}, {b})",
                         "{0}.t()" if rank == 2 else "{0}.mT", f"{{0}}.permute({permutation(g, rank)}).contiguous()", f"torch.rot90({{0}}, 1, (0, 1))")), name  # fmt: skip


def slice_text(g: Growing, extent: int) -> str:
    start = g.rng.choice((None, None, 0, 1, -1, -2, extent // 2))
    stop = g.rng.choice((None, None, None, -1, extent - 1, extent + 3))
    step = g.rng.choice((None, None, 2, 3))
    made = f"{'' if start is None else start}:{'' if stop is None else stop}"
    return made if step is None else f"{made}:{step}"


def subscript(g: Growing, x: torch.Tensor) -> str:
    """Basic indexing of some of the dimensions."""
    parts = []
    for extent in x.shape:
        kind = g.rng.random()
        if kind < 0.45:
            parts.append(slice_text(g, extent))
        elif kind < 0.6 and extent > 0:
            parts.append(str(g.rng.randrange(-extent, extent)))
        elif kind < 0.68:
            parts.append("None")
            parts.append(":")
        else:
            parts.append(":")
        if g.chance(0.15):
            break
    if len(parts) < x.dim() and g.chance(0.3):
        parts.insert(0, "...")
    return "[" + ", ".join(parts) + "]"


def sliced(g: Growing) -> Made:
    name = g.pick(ranked)
    x = g.tensor(name)
    d = g.dim(name)
    extent = x.shape[d]
    kind = g.rng.randrange(8)
    if kind < 4:
        return "{0}" + subscript(g, x), name
    if kind == 4 and extent:
        return f"{{0}}.select({d}, {g.rng.randrange(-extent, extent)})", name
    if kind == 5 and extent:
        start = g.rng.randrange(extent)
        return f"{{0}}.narrow({d}, {start}, {g.rng.randint(1, extent - start)})", name
    if kind == 6 and extent > 1:
        return f"{{0}}.chunk(2, {d})", name, 2
    if kind == 7 and extent in (2, 3):
        return f"{{0}}.unbind({d})", name, extent
    return f"torch.split({{0}}, {max(extent // 2, 1)}, {d})[{g.rng.choice((0, -1))}]", name


def factorings(g: Growing, count: int) -> tuple[int, ...]:
    sizes = []
    while count > 1 and len(sizes) < 4:
        divisors = [d for d in range(2, count + 1) if count % d == 0]
        chosen = g.rng.choice(divisors)
        sizes.append(chosen)
        count //= chosen
    if count > 1:
        sizes.append(count)
    if g.chance(0.2):
        sizes.insert(g.rng.randrange(len(sizes) + 1), 1)
    g.rng.shuffle(sizes)
    return tuple(sizes)


def reshape(g: Growing) -> Made:
    name = g.pick(lambda t: t.numel() > 0)
    x = g.tensor(name)
    kind = g.rng.randrange(7)
    if kind < 3:
        return f"{{0}}.{g.rng.choice(('reshape', 'reshape', 'view'))}({factorings(g, x.numel())})", name
    if kind == 3 and x.dim() >= 2:
        a = g.rng.randrange(x.dim() - 1)
        return f"{{0}}.flatten({a}, {g.rng.randrange(a + 1, x.dim())})", name
    if kind == 4 and x.dim():
        d = g.dim(name)
        return f"{{0}}.unflatten({d}, {factorings(g, x.shape[d]) or (1, 1)})", name
    if kind == 5:
        return g.rng.choice(("{0}.reshape(-1)", "{0}.contiguous().view(-1)", "{0}.ravel()", "{0}.flatten()")), name
    sizes = tuple(x.shape)
    return f"{{0}}.reshape({sizes[1:] + sizes[:1]})", name


def ones(g: Growing) -> Made:
    name = g.pick()
    x = g.tensor(name)
    kind = g.rng.randrange(6)
    if kind < 2:
        return f"{{0}}.unsqueeze({g.rng.randint(0, x.dim())})", name
    if kind == 2:
        return g.rng.choice(("{0}.squeeze()", f"{{0}}.squeeze({g.dim(name)})")), name
    if kind == 3:
        return f"{{0}}.expand({g.rng.choice((1, 2, 3))}, {', '.join(['-1'] * x.dim())})", name
    if kind == 4 and x.dim():
        d = g.rng.randrange(x.dim())
        return f"{{0}}.unsqueeze({d}).expand({', '.join(['-1'] * d + ['2'] + ['-1'] * (x.dim() - d))})", name
    other = g.broadcastable(name)
    return g.rng.choice(("{0}.expand_as({1})", "torch.broadcast_tensors({0}, {1})[0]", "torch.broadcast_tensors({0}, {1})[1]")), (name, other)


def window(g: Growing) -> Made:
    name = g.pick(ranked)
    x = g.tensor(name)
    d = g.dim(name)
    kind = g.rng.randrange(9)
    if kind < 2 and x.dim() >= 2:
        pair = g.rng.sample(range(x.dim()), 2)
        return f"{{0}}.diagonal({g.rng.choice((0, 0, 1, -1))}, {pair[0]}, {pair[1]})", name
    if kind < 4 and x.shape[d] > 1:
        size = g.rng.randint(1, x.shape[d])
        return f"{{0}}.unfold({d}, {size}, {g.rng.choice((1, 1, 2, 3))})", name
    if kind < 6:
        dims = [k for k in range(x.dim()) if g.chance(0.6)] or [d]
        return f"torch.flip({{0}}, {dims})", name
    if kind == 6:
        return f"torch.roll({{0}}, {g.rng.choice((1, -1, 2, 7))}, {d})", name
    if kind == 7:
        return g.rng.choice(("torch.tril({0})", "torch.triu({0}, 1)", "torch.diag_embed({0})", "torch.roll({0}, 2)", "torch.tril({0}, -1)", "torch.diag({0})")), name
    # Within what the tensor's elements span.
    low, high = x.storage_offset(), x.storage_offset() + sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
    if x.numel() == 0 or x.dim() == 0:
        return None
    sizes, strides, room = [], [], high - low
    for _ in range(g.rng.choice((1, 2, 2, 3))):
        step = g.rng.choice((0, 1, 1, 2, 3, 4))
        count = g.rng.randint(1, 1 + min(room // step if step else 3, 5))
        sizes.append(count)
        strides.append(step)
        room -= (count - 1) * step
    offset = low + (g.rng.randint(0, room) if room else 0)
    return f"torch.as_strided({{0}}, {tuple(sizes)}, {tuple(strides)}, {offset})", name


def join(g: Growing) -> Made:
    name = g.pick()
    x = g.tensor(name)
    kind = g.rng.randrange(8)
    if kind < 2 and x.dim():
        d = g.rng.randrange(x.dim())
        rest = [n for k, n in enumerate(x.shape) if k != d]
        other = g.pick(lambda t: t.dim() == x.dim() and [n for k, n in enumerate(t.shape) if k != d] == rest)
        third = g.pick(lambda t: t.dim() == x.dim() and [n for k, n in enumerate(t.shape) if k != d] == rest)
        return g.rng.choice((f"torch.cat([{{0}}, {{1}}], {d})", f"torch.cat([{{1}}, {{0}}, {{2}}], {d})")), (name, other, third)
    if kind == 2:
        return f"torch.stack([{{0}}, {{1}}], {g.rng.randint(0, x.dim())})", (name, g.pick(lambda t: t.shape == x.shape))
    if kind < 5 and x.dim():
        count = g.rng.randint(1, min(x.dim(), 2))
        sizes = [g.rng.choice((0, 1, 2, -1 if min(x.shape) > 2 else 1)) for _ in range(2 * count)]
        return f"F.pad({{0}}, {tuple(sizes)}, value={g.rng.choice((0, 1.5, -1))})", name
    if kind == 5 and x.dim() in (2, 3):
        return f"F.pad({{0}}, {tuple(g.rng.choice((0, 1, 2)) for _ in range(2))}, mode='{g.rng.choice(('reflect', 'replicate', 'circular'))}')", name
    if kind == 6:
        return f"{{0}}.repeat({', '.join(str(g.rng.choice((1, 2, 2, 3))) for _ in range(x.dim() + g.rng.choice((0, 0, 1))))})", name
    return g.rng.choice((f"torch.repeat_interleave({{0}}, 2, {g.dim(name)})", "torch.tile({0}, (2,))", "{0}.clone()", "{0}.contiguous()",
                         "{0}.clone(memory_format=torch.contiguous_format)", "torch.zeros_like({0})", "torch.ones_like({0}) + {0}", "torch.meshgrid({0}, {0}, indexing='ij')[0]")), name  # fmt: skip


def gather(g: Growing) -> Made:
    name = g.pick(ranked)
    x = g.tensor(name)
    d = g.rng.randrange(x.dim())
    extent = x.shape[d]
    small = (g.rng.choice((1, 2, 3, 4)),) if g.chance(0.6) else (2, g.rng.choice((1, 2, 3)))
    kind = g.rng.randrange(9)
    if kind == 0:
        return f"torch.index_select({{0}}, {d}, {{1}})", (name, g.indices(small[:1], extent, dtype=g.rng.choice((torch.int64, torch.int32))))
    if kind < 3:
        sizes = tuple(min(n, 3) if k != d else g.rng.randint(1, 4) for k, n in enumerate(x.shape))
        return f"torch.gather({{0}}, {d}, {{1}})", (name, g.indices(sizes, extent))
    if kind < 5:
        return f"{{0}}[{':, ' * d}{{1}}]", (name, g.indices(small, extent, True))
    if kind == 5 and x.dim() >= 2:
        a = g.indices(small, x.shape[0], True)
        b = g.indices(small, x.shape[1], True)
        return g.rng.choice(("{0}[{1}, {2}]", "{0}[{1}, None, {2}]", "{0}[{1}[:, None], {2}]")), (name, a, b)
    if kind == 6 and x.dim() >= 3:
        return "{0}[{1}, :, {2}]", (name, g.indices(small, x.shape[0]), g.indices(small, x.shape[2]))
    if kind == 7:
        return "torch.take({0}, {1})", (name, g.indices(small, x.numel()))
    if x.dim() == 2:
        return "F.embedding({1}, {0})", (name, g.indices(small, extent if d == 0 else x.shape[0]))
    return f"torch.take_along_dim({{0}}, {{1}}, {d})", (name, g.indices(tuple(1 if k != d else 2 for k in range(x.dim())), extent))


def scattered(g: Growing) -> Made:
    """Functional scatters: the tensor is kept."""
    name = g.pick(ranked)
    x = g.tensor(name)
    d = g.rng.randrange(x.dim())
    extent = x.shape[d]
    kind = g.rng.randrange(9)
    if kind == 0:
        sizes = tuple(x.shape[:d]) + (len(range(*slice(1, None, 2).indices(extent))),) + tuple(x.shape[d + 1 :])
        return f"torch.slice_scatter({{0}}, {{1}}, {d}, 1, None, 2)", (name, g.input(sizes, x.dtype))
    if kind == 1 and extent:
        return f"torch.select_scatter({{0}}, {{1}}, {d}, {g.rng.randrange(-extent, extent)})", (name, g.input(tuple(n for k, n in enumerate(x.shape) if k != d), x.dtype))
    if kind == 2 and x.dim() >= 2:
        return "torch.diagonal_scatter({0}, {1})", (name, g.input((*x.shape[2:], min(x.shape[:2])), x.dtype))
    if kind == 3:
        sizes = tuple(min(n, 3) for n in x.shape)
        return f"torch.scatter_add({{0}}, {d}, {{1}}, {{2}})", (name, g.indices(sizes, extent), g.input(sizes, x.dtype, "ties"))
    if kind == 4:
        sizes = tuple(1 if k == d else n for k, n in enumerate(x.shape))
        return f"torch.scatter({{0}}, {d}, {{1}}, {g.rng.choice((1, 0, 2.5))})", (name, g.indices(sizes, extent))
    if kind == 5:
        sizes = tuple(x.shape[:d]) + (3,) + tuple(x.shape[d + 1 :])
        return f"torch.index_add({{0}}, {d}, {{1}}, {{2}})", (name, g.indices((3,), extent), g.input(sizes, x.dtype, "ties"))
    if kind == 6:
        sizes = (2,) + tuple(x.shape[1:])
        return "torch.index_put({0}, ({1},), {2}, accumulate=True)", (name, g.indices((2,), x.shape[0]), g.input(sizes, x.dtype, "ties"))
    if kind == 7:
        return f"torch.index_fill({{0}}, {d}, {{1}}, 2)", (name, g.indices((2,), extent))
    sizes = tuple(min(n, 3) for n in x.shape)
    return f"torch.scatter_reduce({{0}}, {d}, {{1}}, {{2}}, '{g.rng.choice(('amax', 'sum', 'amin', 'mean'))}')", (name, g.indices(sizes, extent), g.input(sizes, x.dtype, "ties"))


TABLE = [(9, reorder), (12, sliced), (8, reshape), (7, ones), (7, window), (8, join), (6, gather), (4, scattered)]
