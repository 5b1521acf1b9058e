"""Inputs for a graph: drawn at random, from a .pt2's weights and samples, from a bundle or from a trace.

A tensor is built exactly as its meta says: sizes, strides (overlapping ones too) and offset, over a storage
that is just large enough. Values are legal for what the graph does with them (see legal.py): indices are in
range, probabilities in 0..1, variances positive, integer divisors not 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .dtypes import torch_dtype
from .errors import PallascopeError
from .layout import shape_as, storage_elements
from .legal import Legal, legal_values


def _draw(count: int, dtype: torch.dtype, legal: Legal, generator: torch.Generator) -> torch.Tensor:
    if dtype is torch.bool:
        return torch.rand(count, generator=generator) > 0.5
    if dtype.is_complex:
        parts = torch.randn(count, 2, generator=generator, dtype=torch.float32)
        return torch.view_as_complex(parts).to(dtype)
    if dtype.is_floating_point:
        if legal.low is None and legal.high is None:
            flat = torch.randn(count, generator=generator, dtype=torch.float32).to(dtype)
        else:
            low = legal.low if legal.low is not None else legal.high - 4.0
            high = legal.high if legal.high is not None else low + 4.0
            flat = (torch.rand(count, generator=generator, dtype=torch.float32) * (high - low) + low).to(
                dtype
            )
        return flat.sort().values if legal.ascending else flat
    info = torch.iinfo(dtype)
    usual = (0, 255) if dtype is torch.uint8 else (0, 20) if info.min == 0 else (-10, 10)
    low = usual[0] if legal.low is None else int(legal.low)
    high = usual[1] if legal.high is None else int(legal.high)
    if legal.low is not None and legal.high is None:
        high = low + 20
    if legal.high is not None and legal.low is None:
        low = high - 20
    low, high = max(low, info.min), min(high, info.max)
    if high < low:
        low = high = max(info.min, min(0, info.max))  # an axis of no elements: there is no legal index
    flat = torch.randint(low, high + 1, (count,), generator=generator, dtype=torch.int64)
    if legal.nonzero:
        flat[flat == 0] = 1 if high >= 1 else -1
    return flat.sort().values.to(dtype) if legal.ascending else flat.to(dtype)


def random_tensor(meta: dict[str, Any], seed: int, legal: Legal | None = None) -> torch.Tensor:
    """A tensor with the sizes, strides and offset of `meta`, with values drawn from `seed`.

    Floats are standard normal, integers within -10..10 (u8: 0..255), booleans even odds, unless `legal`
    narrows them.
    """
    dtype = torch_dtype(meta["dtype"])
    legal = legal or Legal()
    generator = torch.Generator().manual_seed(seed)
    flat = _draw(max(storage_elements(meta), 0), dtype, legal, generator)
    tensor = shape_as(flat, meta)
    if legal.ascending and tensor.dim() and tensor.numel():
        # Ascending along the last axis, whatever the strides are.
        tensor.copy_(tensor.to(torch.float64 if tensor.is_floating_point() else torch.int64).sort(-1).values)
        if legal.low == 0 and not tensor.is_floating_point():
            tensor[..., 0] = 0  # offsets of bags start at 0
    return tensor


def random_inputs(
    graph: dict[str, Any], seed: int = 0, known: dict[str, torch.Tensor] | None = None
) -> tuple[list[torch.Tensor], str]:
    """A tensor for each input of a GRAPH, and a sentence on how they were made.

    known  target -> tensor for parameters, buffers and constants (from weights or a trace); the others are
           drawn. The n-th input depends on `seed` and n alone, so that one more input changes no other.
    """
    legal = legal_values(graph)
    tensors, given, ranged = [], 0, 0
    for index, i in enumerate(graph["inputs"]):
        value = (known or {}).get(i["target"]) if i["kind"] != "user_input" else None
        if value is not None:
            given += 1
            tensors.append(_like(value, i))
            continue
        demand = legal.get(i["name"])
        if demand is not None:
            ranged += 1
        tensors.append(random_tensor(i["tensor"], _input_seed(seed, index), demand))
    text = f"{len(tensors) - given} random (seed {seed}"
    text += f", {ranged} of them within the range that the graph needs)" if ranged else ")"
    return tensors, text + (f", {given} given" if given else "")


def _input_seed(seed: int, index: int) -> int:
    return (seed * 1_000_003 + index * 7919 + 17) % (1 << 63)


def _like(value: torch.Tensor, i: dict[str, Any]) -> torch.Tensor:
    """A copy of a given tensor with the layout of an input's meta. Raises PallascopeError
    (invalid_argument)."""
    meta = i["tensor"]
    if list(value.size()) != meta["sizes"] or value.dtype != torch_dtype(meta["dtype"]):
        raise PallascopeError(
            "invalid_argument",
            f"the tensor for '{i['target']}' is {value.dtype} "
            f"{list(value.size())}, the graph has {meta['dtype']} {meta['sizes']}",
            i["name"],
        )
    if list(value.stride()) == meta["strides"] and value.storage_offset() == meta["offset"]:
        return value.detach()
    result = shape_as(torch.zeros(max(storage_elements(meta), 0), dtype=value.dtype), meta)
    if value.numel():
        result.copy_(value) if not any(
            s == 0 and n > 1 for n, s in zip(meta["sizes"], meta["strides"], strict=True)
        ) else _copy_expanded(result, value)
    return result


def _copy_expanded(result: torch.Tensor, value: torch.Tensor) -> None:
    """Copies into a tensor with strides of 0: the elements that share memory hold one value in `value` as
    well."""
    index = tuple(slice(0, 1) if s == 0 else slice(None) for s in result.stride())
    result[index].copy_(value[index])


def sample_inputs(
    graph: dict[str, Any],
    samples: Sequence[torch.Tensor] | dict[str, torch.Tensor],
    known: dict[str, torch.Tensor] | None,
    seed: int,
) -> tuple[list[torch.Tensor], str]:
    """Inputs with the given values for the user inputs (in order, or by name); the rest as random_inputs
    does."""
    tensors, text = random_inputs(graph, seed, known)
    users = [(p, i) for p, i in enumerate(graph["inputs"]) if i["kind"] == "user_input"]
    if isinstance(samples, dict):
        pairs = [(p, i, samples[i["name"]]) for p, i in users if i["name"] in samples]
    else:
        if len(samples) != len(users):
            raise PallascopeError(
                "invalid_argument",
                f"there are {len(samples)} sample inputs, the graph takes {len(users)}",
                graph["name"],
            )
        pairs = [(p, i, v) for (p, i), v in zip(users, samples, strict=True)]
    for position, i, value in pairs:
        tensors[position] = _like(value, i)
    return tensors, f"{len(pairs)} sample inputs, the others: {text}"
