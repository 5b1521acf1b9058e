"""What a generated module does while it runs, seen through hooks around its launches.

The module's text stays what the user sees: for one call the global names of its launch functions lead through
a hook, and are put back whatever happens.
"""

from __future__ import annotations

import contextlib
import sys
import time
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from .compare import compare, look_if_alike
from .errors import PallascopeError
from .reference import Run

# `around(name, function, arguments)` calls the function, or lets it be, and gives its result.
Around = Callable[[str, Callable[..., Any], tuple[Any, ...]], Any]
# Of each mode, the end of the names of the functions that stand for one kernel or library call: in debug they
# launch it, in steady they are called while JAX traces the program.
LAUNCHES = {"debug": "_main", "steady": "_call"}


@contextlib.contextmanager
def hooked(module: types.ModuleType, mode: str, observers: Sequence[Around]) -> Iterator[None]:
    """Within, each launch of `mode` runs through the observers, the first one innermost."""
    ending = LAUNCHES[mode]
    own = {
        n: f
        for n, f in vars(module).items()
        if isinstance(f, types.FunctionType) and n.endswith(ending) and f.__module__ == module.__name__
    }

    def hook(name: str, function: Callable[..., Any], around: Around) -> Callable[..., Any]:
        return lambda *arguments: around(name, function, arguments)

    for name, function in own.items():
        for around in observers:
            function = hook(name.removesuffix(ending), function, around)
        setattr(module, name, function)
    try:
        yield
    finally:
        vars(module).update(own)


class Launches:
    """Reports each launch of a call as progress, up to the fraction at which the call ends.

    count  how many kernels and library calls the program has; 0 when it is not known, then nothing is reported
    """

    def __init__(
        self, progress: Callable[[str, float], None], mode: str, count: int, low: float, high: float
    ):
        self.progress, self.mode, self.count, self.low, self.high = progress, mode, count, low, high
        self.done, self.last = 0, 0.0

    def __call__(self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        # In steady mode all of the compiling and running comes after the tracing: it has half of the bar.
        share = 1.0 if self.mode == "debug" else 0.5
        doing = "compiling and running" if self.mode == "debug" else "tracing"
        what = "library call" if name.startswith("library_") else "kernel"
        if self.done < self.count and time.monotonic() - self.last > 0.05:  # a person sees no more
            self.last = time.monotonic()
            part = share * self.done / self.count
            self.progress(
                f"{doing} {what} {self.done + 1} of {self.count}, {self.mode}",
                self.low + (self.high - self.low) * part,
            )
        result = function(*arguments)
        self.done += 1
        if self.mode == "steady" and self.done == self.count:
            self.progress("compiling and running the program, steady", (self.low + self.high) / 2)
        return result


class Buffers:
    """Compares buffers with eager's values of their nodes, as soon as each is written in debug mode.

    steps  what `check` sends of the program, one a kernel and call in execution order: {"kernel": "k3" or
           null, "call": null or "aten.mm.default", "torch": bool, "name": of a kernel's functions, or null,
           "values": [...]}; a value is {"buffer": "b7", "variable": its name in the module, "node",
           "node_name", "output": which output of the node, "value": its name in the traced graph, and where
           it lies in the buffer: "sizes", "strides", "offset"}. A torch call's variable is the value itself.
    rows     for each value its names, kernel, call and the figures of `compare`; with `detail` the first that
             failed has "picture" and "histogram"
    notes    sentences on what could not be compared
    seconds  spent on comparing

    A module that launches something else than `steps` say is a PallascopeError (host_error).
    """

    def __init__(
        self,
        steps: Sequence[dict[str, Any]],
        module: types.ModuleType,
        eager: Run,
        reference: Run | None,
        flushed: Run | None,
        tolerance: dict[str, float] | None,
        detail: bool,
    ):
        self.steps, self.next = steps, 0
        # The function whose variables the buffers are.
        self.code = getattr(module, "_call_debug", module.call).__code__
        self.eager, self.reference, self.flushed = eager, reference, flushed
        self.tolerance, self.detail = tolerance, detail
        self.rows: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.seconds = 0.0
        self.frame: types.FrameType | None = None
        self.diverged = False
        self.changed: set[int] = set()

    def __call__(self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        frame = sys._getframe(1)
        while frame is not None and frame.f_code is not self.code:
            frame = frame.f_back
        if frame is None:
            return function(*arguments)
        self.frame = frame
        self._torch_calls()  # those before this launch
        step = self.steps[self.next] if self.next < len(self.steps) else None
        if step is None or step["name"] not in (None, name):
            raise self._other(f"the module launches '{name}'")
        self.next += 1
        result = function(*arguments)
        self._compare(step)
        return result

    def finish(self, args: Sequence[torch.Tensor]) -> None:
        """Compares what torch calls made after the last launch. Call it when the module's call, with `args`, is
        over; the variables are there until then."""
        if self.frame is None:
            if self.steps:
                self.notes.append("no kernel was launched, so that no buffer could be seen")
            return
        # The frame is held here, and with it its variables. What shares an argument's memory may hold the
        # argument's new value by now.
        self.changed = {a.untyped_storage().data_ptr() for k, a in enumerate(args) if k in self.eager.mutated}
        self._torch_calls()
        if self.next < len(self.steps):
            raise self._other("the module ends before its launch")
        self.frame = None

    def _other(self, what: str) -> PallascopeError:
        step = self.steps[self.next] if self.next < len(self.steps) else {}
        return PallascopeError(
            "host_error",
            f"the request's buffers are of another module: {what}, expected is "
            f"'{step.get('name') or step.get('call') or 'the end'}'",
        )

    def _torch_calls(self) -> None:
        while self.next < len(self.steps) and self.steps[self.next]["torch"]:
            self.next += 1
            self._compare(self.steps[self.next - 1])

    def _compare(self, step: dict[str, Any]) -> None:
        start = time.perf_counter()
        variables = self.frame.f_locals
        for value in step["values"]:
            if value["variable"] not in variables:
                raise self._other(f"there is no variable '{value['variable']}'")
            ours = variables[value["variable"]]
            if not step["torch"]:
                ours = _placed(ours, value)
            elif ours.untyped_storage().data_ptr() in self.changed:
                self.notes.append(f"{value['buffer']} was written to before it could be compared")
                continue
            name = value["value"]
            others = [None if r is None else r.values.get(name) for r in (self.reference, self.flushed)]
            eager = self.eager.values.get(name)
            figures = compare(ours, eager, others[0], tolerance=self.tolerance, flushed=others[1])
            if self.detail and figures["verdict"] == "failed" and not self.diverged:
                # The first one alone: pictures of every buffer of a large model are hundreds of MiB of text.
                figures.update(zip(("picture", "histogram"), look_if_alike(ours, eager), strict=True))
            self.diverged = self.diverged or figures["verdict"] == "failed"
            names = {k: value[k] for k in ("buffer", "variable", "node", "node_name", "output", "value")}
            self.rows.append({**names, "kernel": step["kernel"], "call": step["call"], **figures})
        self.seconds += time.perf_counter() - start


def _placed(buffer: torch.Tensor, value: dict[str, Any]) -> torch.Tensor:
    """A value as a view of the dense buffer that holds it."""
    if 0 in value["sizes"] or not buffer.numel():
        return torch.empty(value["sizes"], dtype=buffer.dtype)
    return torch.as_strided(
        buffer.detach(), value["sizes"], value["strides"], buffer.storage_offset() + value["offset"]
    )
