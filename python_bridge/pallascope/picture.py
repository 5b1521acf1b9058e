"""Where two tensors differ and by how much: a picture of cells and a histogram of decades, for JSON."""

from __future__ import annotations

from typing import Any

import torch

from .difference import difference, equal, wide

MOST_ROWS, MOST_COLUMNS = 64, 96
_CHUNK = 1 << 22  # elements at a time: the float64 temporaries of one chunk are 32 MiB each
# Decades that a float64 can be in, and where each begins. float("1e-324") is 0, and 4.9e-324 the least number.
_FIRST, _LAST = -324, 308
_DECADES = torch.tensor([float(f"1e{k}") for k in range(_FIRST, _LAST + 1)], dtype=torch.float64)
_LARGEST = torch.finfo(torch.float64).max


def look(ours: torch.Tensor, eager: torch.Tensor) -> tuple[dict[str, Any], dict[str, Any]]:
    """(picture, histogram) of |ours - eager|, for two tensors of one dtype and one shape.

    The tensor is seen as a matrix of `of_rows` x `of_cols`: the last axis gives the columns, all others
    together the rows, in row-major order ("axes" says so in words). Cell (r, c) of `rows` x `cols` stands for
    the rows r*of_rows//rows .. (r+1)*of_rows//rows - 1, and for columns likewise. Keys of the picture:

    cells     the largest absolute difference within each cell, row by row: numbers, and 0 only where all that
              is finite in the cell is exactly equal
    nan       indices of cells (into `cells`) with a mismatch that no number tells: NaN or an infinity on one
              side only, or two different infinities
    both_nan  indices of cells with NaN on both sides, which is no difference

    The histogram: {"zero": exactly equal elements, "nan": mismatches as above, "both_nan", "first_exponent",
    "counts"}, where counts[k] is how many differences d have 10^e <= d < 10^(e+1) with e = first_exponent + k;
    first_exponent is null when there are none. The four add up to the elements.
    Memory: a few float64 temporaries of one chunk, and a copy of a tensor that no matrix views.
    """
    of_rows, of_cols = matrix_of(list(ours.size()))
    empty = not (of_rows and of_cols)
    rows, cols = (0, 0) if empty else (min(of_rows, MOST_ROWS), min(of_cols, MOST_COLUMNS))
    cells, nan, both = (torch.zeros(rows, cols, dtype=torch.float64) for _ in range(3))
    zeros = nans = boths = 0
    counts = torch.zeros(_LAST - _FIRST + 1, dtype=torch.int64)
    o, e = ours.detach().reshape(of_rows, of_cols), eager.detach().reshape(of_rows, of_cols)
    height, width = max(1, _CHUNK // max(1, of_cols)), _CHUNK
    for top in range(0, 0 if empty else of_rows, height):
        for left in range(0, of_cols, width):
            block = slice(top, top + height), slice(left, left + width)
            distance, mismatch, same_nan = _distances(o[block], e[block])
            _fold(cells, distance, top, left, of_rows, of_cols)
            if mismatch is not None:
                _fold(nan, mismatch.to(torch.float64), top, left, of_rows, of_cols)
                _fold(both, same_nan.to(torch.float64), top, left, of_rows, of_cols)
                nans, boths = nans + int(mismatch.sum()), boths + int(same_nan.sum())
            apart = distance[distance > 0]
            zeros += distance.numel() - apart.numel()
            if apart.numel():
                _count(apart, counts)
    zeros -= nans + boths  # their distance was set to 0
    used = counts.nonzero().reshape(-1)
    low, high = (int(used[0]), int(used[-1]) + 1) if used.numel() else (0, 0)
    picture = {
        "rows": rows,
        "cols": cols,
        "of_rows": of_rows,
        "of_cols": of_cols,
        "axes": axes_text(list(ours.size())),
        "cells": cells.reshape(-1).tolist(),
        "nan": nan.reshape(-1).nonzero().reshape(-1).tolist(),
        "both_nan": both.reshape(-1).nonzero().reshape(-1).tolist(),
    }
    histogram = {
        "zero": zeros,
        "nan": nans,
        "both_nan": boths,
        "first_exponent": _FIRST + low if high else None,
        "counts": counts[low:high].tolist(),
    }
    return picture, histogram


def matrix_of(sizes: list[int]) -> tuple[int, int]:
    """(rows, columns) of the matrix that a tensor is seen as: one number is 1 x 1, a vector one row."""
    rows = 1
    for extent in sizes[:-1]:
        rows *= extent
    return rows, sizes[-1] if sizes else 1


def axes_text(sizes: list[int]) -> str:
    """`rows: axes 0-1 (2x16), columns: axis 2 (64)`."""
    if not sizes:
        return "one number"
    columns = f"columns: axis {len(sizes) - 1} ({sizes[-1]})"
    if len(sizes) == 1:
        return columns
    named = "axis 0" if len(sizes) == 2 else f"axes 0-{len(sizes) - 2}"
    return f"rows: {named} ({'x'.join(map(str, sizes[:-1]))}), {columns}"


def _distances(
    o: torch.Tensor, e: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
    """(finite absolute differences, mask of mismatches that are not finite, mask of NaN on both sides). The
    difference is 0 under both masks; the masks are None where neither has an element."""
    distance = difference(o, e)
    finite = distance.isfinite()
    if bool(finite.all()):
        return distance, None, None
    wo, we = wide(o), wide(e)
    # Two finite float64 can be further apart than the largest one.
    distance = torch.where(~finite & wo.isfinite() & we.isfinite(), _LARGEST, distance)
    same_nan = wo.isnan() & we.isnan()
    mismatch = ~distance.isfinite() & ~same_nan & ~equal(o, e)
    return torch.where(distance.isfinite(), distance, 0.0), mismatch, same_nan


def _fold(cells: torch.Tensor, block: torch.Tensor, top: int, left: int, of_rows: int, of_cols: int) -> None:
    """Raises each of `cells` to the largest of its elements within `block`, whose corner is (top, left).

    Worked example: 5 rows in 2 cells begin at 0 and 2, so that row i is in cell ((i + 1) * 2 - 1) // 5.
    """
    rows, cols = cells.shape
    height, width = block.shape
    # Rows first, then columns: each step is one pass over what is left, however long and thin the block is.
    first_row, last_row = (((i + 1) * rows - 1) // of_rows for i in (top, top + height - 1))
    first_col, last_col = (((i + 1) * cols - 1) // of_cols for i in (left, left + width - 1))
    lines = []
    for r in range(first_row, last_row + 1):
        low, high = max(r * of_rows // rows - top, 0), min((r + 1) * of_rows // rows - top, height)
        lines.append(block[low:high].amax(0))
    strip = torch.stack(lines)
    for c in range(first_col, last_col + 1):
        low, high = max(c * of_cols // cols - left, 0), min((c + 1) * of_cols // cols - left, width)
        column = cells[first_row : last_row + 1, c]
        column.copy_(torch.maximum(column, strip[:, low:high].amax(1)))


def _count(apart: torch.Tensor, counts: torch.Tensor) -> None:
    """Adds the decades of positive finite numbers to `counts`. By comparing with where decades begin: a
    rounded logarithm would put some powers of ten one too low."""
    ends = torch.stack([apart.min(), apart.max()])
    low, high = (int(k) for k in torch.bucketize(ends, _DECADES, right=True) - 1)
    inner = _DECADES[low + 1 : high + 1]
    counts[low : high + 1] += torch.bincount(
        torch.bucketize(apart, inner, right=True), minlength=high - low + 1
    )
