"""Calls pallascope.lower and eager PyTorch on the same tensors and compares dtype, sizes, strides and values.

A case is a name, a function of tensors and its tensors. Many cases go through one traced function with many
results, because a compile costs far more than a kernel; a group that fails is run case by case, so that the
message names those that fail.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
for path in (str(ROOT / "build" / "python"), str(ROOT / "python_bridge")):
    if path not in sys.path:
        sys.path.insert(0, path)

import pallascope  # noqa: E402

MODES = ("steady", "debug")
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
DTYPES = (*FLOATS, *INTEGERS, torch.bool)


@dataclass
class Case:
    name: str
    function: Callable[..., Any]
    args: tuple[torch.Tensor, ...]
    tolerance: dict[str, float] = field(default_factory=dict)


def like(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same sizes, strides and offset over storage of its own."""
    storage = tensor.detach().untyped_storage().clone()
    made = torch.empty(0, dtype=tensor.dtype)
    return made.set_(storage, tensor.storage_offset(), tensor.size(), tensor.stride())


def leaves(value: Any) -> list[Any]:
    return torch.utils._pytree.tree_leaves(value)


def strides_of(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(tensor.stride())


def compare(got: Any, want: Any, tolerance: dict[str, float] | None = None, strides: bool = True) -> str:
    """What differs, in one line; empty if nothing does."""
    got, want = leaves(got), leaves(want)
    if len(got) != len(want):
        return f"{len(got)} results for eager's {len(want)}"
    for k, (g, w) in enumerate(zip(got, want)):
        if not isinstance(w, torch.Tensor):
            if g != w:
                return f"result {k} is {g!r}, eager's {w!r}"
            continue
        if g.dtype != w.dtype or g.shape != w.shape:
            return f"result {k} is {g.dtype} {tuple(g.shape)}, eager's {w.dtype} {tuple(w.shape)}"
        if strides and w.numel() and strides_of(g) != strides_of(w):
            return f"result {k} has strides {strides_of(g)}, eager's {strides_of(w)} (sizes {tuple(w.shape)})"
        try:
            torch.testing.assert_close(g, w.detach(), equal_nan=True, **(tolerance or {}))
        except AssertionError as error:
            return f"result {k}: " + " ".join(str(error).split())
    return ""


def run(function: Callable[..., Any], args: tuple[Any, ...], modes: Iterable[str] = MODES, **options: Any) -> str:
    """Lowers `function` on `args` and compares both modes, results and arguments, with eager."""
    copies = torch.utils._pytree.tree_map_only(torch.Tensor, like, args)
    with torch.no_grad():
        want = function(*copies)
    lowered = pallascope.lower(function, *torch.utils._pytree.tree_map_only(torch.Tensor, like, args), **options)
    for mode in modes:
        mine = torch.utils._pytree.tree_map_only(torch.Tensor, like, args)
        got = lowered.call(*mine, mode=mode)
        if difference := compare(got, want):
            return f"{mode}: {difference}"
        if difference := compare(mine, copies):
            return f"{mode}: argument {difference}"
    return ""


def failures(cases: list[Case], modes: Iterable[str] = ("steady",), left: tuple[str, ...] | None = None) -> list[str]:
    """The cases that do not agree with eager, one line each; with `left`, no other operators may be left to PyTorch."""
    copies = [tuple(like(t) for t in c.args) for c in cases]
    with torch.no_grad():
        want = [c.function(*a) for c, a in zip(cases, copies)]

    def all_of_them(*groups: tuple[torch.Tensor, ...]) -> list[Any]:
        return [c.function(*a) for c, a in zip(cases, groups)]

    try:
        lowered = pallascope.lower(all_of_them, *[tuple(like(t) for t in c.args) for c in cases])
        found = []
        if left is not None:
            found += [f"{op} is left to PyTorch" for op in sorted(set(lowered.log["torch"]) - set(left))]
        for mode in modes:
            got = lowered.call(*[tuple(like(t) for t in c.args) for c in cases], mode=mode)
            for c, g, w in zip(cases, got, want):
                if difference := compare(g, w, c.tolerance):
                    found.append(f"{c.name} ({mode}): {difference}")
        return found
    except Exception as error:
        if len(cases) == 1:
            return [f"{cases[0].name}: {type(error).__name__}: {str(error)[:600]}"]
        middle = len(cases) // 2
        found = failures(cases[:middle], modes, left) + failures(cases[middle:], modes, left)
        return found or [f"only together: {type(error).__name__}: {str(error)[:600]}"]


def assert_agree(cases: list[Case], modes: Iterable[str] = ("steady",), left: tuple[str, ...] | None = None) -> None:
    assert cases, "no case"
    found = failures(cases, modes, left)
    assert not found, f"{len(found)} of {len(cases)} cases differ:\n" + "\n".join(found)


# ------------------------------------------------------------------------------------------------------ tensors


def values(dtype: torch.dtype, count: int, seed: int = 0) -> torch.Tensor:
    """`count` values of a dtype, special ones first."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(count, generator=generator) > 0.5
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        special = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 0.5, -0.5, 1.5, -2.5, 1e-3]
        special += [float(info.max), float(info.min), 3.0, -7.0, 2.0, 100.0, -100.0]
        made = torch.randn(count, generator=generator, dtype=torch.float64) * 2
    else:
        info = torch.iinfo(dtype)
        special = [0, 1, 2, 3, 7, info.max, info.min, info.max - 1, 5, 100]
        special += [-1, -2, -3, -7, -100] if info.min < 0 else [200, 255]
        made = torch.randint(max(info.min, -20), min(info.max, 20), (count,), generator=generator)
    some = torch.tensor(special, dtype=torch.float64 if dtype.is_floating_point else torch.int64).to(dtype)
    made = made.to(dtype)
    made[: min(count, len(some))] = some[:count]
    return made[torch.randperm(count, generator=generator)]


def plain(dtype: torch.dtype, *sizes: int, seed: int = 0) -> torch.Tensor:
    """Values without specials: normal floats, small integers without zero."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(sizes, generator=generator) > 0.5
    if dtype.is_floating_point:
        return torch.randn(sizes, generator=generator, dtype=torch.float64).to(dtype)
    made = torch.randint(1, 10, sizes, generator=generator)
    return (made if dtype == torch.uint8 else made * (torch.rand(sizes, generator=generator) > 0.5).mul(2).sub(1)).to(dtype)


def layouts(make: Callable[[int], torch.Tensor]) -> dict[str, torch.Tensor]:
    """A tensor in each layout; `make(n)` gives n values of the dtype."""
    return {
        "contiguous": make(42).reshape(6, 7),
        "transposed_square": make(36).reshape(6, 6).t(),
        "step": make(6 * 14).reshape(6, 14)[:, ::2],
        "row_step": make(12 * 5).reshape(12, 5)[1::2],
        "expanded": make(7).expand(6, 7),
        "expanded_column": make(6).reshape(6, 1).expand(6, 7),
        "size_one": make(8).reshape(8, 1),
        "size_one_odd_stride": torch.as_strided(make(40), (1, 8), (3, 5)),
        "size_zero": make(1)[:0].reshape(0, 3),
        "rank_zero": make(1).reshape(()),
        "offset": make(40)[3:33].reshape(5, 6),
        "permuted": make(24).reshape(2, 3, 4).permute(2, 0, 1),
        "channels_last": make(48).reshape(1, 2, 6, 4).permute(0, 3, 1, 2),
    }
