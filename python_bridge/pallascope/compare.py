"""Compares one tensor of ours with eager PyTorch's, and both with float64.

The result is a plain dict that JSON can hold: a float that JSON lacks is "inf", "-inf" or "nan", an index is
a list.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from .difference import difference as distance_of
from .difference import equal as equal_of
from .difference import wide as _wide
from .dtypes import short_name
from .picture import look

# (rtol, atol) of torch.testing.assert_close; every other dtype has to be equal.
TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex32: (1e-3, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
# "As close as eager" allows 10 % more RMSE, and a tenth of a unit in the last place on top, so that two
# results that differ in one rounding of a thousand elements count as equally close. (Chosen, not measured.)
CLOSE_FACTOR, CLOSE_EPS = 1.1, 0.1
_CHUNK = 1 << 22  # elements at a time: the float64 temporaries of one chunk are 32 MiB each


def json_number(value: float) -> float | str:
    """A float as JSON can hold it."""
    value = float(value)
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def json_value(tensor: torch.Tensor) -> Any:
    """A tensor of one element as a JSON value; a complex number as text."""
    value = tensor.item()
    if isinstance(value, complex):
        return str(value)
    return json_number(value) if isinstance(value, float) else value


def tolerance_for(dtype: torch.dtype, given: dict[str, float] | None = None) -> tuple[float, float]:
    """(rtol, atol): torch.testing's for the dtype, each replaced by a given "rtol" or "atol"."""
    rtol, atol = TOLERANCES.get(dtype, (0.0, 0.0))
    if given:
        rtol = rtol if given.get("rtol") is None else float(given["rtol"])
        atol = atol if given.get("atol") is None else float(given["atol"])
    return rtol, atol


def _smallest_normal(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).smallest_normal if dtype.is_floating_point or dtype.is_complex else 0.0


def _ordered(t: torch.Tensor) -> torch.Tensor:
    """Bit patterns as integers that ascend with the value: neighbours differ by 1, +0 and -0 are both 0."""
    bits = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()]
    i = t.view(bits).to(torch.int64)
    lowest = torch.iinfo(bits).min
    return torch.where(i < 0, lowest - i, i)


def ulp_distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """How many representable numbers lie between two float tensors, as float64 (the f64 distance overflows
    i64)."""
    x, y = _ordered(a.contiguous()), _ordered(b.contiguous())
    same_side = (x < 0) == (y < 0)
    return torch.where(
        same_side, (x - y).abs().to(torch.float64), x.to(torch.float64).abs() + y.to(torch.float64).abs()
    )


def _chunks(*tensors: torch.Tensor | None) -> Iterator[tuple[int, list[torch.Tensor | None]]]:
    flat = [None if t is None else t.reshape(-1) for t in tensors]
    for start in range(0, flat[0].numel(), _CHUNK):
        yield start, [None if t is None else t[start : start + _CHUNK] for t in flat]


def _index(position: int, sizes: list[int]) -> list[int]:
    index = []
    for extent in reversed(sizes):
        index.append(position % extent)
        position //= extent
    return index[::-1]


def compare(
    ours: torch.Tensor | None,
    eager: torch.Tensor | None,
    float64: torch.Tensor | None = None,
    *,
    tolerance: dict[str, float] | None = None,
    flushed: torch.Tensor | None = None,
    detail: bool = False,
) -> dict[str, Any]:
    """Figures and a verdict for one output or argument.

    ours, eager  the two results; None for an output that is None
    float64      the result in float64, for the two RMSE figures
    tolerance    {"atol", "rtol"}; by default torch.testing's for eager's dtype
    flushed      eager's result with subnormals flushed to zero, where it was computed: an element that agrees
                 with it is flushed, not wrong
    detail       adds "picture" and "histogram" of the absolute differences (see picture.look); both are null
                 for two that cannot be compared by element

    Keys: verdict ("passed", "failed"), reasons (sentences), dtype, sizes, strides, strides_equal (and
    expected_dtype, expected_sizes, expected_strides), elements, mismatched, flushed, max_abs, max_rel,
    max_ulp (null for integers), rmse, rmse_eager (against float64; null without it), as_close_as_eager (null
    without it), nan, nan_eager, inf, inf_eager, first, worst ({"index", "ours", "eager"}; null when nothing
    is outside the tolerance, or nothing differs), tolerance {"rtol", "atol"}.

    The verdict asks for the same dtype and sizes and for every element to be within the tolerance, equal, NaN
    on both sides, or flushed. Strides are reported and not judged.
    """
    row: dict[str, Any] = {"verdict": "passed", "reasons": []}
    if detail:
        row["picture"], row["histogram"] = look_if_alike(ours, eager)
    if ours is None or eager is None:
        if (ours is None) != (eager is None):
            row.update(
                verdict="failed", reasons=[f"{'ours' if ours is None else 'eager'} is None, the other is not"]
            )
        return row
    sizes = list(ours.size())
    row.update(dtype=short_name(ours.dtype), sizes=sizes, strides=list(ours.stride()))
    # The stride of an axis of extent 1, and every stride of an empty tensor, means nothing.
    row["strides_equal"] = sizes == list(eager.size()) and all(
        a == b
        for a, b, n in zip(ours.stride(), eager.stride(), sizes, strict=True)
        if n > 1 and eager.numel()
    )
    row.update(
        expected_dtype=short_name(eager.dtype),
        expected_sizes=list(eager.size()),
        expected_strides=list(eager.stride()),
        elements=eager.numel(),
    )
    if ours.dtype != eager.dtype:
        row["reasons"].append(f"the dtype is {row['dtype']}, eager's is {row['expected_dtype']}")
    if sizes != row["expected_sizes"]:
        row["reasons"].append(f"the sizes are {sizes}, eager's are {row['expected_sizes']}")
    if row["reasons"]:
        row["verdict"] = "failed"
        if sizes != row["expected_sizes"] or ours.dtype.is_complex != eager.dtype.is_complex:
            return row
        ours = ours.to(eager.dtype)
    rtol, atol = tolerance_for(eager.dtype, tolerance)
    row["tolerance"] = {"rtol": rtol, "atol": atol}
    row.update(_figures(ours.detach(), eager.detach(), float64, flushed, rtol, atol, sizes))
    if row["mismatched"]:
        row["verdict"] = "failed"
        row["reasons"].append(f"{row['mismatched']} of {row['elements']} elements are outside the tolerance")
    return row


def look_if_alike(
    ours: torch.Tensor | None, eager: torch.Tensor | None
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """picture.look, or (None, None) for two that cannot be compared by element."""
    if ours is None or eager is None or ours.size() != eager.size():
        return None, None
    if ours.dtype.is_complex != eager.dtype.is_complex:
        return None, None
    return look(ours.to(eager.dtype), eager)


def _figures(
    ours: torch.Tensor,
    eager: torch.Tensor,
    float64: torch.Tensor | None,
    flushed: torch.Tensor | None,
    rtol: float,
    atol: float,
    sizes: list[int],
) -> dict[str, Any]:
    real = eager.dtype.is_floating_point or eager.dtype.is_complex
    with_ulp = eager.dtype.is_floating_point
    if float64 is not None and (list(float64.size()) != sizes or not real):
        float64 = None
    if flushed is not None and list(flushed.size()) != sizes:
        flushed = None
    tiny = _smallest_normal(eager.dtype) if real else 0.0
    max_abs = max_rel = max_ulp = 0.0
    squares = squares_eager = squares_reference = 0.0
    counted = mismatched = flushed_count = 0
    counts = dict.fromkeys(("nan", "nan_eager", "inf", "inf_eager"), 0)
    first = worst = None
    worst_size = -1.0
    for start, (o, e, d, f) in _chunks(ours, eager, float64, flushed):
        equal = equal_of(o, e)
        wo, we = _wide(o), _wide(e)
        difference = distance_of(o, e)
        bad = ~equal
        if real:
            nan_o, nan_e = wo.isnan(), we.isnan()
            counts["nan"] += int(nan_o.sum())
            counts["nan_eager"] += int(nan_e.sum())
            counts["inf"] += int(wo.isinf().sum())
            counts["inf_eager"] += int(we.isinf().sum())
            # torch.isclose: a difference that is not finite is never within a tolerance.
            within = difference.isfinite() & (difference <= atol + rtol * we.abs())
            bad &= ~within & ~(nan_o & nan_e)
            is_flushed = bad & (we.abs() > 0) & (we.abs() < tiny) & (wo == 0)
            if f is not None:
                wf = _wide(f)
                agrees = (wo == wf) | (wo.isnan() & wf.isnan()) | ((wo - wf).abs() <= atol + rtol * wf.abs())
                # Only where flushing changes eager's own answer: elsewhere it would excuse nothing anyway.
                is_flushed |= bad & agrees
            flushed_count += int(is_flushed.sum())
            bad &= ~is_flushed
            finite = difference.isfinite()
        else:
            finite = torch.ones_like(bad)
            if atol or rtol:
                bad &= difference > atol + rtol * we.abs()
        if bool(finite.any()):
            max_abs = max(max_abs, float(difference[finite].max()))
            relative = difference[finite] / we.abs()[finite]
            relative = relative[relative.isfinite()]
            if relative.numel():
                max_rel = max(max_rel, float(relative.max()))
            if with_ulp:
                max_ulp = max(max_ulp, float(ulp_distance(o, e)[finite].max()))
        if d is not None:
            wd = _wide(d)
            usable = wo.isfinite() & we.isfinite() & wd.isfinite()
            counted += int(usable.sum())
            squares += float((wo - wd)[usable].abs().square().sum())
            squares_eager += float((we - wd)[usable].abs().square().sum())
            squares_reference += float(wd[usable].abs().square().sum())
        if bool(bad.any()):
            mismatched += int(bad.sum())
            if first is None:
                first = _element(start, int(bad.to(torch.int8).argmax()), o, e, sizes)
        # The worst is the largest difference; one that is not finite outranks all others.
        rank = torch.where(difference.isfinite(), difference, torch.full_like(difference, math.inf))
        rank = torch.where(equal | (wo.isnan() & we.isnan()), torch.zeros_like(rank), rank)
        if bool(bad.any()):
            rank = torch.where(
                bad, rank, torch.zeros_like(rank)
            )  # a flushed element is never the worst wrong one
        if rank.numel():
            position = int(rank.argmax())
            size = float(rank[position])
            if size > 0 and (bool(bad[position]), size) > (worst is not None and worst["bad"], worst_size):
                worst, worst_size = _element(start, position, o, e, sizes), size
                worst["bad"] = bool(bad[position])
    if worst is not None:
        del worst["bad"]
    result: dict[str, Any] = {
        "mismatched": mismatched,
        "flushed": flushed_count,
        "max_abs": json_number(max_abs),
        "max_rel": json_number(max_rel),
        "max_ulp": json_number(max_ulp) if with_ulp else None,
        "rmse": None,
        "rmse_eager": None,
        "as_close_as_eager": None,
        **counts,
        "first": first,
        "worst": worst,
    }
    if float64 is not None and counted:
        rmse, rmse_eager = math.sqrt(squares / counted), math.sqrt(squares_eager / counted)
        size = math.sqrt(squares_reference / counted)
        slack = CLOSE_EPS * torch.finfo(eager.dtype).eps * size
        result.update(
            rmse=json_number(rmse),
            rmse_eager=json_number(rmse_eager),
            as_close_as_eager=rmse <= CLOSE_FACTOR * rmse_eager + slack,
        )
    elif float64 is not None:
        result["as_close_as_eager"] = mismatched == 0
    return result


def _element(start: int, position: int, o: torch.Tensor, e: torch.Tensor, sizes: list[int]) -> dict[str, Any]:
    return {
        "index": _index(start + position, sizes),
        "ours": json_value(o[position]),
        "eager": json_value(e[position]),
    }
