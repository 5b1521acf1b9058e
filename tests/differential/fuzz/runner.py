"""Lowers programs, many in one traced function, and judges each."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from differential import pallascope

from . import judge
from .judge import Difference
from .program import Program

# What a lowering may refuse: a part of the diagnostic's text, and why it is no fault.
ALLOWED: dict[str, str] = {
    "several elements of which are one place in memory": "a write to elements that overlap has no order in eager either",
    "changes the shape of the input": "t_, squeeze_ and the like of an argument change the caller's tensor object",
}


@dataclass(frozen=True)
class Way:
    """How programs are run."""

    mode: str = "steady"  # steady, debug
    fusion: bool = True
    upto: float | None = None  # a share of the decisions: the program as it is there
    compiled: bool = False  # through torch.compile
    numpy: bool = False  # kernels on NumPy; what fails is run again without
    fault: tuple[str, str] | None = None  # a replacement in the generated source, for testing the fuzzer

    def __str__(self) -> str:
        words = ["torch.compile" if self.compiled else self.mode + (", first on NumPy" if self.numpy else "")]
        words += [] if self.fusion else ["fusion off"]
        words += [] if self.upto is None else [f"after {self.upto:.0%} of the decisions"]
        return ", ".join(words)


calls: Counter[str] = Counter()  # batches in which an operator was a torch call


def together(programs: Sequence[Program]) -> Callable[..., Any]:
    functions = [p.function() for p in programs]

    def all_programs(*groups: tuple[torch.Tensor, ...]) -> list[Any]:
        return [f(*group) for f, group in zip(functions, groups)]

    return all_programs


def execute(programs: Sequence[Program], way: Way) -> list[tuple[Any, Any]]:
    """(results, arguments afterwards) of each."""
    groups = [p.arguments() for p in programs]
    function = together(programs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if way.compiled:
            torch._dynamo.reset()
            with torch.no_grad():
                results = torch.compile(function, backend="pallascope")(*groups)
            return list(zip(results, groups))
        program = pallascope.trace(function, *[p.arguments() for p in programs])
        options: dict[str, Any] = {} if way.fusion else {"fusion": False}
        if way.upto is not None:
            count = pallascope.lower(program, **options).log["decisions"]
            options["upto"] = int(count * way.upto)
        lowered = pallascope.lower(program, **options)
        if way.fault:
            lowered.source = lowered.source.replace(*way.fault)
        if len(programs) > 1 and way.upto is None and not way.fault:
            calls.update(lowered.log["torch"])
        if way.numpy:
            from .arrays import on_numpy

            lowered.source = on_numpy(lowered.source)
        return list(zip(lowered.call(*groups, mode=way.mode), groups))


def failures(programs: Sequence[Program], way: Way) -> dict[int, Difference]:
    """By position: the programs that do not agree with eager."""
    if way.numpy:
        suspects = list(failed(programs, way))
        found = failed([programs[k] for k in suspects], replace(way, numpy=False)) if suspects else {}
        judge.tally["only on NumPy"] += len(suspects) - len(found)
        return {suspects[k]: difference for k, difference in found.items()}
    return failed(programs, way)


def failed(programs: Sequence[Program], way: Way) -> dict[int, Difference]:
    try:
        results = execute(programs, way)
    except Exception as error:
        if len(programs) == 1:
            difference = raised(error)
            return {} if difference is None else {0: difference}
        middle = len(programs) // 2
        found = failed(programs[:middle], way)
        found.update({k + middle: d for k, d in failed(programs[middle:], way).items()})
        return found
    found = {}
    for k, (program, (outputs, arguments)) in enumerate(zip(programs, results)):
        difference = judge.compare(program, outputs, arguments)
        if difference is not None:
            found[k] = difference
    return found


def raised(error: Exception) -> Difference | None:
    kind = getattr(error, "kind", "")
    text = " ".join(f"{type(error).__name__}: {error}".split())
    for part in ALLOWED:
        if part in text:
            judge.tally["refused, as it may"] += 1
            return None
    if kind == "host_error" and "torch.export cannot trace" in text:
        judge.tally["export refuses"] += 1
        return None
    return Difference("refused" if kind else "raises", text[:700])
