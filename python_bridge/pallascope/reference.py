"""Eager PyTorch over a traced graph: the answer that generated kernels are compared with.

`run_graph` calls each node's operator in order, in-place operators and views included, so aliasing is eager's
own. `run_float64` does the same with every real number in float64, to tell who is closer to the truth. Shapes
and strides come out as eager makes them; nothing here is taken from the metas but dtypes (in the float64
run).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from .dtypes import torch_dtype
from .errors import PallascopeError
from .layout import clone_all
from .operators import is_random, is_view, operator, written_arguments

# Real and complex dtypes that the float64 run widens, and what it widens them to.
_WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.float8_e4m3fn: torch.float64,
    torch.float8_e5m2: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
# A user's cast to one of these loses digits on purpose, so the float64 run keeps the loss.
_NARROW = {torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2}
_CASTS = {
    "aten.to",
    "aten._to_copy",
    "aten.type_as",
    "aten.copy",
    "aten.copy_",
    "prims.convert_element_type",
    "aten._autocast_to_reduced_precision",
}


class Unavailable(Exception):
    """Why a graph has no float64 reference."""


@dataclass
class Run:
    """What one run of a graph gave.

    values   name -> the tensor as it was when its node had run (a copy where a later node might write to it);
             None for an output that is None; graph inputs included, as they came in
    outputs  the user outputs, in order, at the end of the graph
    args     the graph inputs at the end of the graph: mutated inputs hold their new values
    mutated  indices of inputs whose values the graph may have changed
    notes    sentences on what this run did differently from plain eager
    """

    values: dict[str, torch.Tensor | None] = field(default_factory=dict)
    outputs: list[torch.Tensor | None] = field(default_factory=list)
    args: list[torch.Tensor] = field(default_factory=list)
    mutated: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _Arguments:
    """ARG objects as Python values, over the environment `values`."""

    def __init__(self, values: dict[str, Any], widen: bool):
        self.values, self.widen = values, widen

    def __call__(self, arg: Any) -> Any:
        if isinstance(arg, list):
            return [self(a) for a in arg]
        if not isinstance(arg, dict):
            return arg
        ((kind, content),) = arg.items()
        if kind == "value":
            return self.values[content]
        if kind == "str":
            return content
        if kind == "float":
            return float(content)
        if kind == "dtype":
            dtype = torch_dtype(content)
            return _WIDE.get(dtype, dtype) if self.widen else dtype
        if kind == "device":
            device = torch.device(content)
            # A trace from another machine: eager runs here, on the CPU.
            return device if device.type in ("cpu", "meta") else torch.device("cpu")
        if kind in ("memory_format", "layout"):
            return getattr(torch, content)
        raise PallascopeError(
            "symbolic_size" if kind == "symbol" else "malformed_graph",
            f"an argument has the unknown form {arg!r}",
        )


def _node_where(node: dict[str, Any]) -> str:
    text = f"node '{node['name']}' ({node['target']})"
    if node.get("stack"):
        frame = node["stack"][-1]
        text += f", {frame['file']}:{frame['line']}"
    return text


def _bind(graph: dict[str, Any], args: Sequence[torch.Tensor]) -> None:
    if len(args) != len(graph["inputs"]):
        raise PallascopeError(
            "invalid_argument",
            f"the graph '{graph['name']}' has {len(graph['inputs'])} inputs, got {len(args)}",
        )


def _finish(graph: dict[str, Any], env: dict[str, Any], run: Run) -> Run:
    names = [i["name"] for i in graph["inputs"]]
    for output in graph["outputs"]:
        if output["kind"] == "mutation":
            position = names.index(output["target"])
            run.args[position].copy_(env[output["value"]])
            run.mutated = sorted({*run.mutated, position})
        else:
            run.outputs.append(None if output["value"] is None else env[output["value"]])
    return run


def _inputs_at(written: Sequence[Any], env: dict[str, Any], args: Sequence[torch.Tensor]) -> set[int]:
    """Indices of the inputs that share their storage with one of the `written` ARGs."""
    found = set()
    for argument in written:
        tensor = env.get(argument["value"]) if isinstance(argument, dict) and "value" in argument else None
        if tensor is not None and tensor.numel():
            data = tensor.untyped_storage().data_ptr()
            found |= {i for i, a in enumerate(args) if a.numel() and a.untyped_storage().data_ptr() == data}
    return found


def run_graph(graph: dict[str, Any], args: Sequence[torch.Tensor], *, seed: int | None = None) -> Run:
    """Runs a GRAPH on the tensors of its inputs (in order), which stay as they are.

    seed  given to torch.manual_seed before the first node, so that another run can draw the same numbers
    Raises PallascopeError: invalid_argument for another number of inputs, unsupported for an operator that
    this torch lacks, host_error with the node when an operator raises.
    """
    _bind(graph, args)
    operators = [operator(n["target"]) for n in graph["nodes"]]
    written = [written_arguments(op, n) for op, n in zip(operators, graph["nodes"], strict=True)]
    writes = any(written) or any(o["kind"] == "mutation" for o in graph["outputs"])
    # Weights can be large and mapped from a file: they are copied only where something may be written.
    run = Run(args=clone_all(args) if writes else [a.detach() for a in args])
    env: dict[str, Any] = {i["name"]: a for i, a in zip(graph["inputs"], run.args, strict=True)}
    # Where something is written in place, a value is copied when it is defined: later writes would change it.
    keep = (lambda t: t.clone()) if writes else (lambda t: t)
    run.values = {n: keep(v) for n, v in env.items()}
    convert = _Arguments(env, widen=False)
    if seed is not None:
        torch.manual_seed(seed)
    with torch.no_grad():
        for node, op, targets in zip(graph["nodes"], operators, written, strict=True):
            if targets:
                run.mutated = sorted({*run.mutated, *_inputs_at(targets, env, run.args)})
            try:
                result = op(
                    *[convert(a) for a in node["args"]], **{k: convert(v) for k, v in node["kwargs"].items()}
                )
            except PallascopeError:
                raise
            except Exception as error:
                raise PallascopeError(
                    "host_error", f"eager PyTorch raised {type(error).__name__}: {error}", _node_where(node)
                ) from error
            _define(node, result, env)
            for output in node["outputs"]:
                value = env[output["name"]]
                run.values[output["name"]] = None if value is None else keep(value)
    return _finish(graph, env, run)


def _define(node: dict[str, Any], result: Any, env: dict[str, Any]) -> None:
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    if not node["outputs"]:
        return
    if len(results) != len(node["outputs"]):
        raise PallascopeError(
            "malformed_graph",
            f"the operator returned {len(results)} values where the trace has {len(node['outputs'])}",
            _node_where(node),
        )
    for output, value in zip(node["outputs"], results, strict=True):
        # An output that the trace knows as None is None in eager as well, or is not defined by its operator.
        env[output["name"]] = value if isinstance(value, torch.Tensor) else None


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor in float64 (complex128), its strides kept; integers and booleans as they are."""
    wide = _WIDE.get(tensor.dtype)
    if wide is None:
        return tensor
    if tensor.layout is torch.strided and tensor.numel():
        # Over the whole storage, so that overlapping strides (expand) and offsets stay as they are.
        flat = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
        return flat.to(wide).as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    return tensor.to(wide)


def run_float64(graph: dict[str, Any], args: Sequence[torch.Tensor], eager: Run) -> Run:
    """Runs a GRAPH in float64: float inputs are widened, dtype arguments become float64.

    Kept as they are, and said in `notes`: the user's casts to 16-bit floats (rounded, then widened again),
    and random values, which are taken from `eager`, the run_graph of the same inputs.
    Raises Unavailable with the reason when a node has no float64 counterpart.
    """
    _bind(graph, args)
    wide_args = _widen_all(args)
    run = Run(args=wide_args, mutated=list(eager.mutated))
    env: dict[str, Any] = {i["name"]: a for i, a in zip(graph["inputs"], wide_args, strict=True)}
    metas = {i["name"]: i["tensor"] for i in graph["inputs"]}
    metas.update({o["name"]: o["tensor"] for n in graph["nodes"] for o in n["outputs"]})
    convert = _Arguments(env, widen=True)
    operators = [operator(n["target"]) for n in graph["nodes"]]
    written = any(written_arguments(op, n) for op, n in zip(operators, graph["nodes"], strict=True))
    keep = (lambda t: t.clone()) if written else (lambda t: t)
    run.values = {n: keep(v) for n, v in env.items()}
    # Under the default dtype float64 an integer division, or `arange` of floats, computes in float64 as well.
    with torch.no_grad(), _default_dtype(torch.float64):
        for node, op in zip(graph["nodes"], operators, strict=True):
            try:
                result = _wide_call(node, op, convert, metas, eager, run)
            except (Unavailable, PallascopeError):
                raise
            except Exception as error:
                raise Unavailable(
                    f"{_node_where(node)} has no float64 form: {str(error).splitlines()[0]}"
                ) from error
            _define(node, result, env)
            for output in node["outputs"]:
                value = env[output["name"]]
                if (
                    value is not None
                    and output["tensor"] is not None
                    and not op._schema.is_mutable
                    and not is_view(op)
                ):
                    wanted = _WIDE.get(torch_dtype(output["tensor"]["dtype"]))
                    if wanted is not None and value.dtype != wanted:
                        env[output["name"]] = value = value.to(wanted)
                run.values[output["name"]] = None if value is None else keep(value)
        return _finish(graph, env, run)


def _widen_all(args: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies of the arguments in float64; arguments that share a storage share the widened one."""
    storages: dict[tuple[int, torch.dtype], torch.Tensor] = {}
    copies = []
    for a, copy in zip(args, clone_all(args), strict=True):
        wide = _WIDE.get(a.dtype)
        if wide is None or not a.numel():
            copies.append(copy if wide is None else copy.to(wide))
            continue
        key = (copy.untyped_storage().data_ptr(), a.dtype)
        if key not in storages:
            storages[key] = torch.empty(0, dtype=a.dtype).set_(copy.untyped_storage()).to(wide)
        copies.append(storages[key].as_strided(a.size(), a.stride(), a.storage_offset()))
    return copies


def _wide_call(
    node: dict[str, Any],
    op: torch._ops.OpOverload,
    convert: _Arguments,
    metas: dict[str, Any],
    eager: Run,
    run: Run,
) -> Any:
    target = node["target"]
    packet = target.rsplit(".", 1)[0]
    if target == "aten.view.dtype":
        raise Unavailable(f"{_node_where(node)} reads the bits of a number as another dtype")
    args = [convert(a) for a in node["args"]]
    kwargs = {k: convert(v) for k, v in node["kwargs"].items()}
    if is_random(op, args, kwargs):
        return _random_call(node, op, args, kwargs, eager, run)
    if packet in ("aten._softmax", "aten._log_softmax") and len(args) > 2:
        args[2] = False  # half_to_float: the widening that float64 has already
    if packet in ("aten.nan_to_num", "aten.nan_to_num_"):
        # The largest number that infinity becomes is that of the original dtype.
        dtype = torch_dtype(metas[node["outputs"][0]["name"]]["dtype"])
        if dtype.is_floating_point:
            args += [kwargs.pop(n, None) for n in ("nan", "posinf", "neginf")[len(args) - 1 :]]
            args[2] = torch.finfo(dtype).max if args[2] is None else args[2]
            args[3] = torch.finfo(dtype).min if args[3] is None else args[3]
    if packet in _CASTS:
        return _cast(node, op, args, kwargs, metas, run)
    return op(*args, **kwargs)


def _cast(
    node: dict[str, Any],
    op: torch._ops.OpOverload,
    args: list[Any],
    kwargs: dict[str, Any],
    metas: dict[str, Any],
    run: Run,
) -> Any:
    """A conversion in the float64 run: one to fewer digits rounds, and is widened again."""
    output = node["outputs"][0] if node["outputs"] else None
    after = torch_dtype(output["tensor"]["dtype"]) if output and output["tensor"] else None
    source = 1 if node["target"].startswith(("aten.copy.", "aten.copy_.")) else 0
    name = node["args"][source]["value"] if isinstance(node["args"][source], dict) else None
    before = torch_dtype(metas[name]["dtype"]) if name in metas else None
    if after not in _NARROW or before == after:
        return op(*args, **kwargs)
    run.notes.append(f"the cast to {node['outputs'][0]['tensor']['dtype']} of {_node_where(node)} is kept")
    if source == 1:
        args[1] = args[1].to(after).to(torch.float64)
        return op(*args, **kwargs)
    return op(*args, **kwargs).to(after).to(torch.float64)


def _random_call(
    node: dict[str, Any],
    op: torch._ops.OpOverload,
    args: list[Any],
    kwargs: dict[str, Any],
    eager: Run,
    run: Run,
) -> Any:
    """The numbers that eager drew; dropout's mask is applied to the float64 values."""
    drawn = [eager.values[o["name"]] for o in node["outputs"]]
    packet = node["target"].split(".")[1]
    run.notes.append(f"the random values of {_node_where(node)} are eager's")
    probability = args[1] if len(args) > 1 and isinstance(args[1], float) else None
    if packet == "native_dropout" and probability is not None:
        scale = 0.0 if probability == 1.0 else 1.0 / (1.0 - probability)
        return args[0] * drawn[1] * scale, drawn[1]
    if (
        packet in ("dropout", "dropout_", "feature_dropout")
        and probability is not None
        and drawn[0] is not None
    ):
        # Kept elements are those that eager did not set to 0; an input of 0 gives 0 either way.
        scale = 0.0 if probability == 1.0 else 1.0 / (1.0 - probability)
        result = torch.where(drawn[0] != 0, args[0] * scale, torch.zeros((), dtype=args[0].dtype))
        return args[0].copy_(result) if packet == "dropout_" else result
    wide = [None if d is None else widen(d) for d in drawn]
    if op._schema.is_mutable and isinstance(args[0], torch.Tensor):
        return args[0].copy_(wide[0])
    return wide if len(wide) > 1 else wide[0]


def run_flushed(
    graph: dict[str, Any], args: Sequence[torch.Tensor], *, seed: int | None = None
) -> Run | None:
    """run_graph with subnormals flushed to zero, as XLA does on a CPU; None where the processor cannot.

    On one thread, because the processor's flag belongs to a thread.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if not torch.set_flush_denormal(True):
            return None
        return run_graph(graph, args, seed=seed)
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)


def has_subnormals(values: Sequence[torch.Tensor | None]) -> bool:
    """Whether a float tensor among `values` holds a number that is not 0 and below its dtype's smallest
    normal."""
    for v in values:
        if v is not None and v.is_floating_point() and v.numel():
            magnitude = v.abs()
            tiny = torch.finfo(v.dtype).smallest_normal
            if not math.isnan(tiny) and bool(((magnitude > 0) & (magnitude < tiny)).any()):
                return True
    return False
