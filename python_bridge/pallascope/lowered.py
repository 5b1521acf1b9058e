"""`pallascope.lower`: a traced graph with its generated module."""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import Any

import torch

from . import core, log
from .bundle import Bundle
from .check import check_graph, run_module
from .errors import PallascopeError
from .execute import MODES, load_module
from .inputs import random_inputs, sample_inputs
from .layout import overlap
from .tracing import Program, from_exported, trace


class Lowered:
    """One graph of a program, lowered.

    source   the generated Python module, complete: it runs without Pallascope
    log      what `compile_log()` has on this compile
    program, graph_index   where it came from
    """

    def __init__(self, program: Program, graph_index: int, answer: dict[str, Any]):
        self.program, self.graph_index = program, graph_index
        self.source: str = answer["source"]
        graph = program.graph(graph_index)
        self.log: dict[str, Any] = {"graph": graph["name"], "kind": graph["kind"], **answer}
        self._module: types.ModuleType | None = None
        self._changed: list[int] | None = None

    @property
    def graph(self) -> dict[str, Any]:
        return self.program.graph(self.graph_index)

    def module(self) -> types.ModuleType:
        """The generated module, executed once."""
        if self._module is None:
            self._module = load_module(self.source, self.graph["name"])
        return self._module

    def arguments(self, *args: Any) -> list[torch.Tensor]:
        """The tensors of the module's INPUTS, from the arguments that were traced: parameters, buffers and
        constants are the program's. Raises PallascopeError (invalid_argument) for another number or kind of
        arguments."""
        leaves = iter(torch.utils._pytree.tree_leaves(args))
        tensors = []
        try:
            for i in self.graph["inputs"]:
                if i["kind"] != "user_input":
                    tensors.append(self._known(i))
                    continue
                value = next(leaves)
                while not isinstance(value, torch.Tensor):  # a number that the trace fixed
                    value = next(leaves)
                tensors.append(value)
        except StopIteration:
            raise PallascopeError(
                "invalid_argument", f"the graph takes {self._count()} tensors, got fewer", self.graph["name"]
            ) from None
        if any(isinstance(v, torch.Tensor) for v in leaves):
            raise PallascopeError(
                "invalid_argument", f"the graph takes {self._count()} tensors, got more", self.graph["name"]
            )
        return tensors

    def _check_memory(self, tensors: list[torch.Tensor]) -> None:
        """The graph was traced for tensors that each have memory of their own: a write to one would not be seen
        through another."""
        for k in self._mutated():
            for j, other in enumerate(tensors):
                if j != k and overlap(tensors[k], other):
                    names = [self.graph["inputs"][i]["name"] for i in sorted((j, k))]
                    raise PallascopeError(
                        "invalid_argument",
                        f"'{names[0]}' and '{names[1]}' share memory, and the graph changes "
                        f"'{self.graph['inputs'][k]['name']}'; it was traced for tensors that do not",
                        self.graph["name"],
                        "pass a clone, or use torch.compile, which traces arguments that share memory as such",
                    )

    def _mutated(self) -> list[int]:
        """Which inputs the graph changes."""
        if self._changed is None:
            self._changed = [int(k) for k in self.log.get("mutated", [])]
        return self._changed

    def _count(self) -> int:
        return sum(i["kind"] == "user_input" for i in self.graph["inputs"])

    def _known(self, i: dict[str, Any]) -> torch.Tensor:
        if i["target"] not in self.program.tensors:
            raise PallascopeError(
                "invalid_argument",
                f"there is no tensor for the {i['kind']} '{i['target']}'",
                i["name"],
                "trace the model here, or use check(), which draws it at random",
            )
        return self.program.tensors[i["target"]]

    def call(self, *args: Any, mode: str = "steady") -> Any:
        """Runs the kernels on the traced function's arguments; gives what the function gives.

        Arguments that the function mutates are mutated; so are the buffers of `program.tensors`. Raises
        PallascopeError (invalid_argument) when one that it mutates shares memory with another.
        """
        tensors = self.arguments(*args)
        self._check_memory(tensors)
        outputs = list(self.module().call(tensors, mode=mode))
        conversion = self.program.conversions[self.graph_index]
        if conversion:
            outputs = conversion.results(outputs)
        if self.program.out_spec is not None:
            return torch.utils._pytree.tree_unflatten(outputs, self.program.out_spec)
        return outputs

    def check(
        self,
        *args: Any,
        seed: int = 0,
        modes: tuple[str, ...] = MODES,
        tolerance: dict[str, float] | None = None,
        detail: bool = False,
    ) -> dict[str, Any]:
        """Runs and compares with PyTorch, on `args`, or on random inputs without them (see
        check.check_graph)."""
        if args:
            inputs, made = self.arguments(*args), "given"
        elif self.program.samples[self.graph_index]:
            inputs, made = sample_inputs(
                self.graph, self.program.samples[self.graph_index], self.program.tensors, seed
            )
        else:
            inputs, made = random_inputs(self.graph, seed, self.program.tensors)
        result, _ = check_graph(
            self.graph, self.module(), inputs, modes=modes, tolerance=tolerance, seed=seed, detail=detail
        )
        return {**result, "inputs_made": made}

    def run(self, *args: Any, mode: str = "steady") -> tuple[list[Any], list[torch.Tensor], float]:
        """(outputs, arguments afterwards, seconds) on copies of the arguments."""
        return run_module(self.module(), self.arguments(*args), mode, None)

    def __repr__(self) -> str:
        counts = f"{self.log.get('nodes')} nodes, {self.log.get('kernels')} kernels"
        return f"<lowered '{self.graph['name']}': {counts}>"


def lower(
    program_or_fn: Program | Callable[..., Any] | str | os.PathLike[str],
    *args: Any,
    graph: int = 0,
    name: str | None = None,
    **options: Any,
) -> Lowered:
    """Lowers one graph of a program (or of a path that `load` reads), or traces a function on `args` and
    lowers that.

    options: target ("interpret", ...), fusion (bool), upto (a decision number: the program as it is there)
    Raises PallascopeError: what `trace` raises, the lowering's diagnostics, invalid_argument for another
    option.
    """
    for option in options:
        if option not in core.OPTIONS:
            raise PallascopeError(
                "invalid_argument",
                f"lower has no option '{option}'",
                "",
                "the options are " + ", ".join(core.OPTIONS),
            )
    if isinstance(program_or_fn, (str, os.PathLike)):
        program_or_fn = load(program_or_fn)
    if isinstance(program_or_fn, Program):
        if args:
            raise PallascopeError(
                "invalid_argument", "a traced program takes no further arguments", program_or_fn.name
            )
        program = program_or_fn
    else:
        program = trace(program_or_fn, *args, name=name)
    program.graph(graph)
    answer = core.lower_json(program.to_json(), graph, options)
    result = Lowered(program, graph, answer)
    log.record(result.log)
    return result


def load(path: str | os.PathLike[str]) -> Program:
    """A Program from a bundle (folder or zip), a trace (.json), or a .pt2 of torch.export.save.

    A .pt2 is read by torch.export.load. Raises PallascopeError: not_found, not_readable, and what Bundle
    raises.
    """
    path = os.path.expanduser(os.fspath(path))
    if not os.path.exists(path):
        raise PallascopeError("not_found", f"there is no file '{path}'", os.path.abspath(path))
    if os.path.isdir(path) or path.endswith(".zip"):
        return Program(Bundle(path).program_text())
    name = os.path.splitext(os.path.basename(path))[0]
    if path.endswith(".pt2"):
        try:
            return from_exported(torch.export.load(path), name)
        except PallascopeError:
            raise
        except Exception as error:
            raise PallascopeError(
                "not_readable", f"torch cannot load '{path}': {error}", os.path.abspath(path)
            ) from error
    try:
        with open(path, encoding="utf-8") as f:
            return Program(f.read())
    except (OSError, ValueError) as error:
        raise PallascopeError(
            "malformed_json", f"'{path}' is no JSON: {error}", os.path.abspath(path)
        ) from error
