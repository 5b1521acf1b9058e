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
