"""Loads a generated module and runs it: what the C++ code generator wrote, as Python objects.

The module is self-contained Python with INPUTS, OUTPUTS, `call(args, mode)` and `reference(args)`; nothing
here looks into it further.
"""

from __future__ import annotations

import itertools
import linecache
import os
import time
import types
from collections.abc import Sequence
from typing import Any

import torch

from .errors import PallascopeError
from .operators import load_namespace

MODES = ("debug", "steady")
MODE_VARIABLE = "PALLASCOPE_MODE"
_numbers = itertools.count()


def load_module(source: str, name: str = "graph") -> types.ModuleType:
    """Executes generated module text. Its lines are registered with linecache, so tracebacks show them.

    The file name is unique, `<pallascope NAME N>`. Raises PallascopeError (host_error) for text that is not
    such a module; an error while it runs is Python's own.
    """
    filename = f"<pallascope {name} {next(_numbers)}>"
    module = types.ModuleType(f"pallascope_generated_{next(_numbers)}")
    module.__file__ = filename
    # mtime None: linecache.checkcache leaves such an entry alone.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    if "torch.ops.prims." in source:
        load_namespace("prims")
    exec(compile(source, filename, "exec"), module.__dict__)
    missing = [n for n in ("INPUTS", "OUTPUTS", "call", "reference") if not hasattr(module, n)]
    if missing:
        raise PallascopeError(
            "host_error",
            "the text is no generated module: it lacks " + ", ".join(missing),
            filename,
            "give the source that Pallascope generated",
        )
    return module


def unload_module(module: types.ModuleType) -> None:
    """Forgets the module's lines in linecache."""
    linecache.cache.pop(module.__file__, None)


def wanted_mode(option: str | None = None, where: str = "") -> str:
    """The mode that compiled functions run in: the option, else the variable PALLASCOPE_MODE, else steady.

    Raises PallascopeError (invalid_argument) for another word, from either place.
    """
    mode = option if option is not None else os.environ.get(MODE_VARIABLE) or "steady"
    if mode not in MODES:
        raise PallascopeError(
            "invalid_argument",
            f"there is no mode '{mode}'",
            where if option is not None else f"the environment variable {MODE_VARIABLE}",
            "use one of " + ", ".join(MODES),
        )
    return mode


def run_mode(module: types.ModuleType, args: Sequence[torch.Tensor], mode: str = "steady") -> list[Any]:
    """One call. `args` in the order of INPUTS; they are changed when the graph mutates its inputs.

    Raises PallascopeError (invalid_argument) for another mode or another number of arguments.
    """
    if mode not in MODES:
        raise PallascopeError(
            "invalid_argument", f"there is no mode '{mode}'", "", "use one of " + ", ".join(MODES)
        )
    if len(args) != len(module.INPUTS):
        raise PallascopeError(
            "invalid_argument",
            f"the module takes {len(module.INPUTS)} tensors, got {len(args)}",
            module.__file__,
            "give one tensor for each entry of INPUTS",
        )
    return list(module.call(list(args), mode=mode))


def time_mode(
    module: types.ModuleType,
    args: Sequence[torch.Tensor],
    mode: str = "steady",
    budget: float = 1.0,
    least: int = 3,
    most: int = 100,
) -> dict[str, Any]:
    """Wall times of repeated calls in seconds: {"first", "best", "median", "calls"}.

    `first` holds the compilation. Each further call is one sample, until `budget` seconds or `most` calls are
    spent, but `least` at least. Calls change `args` when the graph mutates its inputs.
    """
    start = time.perf_counter()
    run_mode(module, args, mode)
    first = time.perf_counter() - start
    samples: list[float] = []
    while len(samples) < least or (sum(samples) < budget and len(samples) < most):
        start = time.perf_counter()
        run_mode(module, args, mode)
        samples.append(time.perf_counter() - start)
    samples.sort()
    return {
        "first": first,
        "best": samples[0],
        "median": samples[len(samples) // 2],
        "calls": len(samples) + 1,
    }
