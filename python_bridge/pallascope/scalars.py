"""Numbers that a graph reads from data (`x.max().item()`), as tensors without dimensions.

The trace format has no word for such a number. It stays what it was before `.item()`: a tensor, f64, i64 or bool for
Python's float, int and bool. Arithmetic on numbers becomes the operator on these tensors, an assertion its
`_assert_async`, and an operator that takes the number as a Scalar its overload that takes a tensor. A number that
must be known when the graph is traced (a size, an index, a factor that no overload takes as a tensor) is refused with
the node and its model line.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_symbols, free_unbacked_symbols

from .errors import PallascopeError

DTYPES = {float: torch.float64, int: torch.int64, bool: torch.bool}
_SYMBOLS = {torch.SymFloat: float, torch.SymInt: int, torch.SymBool: bool}

_ARITHMETIC: dict[Any, str] = {
    operator.add: "aten.add.Tensor",
    operator.sub: "aten.sub.Tensor",
    operator.mul: "aten.mul.Tensor",
    operator.neg: "aten.neg.default",
    operator.lt: "aten.lt.Tensor",
    operator.le: "aten.le.Tensor",
    operator.gt: "aten.gt.Tensor",
    operator.ge: "aten.ge.Tensor",
    operator.eq: "aten.eq.Tensor",
    operator.ne: "aten.ne.Tensor",
    operator.and_: "aten.logical_and.default",
    operator.or_: "aten.logical_or.default",
    torch.sym_not: "aten.logical_not.default",
    torch.sym_float: "aten.clone.default",
    torch.sym_max: "aten.maximum.default",
    torch.sym_min: "aten.minimum.default",
    torch.sym_ite: "aten.where.self",
}
# By a constant only: Python raises for a zero, a tensor does not.
_DIVISION = {
    operator.truediv: "aten.div.Tensor",
    operator.floordiv: "aten.floor_divide.default",
    operator.mod: "aten.remainder.Tensor",
}
_TENSORS = ("Tensor", "Optional[Tensor]")
_FILLED = ("aten.full.default", "aten.new_full.default", "aten.full_like.default")


@dataclass(frozen=True)
class Number:
    """The number that a tensor without dimensions holds; `kind` is float, int or bool.

    known  its value where the trace took one for granted and asserts it (`torch._check(n == 3)`), else None
    """

    name: str
    kind: type
    known: Any = None

    @property
    def dtype(self) -> torch.dtype:
        return DTYPES[self.kind]


def kind_of(value: Any) -> type:
    """Python's type of a symbol."""
    return _SYMBOLS[type(value)]


def known_value(value: Any) -> Any:
    """The Python number of a symbol that can be only one, else None."""
    if free_symbols(value):
        return None
    node = value.node
    return {float: node.maybe_as_float, int: node.maybe_as_int, bool: node.maybe_as_bool}[kind_of(value)]()


def from_data(value: Any) -> bool:
    """Whether a symbol is known only when the graph runs, and not a size of an argument."""
    symbols = free_symbols(value)
    return bool(symbols) and symbols == free_unbacked_symbols(value)


def refusal(where: str, name: str, value: Any) -> PallascopeError:
    return PallascopeError(
        "symbolic_size",
        f"a size or an argument of the node '{name}' is '{value}', a number that is known only when the data is",
        where,
        "keep it in a tensor (no .item()), use a mask (torch.where) for a selection, or compile around this line",
    )


class Scalars:
    """Adds nodes for numbers to a graph that is being converted.

    `add(node, target, args, kwargs, dtype)` adds a node whose result has no dimensions, `node` being where it comes
    from, and gives the result's name; `refuse(node, value)` gives the error.
    """

    def __init__(self, add: Any, refuse: Any):
        self.add, self.refuse = add, refuse

    def read(self, node: torch.fx.Node, source: Any) -> Number:
        """`.item()` of a tensor of one element; `source` is its reference."""
        tensor, kind = node.args[0].meta["val"], kind_of(node.meta["val"])
        name = source.name
        if tensor.dim() != 0:
            name = self.add(node, "aten.reshape.default", [source, []], {}, tensor.dtype)
        return self._as(node, Number(name, kind, known_value(node.meta["val"])), tensor.dtype, DTYPES[kind])

    def _as(self, node: torch.fx.Node, number: Number, have: torch.dtype, dtype: torch.dtype) -> Number:
        if have == dtype:
            return number
        name = self.add(node, "aten._to_copy.default", [number], {"dtype": dtype}, dtype)
        return Number(name, number.kind, number.known)

    def to(self, node: torch.fx.Node, number: Any, dtype: torch.dtype) -> Number:
        """A number, or a constant, as a tensor of a dtype."""
        if isinstance(number, Number):
            return self._as(node, number, number.dtype, dtype)
        kind = type(number)
        return Number(self.add(node, "aten.full.default", [[], number], {"dtype": dtype}, dtype), kind)

    def arithmetic(self, node: torch.fx.Node, args: list[Any]) -> Number:
        """An operator of Python on numbers and constants."""
        value = node.meta["val"]
        target = _ARITHMETIC.get(node.target)
        if node.target in _DIVISION and isinstance(args[1], (int, float)) and args[1] != 0:
            target = _DIVISION[node.target]
        if target is None or node.kwargs or not all(isinstance(a, (Number, bool, int, float)) for a in args):
            raise self.refuse(node, value)
        kinds = [a.kind if isinstance(a, Number) else type(a) for a in args]
        kind = kind_of(value)
        # The operands meet in Python's common type; a comparison of numbers has it too.
        common = next(k for k in (float, int, bool) if k in kinds)
        if node.target in (operator.add, operator.sub, operator.mul, operator.neg, *_DIVISION) and common is bool:
            common = int
        if node.target in (torch.sym_float, operator.truediv):
            common = float
        if node.target is torch.sym_ite:
            values = [self.to(node, args[0], torch.bool), *(self.to(node, a, DTYPES[kind]) for a in args[1:])]
        else:
            values = [self.to(node, a, DTYPES[common]) for a in args]
        return Number(self.add(node, target, values, {}, DTYPES[kind]), kind, known_value(value))

    def operands(
        self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
    ) -> tuple[str, list[Any], dict[str, Any]]:
        """(target, args, kwargs) of an operator that takes numbers, with tensors for them."""
        target = node.target
        if str(target) != "aten._assert_scalar.default":

            def settled(value: Any) -> Any:
                return value.known if isinstance(value, Number) and value.known is not None else value

            args, kwargs = torch.utils._pytree.tree_map(settled, (args, kwargs))
        used = [a for a in (*args, *kwargs.values()) if isinstance(a, Number)]
        if any(isinstance(v, Number) for a in (*args, *kwargs.values()) if isinstance(a, (list, tuple)) for v in a):
            raise self._cannot(node)
        name = str(target)
        if not used:
            return name, args, kwargs
        if name == "aten._assert_scalar.default":
            return "aten._assert_async.msg", [self.to(node, args[0], torch.bool), args[1]], {}
        if name.startswith("aten.sym_constrain_range"):
            raise self._cannot(node)
        result = node.meta.get("val")
        if name == "aten.scalar_tensor.default" and isinstance(result, torch.Tensor):
            return "aten._to_copy.default", [used[0]], {"dtype": result.dtype}
        if name in _FILLED and isinstance(result, torch.Tensor) and result.is_contiguous():
            sizes = list(result.shape)
            one = self.to(node, used[0], result.dtype)
            zero = self.add(node, "aten.full.default", [sizes, 0], {"dtype": result.dtype}, result.dtype, sizes)
            return "aten.where.self", [self.to(node, True, torch.bool), one, Number(zero, used[0].kind)], {}
        overload = self._with_tensors(target, args, kwargs)
        if overload is None:
            raise self._cannot(node)
        metas = [a.meta.get("val") for a in node.all_input_nodes]
        leader = next((m for m in metas if isinstance(m, torch.Tensor)), None)

        def tensor(value: Any) -> Number:
            """The number in the dtype that makes the operator compute in the one that it has for a plain number."""
            kind = value.kind if isinstance(value, Number) else type(value)
            plain = DTYPES[kind]
            if leader is None:
                return self.to(node, value, plain)
            want = torch.result_type(leader, kind(1))
            have = torch.result_type(leader, torch.empty((), dtype=plain, device=leader.device))
            return self.to(node, value, plain if want == have else want)

        def fitted(value: Any, wanted: str) -> Any:
            return tensor(value) if wanted in _TENSORS and isinstance(value, (Number, bool, int, float)) else value

        types = {a.name: str(a.type) for a in overload._schema.arguments}
        made = [fitted(a, wanted) for a, wanted in zip(args, types.values(), strict=False)]
        named = {k: fitted(v, types.get(k, "")) for k, v in kwargs.items()}
        return str(overload), made, named

    @staticmethod
    def _with_tensors(
        target: torch._ops.OpOverload, args: list[Any], kwargs: dict[str, Any]
    ) -> torch._ops.OpOverload | None:
        """The overload of the operator that takes a tensor where each number stands."""
        packet = target.overloadpacket
        for name in (target._overloadname, *packet.overloads()):
            overload = getattr(packet, name)
            wanted = overload._schema.arguments
            if len(wanted) < len(args) or any(a.is_out for a in wanted):
                continue
            given = {**{wanted[k].name: a for k, a in enumerate(args)}, **kwargs}
            types = {a.name: str(a.type) for a in wanted}
            needed = {a.name for a in wanted if not a.has_default_value()}

            def fits(name: str, value: Any, types: dict[str, str] = types) -> bool:
                kind = types.get(name)
                if isinstance(value, Number):
                    return kind in _TENSORS
                if kind in _TENSORS:
                    return value is None or not isinstance(value, (str, list, tuple))
                return kind is not None and (kind != "List[Tensor]" or isinstance(value, (list, tuple)))

            if needed <= set(given) and all(fits(k, v) for k, v in given.items()):
                return overload
        return None

    def _cannot(self, node: torch.fx.Node) -> PallascopeError:
        number = next(
            (a.meta["val"] for a in node.all_input_nodes if isinstance(a.meta.get("val"), tuple(_SYMBOLS))), node.name
        )
        return self.refuse(node, number)


def tensor_of(value: Any) -> torch.Tensor:
    """A Python number as the tensor that stands for it."""
    return torch.tensor(value, dtype=DTYPES[type(value)] if type(value) in DTYPES else None)
