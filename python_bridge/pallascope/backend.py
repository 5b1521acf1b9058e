"""The torch.compile backend "pallascope".

aot_autograd makes graphs functional and derives the backward; no decomposition happens in Python (composite
operators decompose in C++). Each graph is converted to the trace format, lowered by the C++ core, and its
module is loaded. A graph that cannot be lowered is an error that names the node: nothing ever falls back to
eager silently.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import ShortenTraceback
from torch._functorch._aot_autograd.descriptors import PlainAOTInput, TangentAOTInput
from torch._functorch.partitioners import default_partition
from torch.utils._python_dispatch import _disable_current_modes

from . import core, fx, log
from .bundle import BundleWriter
from .errors import PallascopeError
from .execute import load_module, run_mode, wanted_mode

# What options={...} of torch.compile may hold, with the types that are right.
OPTIONS: dict[str, tuple[type, ...]] = {
    "dump": (str,),  # folder: a bundle is written there while the script runs
    "fusion": (bool,),
    "mode": (str,),  # "debug" or "steady": which way of the generated module runs
    "target": (str,),
    "tolerance": (dict,),  # {"atol", "rtol"}, kept in the bundle for its checks
}
# torch.compile's modes say how long to search for fast code. There is one lowering, so each of them is
# accepted and none changes it.
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

_compiles = itertools.count()


class CompileError(PallascopeError, ShortenTraceback):
    """A PallascopeError as dynamo hands it to the user: as it is, without dynamo's own frames."""

    def __init__(self, kind: str, message: str, where: str = "", remedy: str = ""):
        self.kind, self.message, self.where, self.remedy = kind, message, where, remedy
        ShortenTraceback.__init__(self, self.text(), first_useful_frame=None)

    def remove_dynamo_frames(self) -> CompileError:
        # The diagnostic names the user's node and line; the frames between here and there are dynamo's and
        # ours.
        return self if torch._dynamo.config.verbose else self.with_traceback(None)


def check_options(options: dict[str, Any] | None, mode: str | None) -> dict[str, Any]:
    """The options, when each name and type is right; else PallascopeError (invalid_argument)."""
    options = dict(options or {})
    for name, value in options.items():
        if name not in OPTIONS:
            raise PallascopeError(
                "invalid_argument",
                f"the backend has no option '{name}'",
                "torch.compile(options=...)",
                "the options are " + ", ".join(OPTIONS),
            )
        if name == "dump" and hasattr(value, "__fspath__"):
            options[name] = value = str(value)
        if not isinstance(value, OPTIONS[name]):
            raise PallascopeError(
                "invalid_argument",
                f"the option '{name}' is {value!r}",
                "torch.compile(options=...)",
                f"give a {OPTIONS[name][0].__name__}",
            )
    options["mode"] = wanted_mode(options.get("mode"), "torch.compile(options=...)")
    if mode is not None and mode not in MODES:
        raise PallascopeError(
            "invalid_argument",
            f"the backend has no mode '{mode}'",
            "torch.compile(mode=...)",
            "the modes are " + ", ".join(MODES),
        )
    return options


def compile_graph(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """The backend function: a dynamo graph as a callable. Raises CompileError."""
    number = next(_compiles)
    try:
        options = check_options(options, mode)
        writer = None
        if "dump" in options:
            writer = BundleWriter.at(options["dump"], options.get("tolerance"))
    except PallascopeError as error:
        raise CompileError(error.kind, error.message, error.where, error.remedy) from None
    _check_writes(gm)
    for index, value in enumerate(example_inputs):
        if isinstance(value, torch.Tensor) and value.is_nested:
            raise CompileError(
                "unsupported", f"argument {index} of the compiled function is a nested tensor", "", "pad it to a dense one"
            )
    names = _input_names(gm)

    def compiler(kind: str) -> Callable[..., Any]:
        def compile_one(graph: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
            try:
                # aot_autograd calls under its fake-tensor modes; constants, and the module's own set-up, are
                # real.
                with _disable_current_modes():
                    return _compile_one(graph, f"{kind} {number}", kind, names, options, writer)
            except CompileError:
                raise
            except PallascopeError as error:
                raise CompileError(error.kind, error.message, error.where, error.remedy) from None

        return compile_one

    # The default partition saves what the forward computed; the min-cut one recomputes part of it in the
    # backward (measured on the four models of shared/cases: 81 backward nodes for 75 in the GPT-2 block, 55
    # for 48 in the mixer) to save 2 to 15 % of the saved bytes, and takes 2 to 3 times as long.
    return aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        partition_fn=default_partition,
        decompositions={},
    )(gm, example_inputs)


_IN_PLACE = {getattr(operator, n) for n in dir(operator) if n.startswith("i") and hasattr(operator, f"__{n}__")} - {
    operator.index, operator.inv, operator.invert, operator.is_, operator.is_not
}  # fmt: skip
_SHAPE_ONLY = {"t_", "transpose_", "squeeze_", "unsqueeze_", "swapaxes_", "swapdims_", "detach_", "requires_grad_"}


def _check_writes(gm: torch.fx.GraphModule) -> None:
    """Refuses a write to a tensor whose elements share memory (an expanded one).

    Eager refuses most of them and lets one value be filled in; aot_autograd takes them all, and adds up what is
    written to one place. Raises CompileError.
    """

    def written(node: torch.fx.Node) -> Any:
        target = node.args[0] if node.args and isinstance(node.args[0], torch.fx.Node) else None
        value = target.meta.get("example_value") if target is not None else None
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return None
        if node.target is operator.setitem:
            keys = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
            if not all(k is None or k is ... or isinstance(k, (int, slice)) for k in keys):
                return None
            with contextlib.suppress(Exception):
                return value[keys]
            return None
        name = node.target if isinstance(node.target, str) else ""
        method = name.endswith("_") and not name.endswith("__") and name not in _SHAPE_ONLY
        return value if method or node.target in _IN_PLACE else None

    for node in gm.graph.nodes:
        if node.op not in ("call_method", "call_function"):
            continue
        value = written(node)
        if isinstance(value, torch.Tensor) and any(
            type(n) is int and type(s) is int and n > 1 and s == 0 for n, s in zip(value.shape, value.stride(), strict=True)
        ):
            raise CompileError(
                "invalid_argument",
                f"the node '{node.name}' writes to a tensor of which several elements are one place in memory "
                f"(sizes {tuple(value.shape)}, strides {value.stride()})",
                fx.where_of(node),
                "write to a clone(), or to the tensor before it is expanded",
            )


def _input_names(gm: torch.fx.GraphModule) -> list[tuple[str, str]]:
    """(kind, target) of each placeholder of a dynamo graph, from the place where dynamo found the value.

    `L['s']._modules['h']._parameters['weight']` is the parameter `h.weight`; `L['x']` is the input `x`.
    """
    result = []
    for node in gm.graph.find_nodes(op="placeholder"):
        source = getattr(node, "_dynamo_source", None)
        text = str(getattr(source, "name", "") or node.name)
        path = fx.module_path(text)
        if "._parameters[" in text:
            result.append(("parameter", path))
        elif "._buffers[" in text:
            result.append(("buffer", path))
        else:
            plain = re.fullmatch(r"[LG]\['([^']*)'\]", text)
            result.append(("user_input", plain[1] if plain else path or text))
    return result


def _describe(names: list[tuple[str, str]]) -> Callable[[torch.fx.Node], tuple[str, str]]:
    """What an aot_autograd placeholder is, by the description that aot_autograd left on it."""

    def describe(node: torch.fx.Node) -> tuple[str, str]:
        origin = node.meta.get("desc")
        if isinstance(origin, PlainAOTInput) and origin.idx < len(names):
            return names[origin.idx]
        if isinstance(origin, TangentAOTInput):
            return "user_input", f"gradient of output {getattr(origin.output, 'idx', '?')}"
        return "user_input", str(node.target)  # a value that the forward saved, or a synthetic base

    return describe


def _compile_one(
    gm: torch.fx.GraphModule,
    name: str,
    kind: str,
    names: list[tuple[str, str]],
    options: dict[str, Any],
    writer: BundleWriter | None,
) -> Callable[..., Any]:
    conversion = fx.convert(gm, name, kind, _describe(names))
    graph = conversion.graph
    position = None
    if writer is not None:
        # Before the lowering: a bundle of a graph that could not be lowered is what a bug report needs.
        position = writer.add_graph(graph)
    # The source files matter to people only, and would be read again for each graph.
    program = fx.program_json(name, [graph], {})
    answer = core.lower_json(
        fx.dumps(program), 0, {k: options[k] for k in ("fusion", "target") if k in options}
    )
    log.record({"graph": name, "kind": kind, **answer})
    module = load_module(answer["source"], name)

    def run(args: list[Any]) -> list[Any]:
        # Boxed: the caller's list is emptied, so that inputs can be freed while the graph runs.
        values = list(args)
        args.clear()
        tensors = conversion.arguments(values)
        del values
        nonlocal position
        if position is not None:
            writer.save_inputs(position, tensors)
            position = None
        return conversion.results(run_mode(module, tensors, options["mode"]))

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def is_registered() -> bool:
    """Whether dynamo knows the backend (it does once both packages have been imported)."""
    registry = sys.modules.get("torch._dynamo.backends.registry")
    return registry is not None and "pallascope" in registry._COMPILER_FNS
