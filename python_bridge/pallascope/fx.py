"""FX graphs, from aot_autograd or torch.export, as the trace format of core/trace/FORMAT.md.

`convert` writes down what FX recorded and changes nothing: in-place operators stay, no operator is
decomposed. Three things are folded because the format has no word for them: `operator.getitem` (a node
defines all of its outputs), Python constants that reach the graph as inputs, and
`wrap_with_set_grad_enabled`, whose body is put in its place because the gradient mode does not change values; so is
that of a `wrap_with_autocast` which is switched off.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from .dtypes import short_name
from .errors import PallascopeError
from .frames import (  # noqa: F401  (some for those who look for them here)
    OWN_DIR,
    collect_sources,
    is_torch_file,
    module_of,
    module_path,
    parse_stack,
    target_name,
    user_frame,
    where_of,
)
from .scalars import DTYPES, Number, Scalars, from_data, kind_of, known_value, refusal, tensor_of

FORMAT, VERSION = "pallascope.trace", 1
_DYNAMIC_REMEDY = "use dynamic=False (dynamic shapes are not lowered yet)"


@dataclass(frozen=True)
class Ref:
    """A tensor of the graph by its name."""

    name: str


@dataclass
class Conversion:
    """A converted graph and what a caller needs to run it.

    graph             the GRAPH object of the format
    placeholders      one entry for each FX placeholder, in order: ("input", index in graph["inputs"]) for a
                      tensor, ("number", index) for a number that is an input as a tensor without dimensions,
                      ("constant", value) for a Python value that was fixed when the graph was traced
    constants         name of a `constant` input that came from get_attr -> its tensor; they follow the
                      placeholders in graph["inputs"], in this order
    constant_outputs  index among the user outputs -> Python value of one that is no tensor (the format says
                      null there)
    numbers           indices among the user outputs of tensors without dimensions that stand for numbers
    """

    graph: dict[str, Any]
    placeholders: list[tuple[str, Any]] = field(default_factory=list)
    constants: dict[str, torch.Tensor] = field(default_factory=dict)
    constant_outputs: dict[int, Any] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)

    def results(self, outputs: list[Any]) -> list[Any]:
        """What the traced function gives, from the outputs of its module."""
        outputs = list(outputs)
        for index, value in self.constant_outputs.items():
            outputs[index] = value
        for index in self.numbers:
            outputs[index] = outputs[index].item()
        return outputs

    def arguments(self, values: Iterable[Any]) -> list[torch.Tensor]:
        """The tensors for graph["inputs"], from one value for each placeholder; constants are appended.

        Raises PallascopeError (invalid_argument) when a value that was fixed in the trace came differently.
        """
        values = list(values)
        if len(values) != len(self.placeholders):
            raise PallascopeError(
                "invalid_argument",
                f"the graph '{self.graph['name']}' takes "
                f"{len(self.placeholders)} arguments and got {len(values)}",
            )
        tensors = []
        for index, ((kind, what), value) in enumerate(zip(self.placeholders, values, strict=True)):
            if kind == "input":
                if not isinstance(value, torch.Tensor):
                    raise PallascopeError(
                        "invalid_argument",
                        f"argument {index} of the graph "
                        f"'{self.graph['name']}' is a tensor and got {type(value).__name__}",
                    )
                tensors.append(value)
            elif kind == "number":
                tensors.append(tensor_of(value))
            elif not _same_constant(value, what):
                raise PallascopeError(
                    "invalid_argument",
                    f"argument {index} of the graph '{self.graph['name']}' "
                    f"was {what!r} when it was traced and is now {value!r}",
                    "",
                    "compile again for the new value",
                )
        return tensors + list(self.constants.values())


def _same_constant(a: Any, b: Any) -> bool:
    try:
        return bool(a == b) or (a != a and b != b)
    except Exception:
        return a is b


# ------------------------------------------------------------------------------------------------- values


def _plain_int(value: Any, node: torch.fx.Node) -> int:
    if isinstance(value, torch.SymInt):
        known = value.node.maybe_as_int()
        if known is None:
            raise symbolic(node, value)
        return known
    return int(value)


def symbolic(node: torch.fx.Node, value: Any) -> PallascopeError:
    """The refusal of a size or number that is a symbol, with the node and its model line."""
    if from_data(value):
        return refusal(where_of(node), node.name, value)
    if node.op != "placeholder":
        return PallascopeError(
            "symbolic_size",
            f"the node '{node.name}' has the symbolic size '{value}'",
            where_of(node),
            _DYNAMIC_REMEDY,
        )
    # An input has no line; the first operator that has one shows which compiled function this is.
    first = next((n for n in node.graph.nodes if n.op == "call_function" and n.meta.get("stack_trace")), node)
    return PallascopeError(
        "symbolic_size",
        f"the input '{node.name}' has the symbolic size '{value}'",
        where_of(first),
        _DYNAMIC_REMEDY,
    )


def tensor_json(value: torch.Tensor, node: torch.fx.Node) -> dict[str, Any]:
    """The TENSOR object of a (fake) tensor. Raises for symbolic sizes, sparse and subclass tensors."""
    if value.layout is not torch.strided:
        raise PallascopeError(
            "unsupported",
            f"the node '{node.name}' is a tensor with layout {value.layout}",
            where_of(node),
            "use dense tensors (to_dense)",
        )
    if value.is_quantized:
        raise PallascopeError(
            "unsupported",
            f"the node '{node.name}' is a quantized tensor",
            where_of(node),
            "use tensors of an unquantized dtype",
        )
    meta: dict[str, Any] = {
        "dtype": short_name(value.dtype, where_of(node)),
        "sizes": [_plain_int(s, node) for s in value.size()],
        "strides": [_plain_int(s, node) for s in value.stride()],
        "offset": _plain_int(value.storage_offset(), node),
    }
    if str(value.device) != "cpu":
        meta["device"] = str(value.device)
    if value.requires_grad:
        meta["requires_grad"] = True
    return meta


_MEMORY_FORMATS = {
    getattr(torch, n): n
    for n in ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
}


class _Converter:
    """Walks one GraphModule; `env` maps an FX node to a Ref, a Python constant, or a list of these."""

    def __init__(self, gm: torch.fx.GraphModule, describe: Callable[[torch.fx.Node], tuple[str, str]]):
        self.describe = describe
        self.inputs: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self.placeholders: list[tuple[str, Any]] = []
        self.constants: dict[str, torch.Tensor] = {}
        self.attributes: dict[tuple[int, str], Any] = {}
        self.env: dict[torch.fx.Node, Any] = {}
        self.names = {n.name for n in gm.graph.nodes}
        self.scalars = Scalars(self.add, symbolic)

    def add(
        self,
        node: torch.fx.Node,
        target: str,
        args: Any,
        kwargs: Any,
        dtype: torch.dtype,
        sizes: list[int] | None = None,
    ) -> str:
        """Adds a node that FX does not have, for `node`; its one result is dense, and without dimensions by default."""
        name = self.unique(node.name)
        meta = tensor_json(torch.empty(sizes or [], dtype=dtype, device="meta"), node)
        meta.pop("device", None)
        self.record(node, name, target, args, kwargs, [{"name": name, "tensor": meta}], False)
        return name

    # An FX argument as an ARG object.
    def argument(self, value: Any, node: torch.fx.Node) -> Any:
        if isinstance(value, torch.fx.Node):
            return self.argument(self.env[value], node)
        if isinstance(value, (Ref, Number)):
            return {"value": value.name}
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, float):
            if math.isnan(value):
                return {"float": "nan"}
            return value if math.isfinite(value) else {"float": "inf" if value > 0 else "-inf"}
        if isinstance(value, str):
            return {"str": value}
        if isinstance(value, torch.dtype):
            return {"dtype": short_name(value, where_of(node))}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, torch.memory_format):
            return {"memory_format": _MEMORY_FORMATS[value]}
        if isinstance(value, torch.layout):
            return {"layout": str(value).removeprefix("torch.")}
        if isinstance(value, (list, tuple)):
            return [self.argument(v, node) for v in value]
        if isinstance(value, torch.SymInt):
            return _plain_int(value, node)
        if isinstance(value, (torch.SymFloat, torch.SymBool)):
            raise symbolic(node, value)
        raise PallascopeError(
            "unsupported",
            f"the node '{node.name}' has an argument of the type "
            f"{type(value).__name__} ({str(value)[:60]}), which the trace format lacks",
            where_of(node),
            "compute with real numbers and tensors only",
        )

    def unique(self, name: str) -> str:
        """`name`, or `name__2`... when the graph has that name already (bodies of inlined subgraphs)."""
        candidate, count = name, 1
        while candidate in self.names:
            count += 1
            candidate = f"{name}__{count}"
        self.names.add(candidate)
        return candidate

    def placeholder(self, node: torch.fx.Node) -> None:
        value = node.meta.get("val")
        if node.users and all(target_name(u.target) == "with_effects" and u.args[0] is node for u in node.users):
            self.constant_input(node, None)  # the token that keeps effects in order: aot_autograd passes none
        elif isinstance(value, torch.Tensor):
            kind, target = self.describe(node)
            self.placeholders.append(("input", len(self.inputs)))
            self.inputs.append(
                {"kind": kind, "name": node.name, "target": target, "tensor": tensor_json(value, node)}
            )
            self.env[node] = Ref(node.name)
        elif isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            known = known_value(value)
            if known is not None:
                self.constant_input(node, known)
            else:
                self.number_input(node, value)
        elif value is None or isinstance(value, (bool, int, float, str)):
            self.constant_input(node, value)
        else:
            raise PallascopeError(
                "unsupported",
                f"the input '{node.name}' is an object of the type {type(value).__name__}",
                where_of(node),
                "pass tensors and numbers only",
            )

    def number_input(self, node: torch.fx.Node, value: Any) -> None:
        """A number that another graph read from data: the forward saved it for the backward."""
        if not from_data(value):
            raise symbolic(node, value)
        kind, target = self.describe(node)
        self.placeholders.append(("number", len(self.inputs)))
        meta = {"dtype": short_name(DTYPES[kind_of(value)], where_of(node)), "sizes": [], "strides": [], "offset": 0}
        self.inputs.append({"kind": kind, "name": node.name, "target": target, "tensor": meta})
        self.env[node] = Number(node.name, kind_of(value))

    def constant_input(self, node: torch.fx.Node, value: Any) -> None:
        self.placeholders.append(("constant", value))
        self.env[node] = value

    def get_attr(self, gm: torch.fx.GraphModule, node: torch.fx.Node, name: str) -> None:
        key = (id(gm), str(node.target))
        if key in self.attributes:
            self.env[node] = self.attributes[key]
            return
        value = gm
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if isinstance(value, torch.fx.GraphModule):
            self.env[node] = value
        elif isinstance(value, torch.Tensor):
            real = (
                getattr(value, "constant", None) if isinstance(value, torch._subclasses.FakeTensor) else value
            )
            if real is None:
                raise PallascopeError(
                    "unsupported",
                    f"the constant '{node.target}' has no value in the trace",
                    where_of(node),
                    "pass the tensor as an argument",
                )
            real = real.detach()
            self.inputs.append(
                {
                    "kind": "constant",
                    "name": name,
                    "target": str(node.target),
                    "tensor": tensor_json(real, node),
                }
            )
            self.constants[name] = real
            self.env[node] = Ref(name)
        else:
            raise PallascopeError(
                "unsupported",
                f"the constant '{node.target}' is an object of the type {type(value).__name__}",
                where_of(node),
                "use tensors and numbers only",
            )
        self.attributes[key] = self.env[node]

    def call(self, node: torch.fx.Node, rename: Callable[[str], str]) -> None:
        target = node.target
        if target is operator.getitem:
            source, index = self.env[node.args[0]], node.args[1]
            if not isinstance(source, list) or not isinstance(index, int):
                raise PallascopeError(
                    "malformed_graph",
                    f"the node '{node.name}' takes an item of something that is no list",
                    where_of(node),
                )
            self.env[node] = source[index]
            return
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            self.env[node] = self.number(node, value)
            return
        if str(target) == "aten._assert_scalar.default" and self.env.get(node.args[0], node.args[0]) is True:
            self.env[node] = None  # asserted when the graph was traced
            return
        if isinstance(target, torch._ops.HigherOrderOperator):
            self.higher_order(node, target)
            return
        if not isinstance(target, torch._ops.OpOverload):
            raise PallascopeError(
                "unsupported",
                f"the node '{node.name}' calls {target_name(target)}, which is no ATen operator",
                where_of(node),
                "call torch operators only",
            )
        if isinstance(value, (bool, int, float, str)):
            self.env[node] = value  # a question about static shapes, answered when the graph was traced
            return
        self.operator(node, str(target), value, rename, len(target._schema.returns))

    def number(self, node: torch.fx.Node, value: Any) -> Any:
        """A Python constant, or a number that is read from data."""
        args = [self.env[a] if isinstance(a, torch.fx.Node) else a for a in node.args]
        if str(node.target) in ("aten._local_scalar_dense.default", "aten.item.default") and isinstance(args[0], Ref):
            return self.scalars.read(node, args[0])
        if any(isinstance(a, Number) for a in args):
            return self.scalars.arithmetic(node, args)
        known = known_value(value)
        if known is None:
            raise symbolic(node, value)
        return known

    def operator(
        self, node: torch.fx.Node, target: str, value: Any, rename: Callable[[str], str], returns: int
    ) -> None:
        name = rename(node.name)
        args, kwargs = node.args, node.kwargs
        if any(isinstance(self.env.get(n), Number) for n in node.all_input_nodes):
            args, kwargs = torch.fx.node.map_arg((args, kwargs), self.env.__getitem__)
            target, args, kwargs = self.scalars.operands(node, list(args), dict(kwargs))
        is_list = isinstance(value, (list, tuple))
        if is_list:
            # An output takes the name of the first getitem that reads it.
            readers: dict[int, str] = {}
            for user in node.users:
                if user.target is operator.getitem and user.args[0] is node:
                    readers.setdefault(user.args[1] % len(value), user.name)
            names = [rename(readers[i]) if i in readers else f"{name}.{i}" for i in range(len(value))]
            outputs = [
                {"name": n, "tensor": self.output_meta(v, node)} for n, v in zip(names, value, strict=True)
            ]
            self.env[node] = [Ref(o["name"]) if o["tensor"] is not None else None for o in outputs]
        elif returns == 0:
            outputs = []
            self.env[node] = None
        else:
            if "val" not in node.meta:
                raise PallascopeError(
                    "malformed_graph", f"the node '{node.name}' has no tensor meta", where_of(node)
                )
            outputs = [{"name": name, "tensor": self.output_meta(value, node)}]
            self.env[node] = Ref(name) if value is not None else None
        self.record(node, name, target, args, kwargs, outputs, is_list)

    def record(
        self, node: torch.fx.Node, name: str, target: str, args: Any, kwargs: Any, outputs: list[Any], is_list: bool
    ) -> None:
        record: dict[str, Any] = {
            "name": name,
            "target": target,
            "args": [self.argument(a, node) for a in args],
            "kwargs": {k: self.argument(v, node) for k, v in kwargs.items()},
            "outputs": outputs,
            "list_output": is_list,
        }
        path, kind = module_of(node)
        if path:
            record["module"] = path
        if kind:
            record["module_type"] = kind
        stack = parse_stack(node.meta.get("stack_trace"))
        if stack:
            record["stack"] = stack
        self.nodes.append(record)

    def output_meta(self, value: Any, node: torch.fx.Node) -> dict[str, Any] | None:
        if value is None:
            return None
        if isinstance(value, torch.Tensor):
            return tensor_json(value, node)
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise symbolic(node, value)
        raise PallascopeError(
            "unsupported",
            f"the node '{node.name}' returns {type(value).__name__} in a list",
            where_of(node),
            "this operator is not lowered",
        )

    def higher_order(self, node: torch.fx.Node, target: Any) -> None:
        name = target_name(target)
        # The flags before the body: (enabled), and (device, dtype, enabled, cache) of an autocast.
        flags = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4}.get(name)
        if flags is not None and not (flags == 4 and node.args[2] is not False):
            body = self.env.get(node.args[flags]) if isinstance(node.args[flags], torch.fx.Node) else None
            if isinstance(body, torch.fx.GraphModule):
                operands = [self.env[a] if isinstance(a, torch.fx.Node) else a for a in node.args[flags + 1 :]]
                self.env[node] = self.inline(body, operands)
                return
        if name == "with_effects" and isinstance(node.args[1], torch._ops.OpOverload):
            self.with_effects(node, node.args[0], node.args[1], node.args[2:])
            return
        remedy = "write the model without it, or compile around it"
        if "autocast" in name:
            remedy = "cast explicitly, or use torch.compile, which records the casts"
        raise PallascopeError(
            "unsupported", f"the higher-order operator '{name}' is not lowered", where_of(node), remedy
        )

    def with_effects(
        self, node: torch.fx.Node, token: Any, operator_: torch._ops.OpOverload, args: Any
    ) -> None:
        """An operator called for what it does (it raises for a singular matrix, say); gives the token back."""
        results = list(node.meta["val"][1:])
        outputs = []
        if operator_._schema.returns:
            names = [self.unique(node.name) for _ in results]
            metas = [self.output_meta(v, node) for v in results]
            outputs = [{"name": n, "tensor": m} for n, m in zip(names, metas, strict=True)]
        several = len(operator_._schema.returns) > 1
        name = outputs[0]["name"] if outputs and not several else node.name
        self.record(node, name, str(operator_), args, node.kwargs, outputs, several)
        self.env[node] = [self.env[token], *(Ref(o["name"]) if o["tensor"] is not None else None for o in outputs)]

    def inline(self, body: torch.fx.GraphModule, operands: list[Any]) -> list[Any]:
        """Walks a subgraph with `operands` for its placeholders; gives its outputs."""
        new_names: dict[str, str] = {}

        def rename(name: str) -> str:
            # An output and the node that it is named after must agree, hence the memory.
            if name not in new_names:
                new_names[name] = self.unique(name)
            return new_names[name]

        remaining = iter(operands)
        for node in body.graph.nodes:
            if node.op == "placeholder":
                self.env[node] = next(remaining)
            elif node.op == "output":
                outputs = node.args[0]
                outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
                return [self.env[o] if isinstance(o, torch.fx.Node) else o for o in outputs]
            else:
                self.step(body, node, rename)
        return []

    def step(self, gm: torch.fx.GraphModule, node: torch.fx.Node, rename: Callable[[str], str]) -> None:
        if node.op == "get_attr":
            self.get_attr(gm, node, rename(node.name))
        elif node.op == "call_function":
            self.call(node, rename)
        else:
            raise PallascopeError(
                "unsupported",
                f"the node '{node.name}' is a {node.op} of '{node.target}'",
                where_of(node),
                "trace the model with torch.export or torch.compile",
            )


def convert(
    gm: torch.fx.GraphModule,
    name: str,
    kind: str,
    describe: Callable[[torch.fx.Node], tuple[str, str]] | None = None,
    mutations: dict[int, str] | None = None,
) -> Conversion:
    """One FX graph of ATen operators as a GRAPH object.

    name, kind  as the format has them; kind is "inference", "forward", "backward" or "export"
    describe    placeholder -> (kind, target) of the input; by default every placeholder is a user_input that
                is named by its own name
    mutations   index in the FX outputs -> name of the input that this output is written back into

    Raises PallascopeError: symbolic_size for a size that is a symbol, unsupported for higher-order operators,
    for tensors that are not dense and for arguments that the format lacks, each with the node and its model
    line.
    """
    walk = _Converter(gm, describe or (lambda node: ("user_input", str(node.target))))
    conversion = Conversion(graph={"name": name, "kind": kind})
    outputs: list[dict[str, Any]] = []
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            walk.placeholder(node)
        elif node.op == "output":
            user_outputs = 0
            for index, value in enumerate(torch.utils._pytree.tree_leaves(node.args[0])):
                value = walk.env[value] if isinstance(value, torch.fx.Node) else value
                if isinstance(value, list):
                    raise PallascopeError(
                        "malformed_graph", f"output {index} is a list of tensors", where_of(node)
                    )
                if mutations and index in mutations:
                    outputs.append({"kind": "mutation", "value": value.name, "target": mutations[index]})
                    continue
                if isinstance(value, Number):
                    conversion.numbers.append(user_outputs)
                elif not isinstance(value, Ref) and value is not None:
                    conversion.constant_outputs[user_outputs] = value
                outputs.append(
                    {"kind": "user_output", "value": value.name if isinstance(value, (Ref, Number)) else None}
                )
                user_outputs += 1
        else:
            walk.step(gm, node, lambda n: n)
    conversion.graph.update(inputs=walk.inputs, nodes=walk.nodes, outputs=outputs)
    conversion.placeholders, conversion.constants = walk.placeholders, walk.constants
    return conversion


def program_json(
    name: str, graphs: list[dict[str, Any]], sources: dict[str, str] | None = None
) -> dict[str, Any]:
    """The top object of the format over `graphs`; the source files are read where `sources` is None."""
    program: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "producer": f"torch {torch.__version__}",
        "name": name,
        "graphs": graphs,
    }
    sources = collect_sources(graphs) if sources is None else sources
    if sources:
        program["sources"] = sources
    return program


def dumps(program: dict[str, Any]) -> str:
    """The text of a program, without the spaces that json puts after separators by default."""
    return json.dumps(program, separators=(",", ":"), ensure_ascii=False)
