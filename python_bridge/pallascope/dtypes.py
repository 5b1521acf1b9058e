"""The short dtype names of the trace format, beside torch's."""

from __future__ import annotations

import torch

from .errors import PallascopeError

SHORT_TO_TORCH: dict[str, torch.dtype] = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "c32": torch.complex32,
    "c64": torch.complex64,
    "c128": torch.complex128,
    "u16": torch.uint16,
    "u32": torch.uint32,
    "u64": torch.uint64,
    "f8e4m3fn": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
}
TORCH_TO_SHORT = {dtype: short for short, dtype in SHORT_TO_TORCH.items()}


def short_name(dtype: torch.dtype, where: str = "") -> str:
    """`f32` for torch.float32. Raises PallascopeError (unknown_dtype) for a dtype that the format lacks."""
    try:
        return TORCH_TO_SHORT[dtype]
    except KeyError:
        raise PallascopeError(
            "unknown_dtype",
            f"the dtype {dtype} is not known to Pallascope",
            where,
            "convert the tensor to one of: " + ", ".join(SHORT_TO_TORCH),
        ) from None


def torch_dtype(name: str, where: str = "") -> torch.dtype:
    """torch.float32 for `f32` or `float32`. Raises PallascopeError (unknown_dtype) for another name."""
    dtype = SHORT_TO_TORCH.get(name)
    if dtype is None:
        candidate = getattr(torch, name, None)
        dtype = candidate if isinstance(candidate, torch.dtype) else None
    if dtype is None:
        raise PallascopeError(
            "unknown_dtype",
            f"the dtype '{name}' is not known",
            where,
            "write one of: " + ", ".join(SHORT_TO_TORCH),
        )
    return dtype
