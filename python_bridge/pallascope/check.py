"""Runs a generated module beside eager PyTorch and compares: what `check` and `run` answer."""

from __future__ import annotations

import contextlib
import time
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from .compare import compare, json_number, json_value
from .dtypes import short_name
from .errors import PallascopeError
from .execute import MODES, run_mode
from .layout import clone_all
from .reference import Run, Unavailable, has_subnormals, run_float64, run_flushed, run_graph

Progress = Callable[[str, float], None]


def _silent(text: str, fraction: float) -> None:
    pass


@contextlib.contextmanager
def neutral_jax() -> Iterator[None]:
    """JAX's settings at their defaults inside, whatever the user's environment or config says.

    All of them belong to the thread. Without this a JAX_DISABLE_JIT or JAX_DEBUG_NANS in somebody's shell
    would change what a check runs.
    """
    import jax

    with contextlib.ExitStack() as stack:
        for manager in (
            jax.disable_jit(False),
            jax.debug_nans(False),
            jax.debug_infs(False),
            jax.numpy_rank_promotion("allow"),
            jax.numpy_dtype_promotion("standard"),
            jax.default_matmul_precision(None),
            jax.check_tracer_leaks(False),
            jax.log_compiles(False),
        ):
            stack.enter_context(manager)
        yield


def run_module(
    module: types.ModuleType, inputs: Sequence[torch.Tensor], mode: str, seed: int | None
) -> tuple[list[Any], list[torch.Tensor], float]:
    """(outputs, arguments after the call, seconds) of one call on copies of the inputs.

    Raises PallascopeError (host_error) that names the mode, with Python's own error as its cause.
    """
    args = clone_all(inputs)
    if seed is not None:
        torch.manual_seed(seed)
    try:
        with neutral_jax():
            start = time.perf_counter()
            outputs = run_mode(module, args, mode)
            seconds = time.perf_counter() - start
    except (PallascopeError, MemoryError):
        raise
    except Exception as error:
        raise PallascopeError(
            "host_error",
            f"the generated module raised {type(error).__name__} in mode {mode}: {error}",
            module.__file__ or "",
        ) from error
    return outputs, args, seconds


def _aliases(value: torch.Tensor | None, args: Sequence[torch.Tensor], names: Sequence[str]) -> list[str]:
    """Names of the arguments whose storage a result shares."""
    if value is None or not value.numel():
        return []
    data = value.untyped_storage().data_ptr()
    return [
        n for n, a in zip(names, args, strict=True) if a.numel() and a.untyped_storage().data_ptr() == data
    ]


def check_graph(
    graph: dict[str, Any],
    module: types.ModuleType,
    inputs: Sequence[torch.Tensor],
    *,
    modes: Sequence[str] = MODES,
    tolerance: dict[str, float] | None = None,
    seed: int = 0,
    detail: bool = False,
    progress: Progress = _silent,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compares every output and every argument of a GRAPH with eager, in each mode.

    Gives (result, values). result: {"verdict", "outputs": [row, ...], "seconds", "seconds_eager",
    "seconds_by_mode", "notes", "float64"}; float64 is null, or why there is no float64 reference. A row has
    "name", "kind" ("output", "argument"), "index", "dtype", "sizes", "verdict", "worst_mode" and "modes":
    {mode: figures of `compare`, with "aliases" and "expected_aliases"}. An argument has a row when eager
    changed it or we did. values: {"eager": Run, "float64": Run | None, "outputs": {mode: [...]}} for further
    looks.

    Raises PallascopeError when eager or the module raises.
    """
    start = time.perf_counter()
    for mode in modes:
        if mode not in MODES:
            raise PallascopeError(
                "invalid_argument", f"there is no mode '{mode}'", "", "use " + " or ".join(MODES)
            )
    progress("eager PyTorch", 0.0)
    eager = run_graph(graph, inputs, seed=seed)
    seconds_eager = time.perf_counter() - start
    progress("the reference in float64", 0.1)
    reference, why_not = None, None
    try:
        reference = run_float64(graph, inputs, eager)
    except Unavailable as error:
        why_not = str(error)
    outputs, arguments, seconds = {}, {}, {}
    for count, mode in enumerate(modes):
        progress(f"the kernels, {mode}", 0.2 + 0.6 * count / len(modes))
        outputs[mode], arguments[mode], seconds[mode] = run_module(module, inputs, mode, seed)
    progress("comparing", 0.8)
    rows = _rows(graph, inputs, eager, reference, None, outputs, arguments, tolerance, detail)
    if any(r["verdict"] == "failed" for r in rows) and has_subnormals([*inputs, *eager.values.values()]):
        # XLA on a CPU takes a subnormal operand for 0. Where that explains an element, it is not wrong.
        flushed = run_flushed(graph, inputs, seed=seed)
        if flushed is not None:
            rows = _rows(graph, inputs, eager, reference, flushed, outputs, arguments, tolerance, detail)
    notes = list(reference.notes) if reference else []
    result = {
        "verdict": "failed" if any(r["verdict"] == "failed" for r in rows) else "passed",
        "outputs": rows,
        "seconds": time.perf_counter() - start,
        "seconds_eager": seconds_eager,
        "seconds_by_mode": seconds,
        "notes": notes,
        "float64": why_not,
    }
    return result, {"eager": eager, "float64": reference, "outputs": outputs, "arguments": arguments}


def _rows(
    graph: dict[str, Any],
    inputs: Sequence[torch.Tensor],
    eager: Run,
    reference: Run | None,
    flushed: Run | None,
    outputs: dict[str, list[Any]],
    arguments: dict[str, list[torch.Tensor]],
    tolerance: dict[str, float] | None,
    detail: bool,
) -> list[dict[str, Any]]:
    names = [i["name"] for i in graph["inputs"]]
    user_outputs = [o for o in graph["outputs"] if o["kind"] == "user_output"]
    rows = []
    for index, output in enumerate(user_outputs):
        if output["value"] is None:
            continue
        figures = {}
        for mode, values in outputs.items():
            if len(values) != len(user_outputs):
                raise PallascopeError(
                    "host_error",
                    f"the module gave {len(values)} outputs in mode {mode}, the graph "
                    f"has {len(user_outputs)}",
                    graph["name"],
                )
            figures[mode] = compare(
                values[index],
                eager.outputs[index],
                reference.outputs[index] if reference else None,
                tolerance=tolerance,
                flushed=flushed.outputs[index] if flushed else None,
                detail=detail,
            )
            figures[mode]["aliases"] = _aliases(values[index], arguments[mode], names)
            figures[mode]["expected_aliases"] = _aliases(eager.outputs[index], eager.args, names)
        rows.append(_row(output["value"], "output", index, figures))
    for index, name in enumerate(names):
        changed = {m: not _same_bits(a[index], inputs[index]) for m, a in arguments.items()}
        if index not in eager.mutated and not any(changed.values()):
            continue
        figures = {}
        for mode, values in arguments.items():
            figures[mode] = compare(
                values[index],
                eager.args[index],
                reference.args[index] if reference else None,
                tolerance=tolerance,
                flushed=flushed.args[index] if flushed else None,
                detail=detail,
            )
            if index not in eager.mutated and changed[mode]:
                figures[mode]["verdict"] = "failed"
                figures[mode]["reasons"].append("eager leaves this argument as it is, the kernels changed it")
        rows.append(_row(name, "argument", index, figures))
    return rows


def _row(name: str, kind: str, index: int, figures: dict[str, dict[str, Any]]) -> dict[str, Any]:
    def badness(mode: str) -> tuple[bool, float]:
        error = figures[mode].get("max_abs", 0.0)
        return figures[mode]["verdict"] == "failed", float(error) if error is not None else 0.0

    worst = max(figures, key=badness)
    return {
        "name": name,
        "kind": kind,
        "index": index,
        "dtype": figures[worst].get("expected_dtype"),
        "sizes": figures[worst].get("expected_sizes"),
        "verdict": "failed" if any(f["verdict"] == "failed" for f in figures.values()) else "passed",
        "worst_mode": worst,
        "modes": figures,
    }


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype hold the same bytes (a NaN equals itself here)."""
    if a is b or not a.numel():
        return True
    return torch.equal(
        a.contiguous().reshape(-1).view(torch.uint8), b.contiguous().reshape(-1).view(torch.uint8)
    )


def summarise(value: torch.Tensor | None, name: str) -> dict[str, Any]:
    """What `run` says of one output: name, dtype, sizes, strides, min, max, mean (of the finite elements;
    null for none), nan, inf, and the first eight values in row-major order."""
    if value is None:
        return {"name": name, "dtype": None}
    summary: dict[str, Any] = {
        "name": name,
        "dtype": short_name(value.dtype),
        "sizes": list(value.size()),
        "strides": list(value.stride()),
        "min": None,
        "max": None,
        "mean": None,
        "nan": 0,
        "inf": 0,
    }
    flat = value.detach().reshape(-1)
    summary["first"] = [json_value(v) for v in flat[:8]]
    if value.dtype.is_complex or not flat.numel():
        return summary
    wide = flat.to(torch.float64)
    finite = wide[wide.isfinite()]
    summary.update(nan=int(wide.isnan().sum()), inf=int(wide.isinf().sum()))
    if finite.numel():
        exact = (lambda x: json_number(x)) if value.dtype.is_floating_point else int
        summary.update(
            min=exact(float(finite.min())), max=exact(float(finite.max())), mean=json_number(finite.mean())
        )
    return summary
