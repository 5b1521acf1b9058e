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
from .observe import Around, Buffers, Launches, hooked
from .reference import Run, Unavailable, has_subnormals, run_float64, run_flushed, run_graph

Progress = Callable[[str, float], None]
# Cells of pictures in one answer, 22 bytes each as text: an answer has to stay well below 128 MiB.
_MOST_CELLS = 2_000_000


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
    module: types.ModuleType,
    inputs: Sequence[torch.Tensor],
    mode: str,
    seed: int | None,
    observers: Sequence[Around] = (),
) -> tuple[list[Any], list[torch.Tensor], float]:
    """(outputs, arguments after the call, seconds) of one call on copies of the inputs.

    observers  see each launch (observe.hooked), the first one innermost
    Raises PallascopeError (host_error) that names the mode, with Python's own error as its cause.
    """
    args = clone_all(inputs)
    if seed is not None:
        torch.manual_seed(seed)
    try:
        with neutral_jax(), hooked(module, mode, observers):
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
    launches: int = 0,
    buffers: Sequence[dict[str, Any]] | None = None,
    progress: Progress = _silent,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compares every output and every argument of a GRAPH with eager, in each mode.

    detail    adds "picture" and "histogram" to the figures (picture.look)
    launches  how many kernels and library calls the module has, for the progress; 0 if it is not known
    buffers   the steps of observe.Buffers: each buffer is compared as well, when debug mode has written it
    progress  is told what is done, and how much of it all is behind, 0 to 1

    Gives (result, values). result: {"verdict", "outputs": [row, ...], "seconds", "seconds_eager",
    "seconds_by_mode", "notes", "float64"}; float64 is null, or why there is no float64 reference. A row has
    "name", "kind" ("output", "argument"), "index", "dtype", "sizes", "verdict", "worst_mode" and "modes":
    {mode: figures of `compare`, with "aliases" and "expected_aliases"}. An argument has a row when eager
    changed it or we did. With `buffers` also "buffers", the rows of observe.Buffers in execution order, and
    "first_divergence", the first of them that failed (null without one): outputs alone make the verdict, since
    a value inside may be outside of a tolerance that the outputs keep to. values: {"eager": Run, "float64":
    Run | None, "outputs": {mode: [...]}} for further looks.

    Raises PallascopeError when eager or the module raises, and for buffers without debug mode.
    """
    start = time.perf_counter()
    for mode in modes:
        if mode not in MODES:
            raise PallascopeError(
                "invalid_argument", f"there is no mode '{mode}'", "", "use " + " or ".join(MODES)
            )
    if buffers is not None and "debug" not in modes:
        raise PallascopeError(
            "invalid_argument", "buffers are compared in debug mode alone", "", "add debug to the modes"
        )
    progress("running eager PyTorch", 0.0)
    eager = run_graph(graph, inputs, seed=seed)
    seconds_eager = time.perf_counter() - start
    progress("running the reference in float64", 0.1)
    reference, why_not = None, None
    try:
        reference = run_float64(graph, inputs, eager)
    except Unavailable as error:
        why_not = str(error)
    flushed, watch = None, None
    if buffers is not None and has_subnormals([*inputs, *eager.values.values()]):
        # A buffer is compared once, while it is there.
        flushed = run_flushed(graph, inputs, seed=seed)
    outputs, arguments, seconds = {}, {}, {}
    for count, mode in enumerate(modes):
        low, high = (0.2 + 0.6 * k / len(modes) for k in (count, count + 1))
        progress(f"running the kernels, {mode}", low)
        observers: list[Any] = [Launches(progress, mode, launches, low, high)] if launches else []
        if buffers is not None and mode == "debug":
            watch = Buffers(buffers, module, eager, reference, flushed, tolerance, detail)
            observers.append(watch)
        outputs[mode], arguments[mode], seconds[mode] = run_module(module, inputs, mode, seed, observers)
        if watch is not None and mode == "debug":
            seconds[mode] -= watch.seconds
            watch.finish(arguments[mode])

    def rows_with(flushed: Run | None) -> list[dict[str, Any]]:
        return _rows(
            graph, inputs, eager, reference, flushed, outputs, arguments, tolerance, detail, progress
        )

    rows = rows_with(flushed)
    if (
        flushed is None
        and any(r["verdict"] == "failed" for r in rows)
        and has_subnormals([*inputs, *eager.values.values()])
    ):
        # XLA on a CPU takes a subnormal operand for 0. Where that explains an element, it is not wrong.
        flushed = run_flushed(graph, inputs, seed=seed)
        if flushed is not None:
            rows = rows_with(flushed)
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
    unpictured = sum("picture" not in f for r in rows for f in r["modes"].values()) if detail else 0
    if unpictured:
        notes.append(f"{unpictured} pictures are left out: the answer would be too long")
    if watch is not None:
        notes += watch.notes
        result["buffers"] = watch.rows
        result["first_divergence"] = next((r for r in watch.rows if r["verdict"] == "failed"), None)
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
    progress: Progress,
) -> list[dict[str, Any]]:
    names = [i["name"] for i in graph["inputs"]]
    user_outputs = [o for o in graph["outputs"] if o["kind"] == "user_output"]
    rows: list[dict[str, Any]] = []
    cells = 0

    def figures_of(value: Any, run: str, index: int) -> dict[str, Any]:
        """One comparison; `run` says which list of a Run the values are in."""
        nonlocal cells
        eager_value, float64, flush = (
            None if r is None else getattr(r, run)[index] for r in (eager, reference, flushed)
        )
        row = compare(
            value,
            eager_value,
            float64,
            tolerance=tolerance,
            flushed=flush,
            detail=detail and cells < _MOST_CELLS,
        )
        cells += len((row.get("picture") or {}).get("cells", ()))
        return row

    told = 0.0
    for index, output in enumerate(user_outputs):
        if time.monotonic() - told > 0.05:  # a person sees no more
            told = time.monotonic()
            progress(
                f"comparing output {index + 1} of {len(user_outputs)}",
                0.8 + 0.2 * index / len(user_outputs),
            )
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
            figures[mode] = figures_of(values[index], "outputs", index)
            figures[mode]["aliases"] = _aliases(values[index], arguments[mode], names)
            figures[mode]["expected_aliases"] = _aliases(eager.outputs[index], eager.args, names)
        rows.append(_row(output["value"], "output", index, figures))
    for index, name in enumerate(names):
        changed = {m: not _same_bits(a[index], inputs[index]) for m, a in arguments.items()}
        if index not in eager.mutated and not any(changed.values()):
            continue
        figures = {}
        for mode, values in arguments.items():
            figures[mode] = figures_of(values[index], "args", index)
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
