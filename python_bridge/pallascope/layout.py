"""Tensors with exactly the sizes, strides and offset that a meta says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def clone_all(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies with the same sizes, strides and offsets; tensors that share a storage share the copy of it."""
    storages: dict[int, torch.UntypedStorage] = {}
    copies = []
    for t in tensors:
        t = t.detach()
        key = t.untyped_storage()._cdata
        if key not in storages:
            storages[key] = t.untyped_storage().clone()
        copies.append(
            torch.empty(0, dtype=t.dtype).set_(storages[key], t.storage_offset(), t.size(), t.stride())
        )
    return copies


def storage_elements(meta: dict[str, Any]) -> int:
    """How many elements the storage of a TENSOR needs, its offset included; 0 elements need none."""
    if any(s == 0 for s in meta["sizes"]):
        return meta["offset"]
    return meta["offset"] + 1 + sum((n - 1) * s for n, s in zip(meta["sizes"], meta["strides"], strict=True))


def shape_as(flat: torch.Tensor, meta: dict[str, Any]) -> torch.Tensor:
    """A view of a storage's elements with the sizes, strides and offset of a TENSOR."""
    return torch.as_strided(flat, meta["sizes"], meta["strides"], meta["offset"])


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether some element lies in both. Halves of one tensor that do not meet do not overlap."""
    if a.numel() == 0 or b.numel() == 0 or a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
        return False
    if a is b:
        return True
    ends = []
    for t in (a, b):
        first = t.storage_offset() * t.element_size()
        reach = sum((n - 1) * s for n, s in zip(t.size(), t.stride(), strict=True))
        ends.append((first, first + (reach + 1) * t.element_size()))
    if ends[0][1] <= ends[1][0] or ends[1][1] <= ends[0][0]:
        return False
    if a.element_size() != b.element_size():
        return True  # their ranges meet; which bytes do would have to be counted one by one
    seen = torch.zeros(max(e for _, e in ends) // a.element_size(), dtype=torch.bool)
    seen.as_strided(a.size(), a.stride(), a.storage_offset()).fill_(True)
    return bool(seen.as_strided(b.size(), b.stride(), b.storage_offset()).any())
