"""How far two tensors of one dtype and one shape are apart, element by element."""

from __future__ import annotations

import torch


def wide(t: torch.Tensor) -> torch.Tensor:
    """The values as float64 or complex128, for differences."""
    return t.to(torch.complex128 if t.dtype.is_complex else torch.float64)


def equal(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Where the two are equal, as a mask; a NaN equals nothing, -0 equals 0."""
    if a.dtype in (torch.uint16, torch.uint32, torch.uint64):
        a, b = (
            a.to(torch.int64),
            b.to(torch.int64),
        )  # torch has few operators for these; the wrap keeps equality
    if a.dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.complex32):
        a, b = wide(a), wide(b)
    return a == b


def difference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """|a - b| as float64: 0 exactly where the two are equal, also for integers that float64 does not hold.

    NaN where one of the two is NaN, or both are the same infinity; infinity where one is infinite, or the
    difference of two float64 is beyond the largest.
    """
    if a.dtype in (torch.int64, torch.uint64):
        if a.dtype == torch.uint64:
            # With the top bit turned the signed order is the unsigned one.
            lowest = torch.iinfo(torch.int64).min
            a, b = a.view(torch.int64) ^ lowest, b.view(torch.int64) ^ lowest
        # The larger less the smaller is right modulo 2^64; only then it is rounded.
        whole = torch.maximum(a, b) - torch.minimum(a, b)
        rounded = whole.to(torch.float64)
        return torch.where(whole < 0, rounded + 2.0**64, rounded)
    return (wide(a) - wide(b)).abs()
