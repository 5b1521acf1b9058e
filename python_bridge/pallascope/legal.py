"""What values a graph can take: found by walking it backward from the operators that make demands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from .dtypes import torch_dtype
from .errors import PallascopeError
from .operators import operator

# Arguments of normalisations that are variances or inverse roots of them.
_VARIANCES = ("running_var", "rstd", "save_invstd", "save_var", "invstd")
# Parts of the names that schemas give to indices, and to counts that index like them.
_INDEX_LIKE = ("ind", "offset", "bag", "lengths", "target")


@dataclass(frozen=True)
class Legal:
    """Legal values: low <= value <= high (either may be None), not 0 if `nonzero`, ascending along the last
    axis if `ascending`; `why` says which node asks for it."""

    low: float | None = None
    high: float | None = None
    nonzero: bool = False
    ascending: bool = False
    why: str = ""

    def both(self, other: Legal) -> Legal:
        """What both allow."""
        lows = [v for v in (self.low, other.low) if v is not None]
        highs = [v for v in (self.high, other.high) if v is not None]
        return Legal(
            max(lows, default=None),
            min(highs, default=None),
            self.nonzero or other.nonzero,
            self.ascending or other.ascending,
            self.why or other.why,
        )

    def shifted(self, by: float) -> Legal:
        """The legal values of x when x + by has to be legal here."""
        return Legal(
            None if self.low is None else self.low - by,
            None if self.high is None else self.high - by,
            False,
            self.ascending,
            self.why,
        )


# Operators whose output has the values of their first argument: a demand on the output is one on the
# argument.
_PASS_THROUGH = set(
    """view reshape _unsafe_view expand permute transpose t squeeze unsqueeze slice select flatten unflatten
    clone contiguous _to_copy to detach alias lift_fresh lift_fresh_copy repeat split split_with_sizes chunk
    unbind narrow movedim swapaxes expand_as view_as reshape_as convert_element_type flip roll tile diagonal
    unfold as_strided type_as numpy_T squeeze_ unsqueeze_ detach_ _reshape_alias broadcast_to tensor_split
    index_select gather view_copy expand_copy permute_copy""".split()
)


class _Demands:
    """Walks a graph backward and collects what each value has to be."""

    def __init__(self, graph: dict[str, Any]):
        self.found: dict[str, Legal] = {}
        self.metas = {i["name"]: i["tensor"] for i in graph["inputs"]}
        for node in graph["nodes"]:
            self.metas.update({o["name"]: o["tensor"] for o in node["outputs"]})
        for node in reversed(graph["nodes"]):
            self.pass_back(node)
            self.ask(node)

    def need(self, arg: Any, legal: Legal) -> None:
        if isinstance(arg, dict) and "value" in arg:
            name = arg["value"]
            self.found[name] = self.found[name].both(legal) if name in self.found else legal

    def sizes(self, arg: Any) -> list[int]:
        meta = self.metas.get(arg.get("value")) if isinstance(arg, dict) else None
        return meta["sizes"] if meta else []

    def is_integer(self, arg: Any) -> bool:
        meta = self.metas.get(arg.get("value")) if isinstance(arg, dict) else None
        return bool(meta) and meta["dtype"][0] in "iu"

    @staticmethod
    def argument(node: dict[str, Any], index: int, name: str, default: Any = None) -> Any:
        if index < len(node["args"]):
            return node["args"][index]
        return node["kwargs"].get(name, default)

    def pass_back(self, node: dict[str, Any]) -> None:
        op = node["target"].split(".")[1]
        for output in node["outputs"]:
            legal = self.found.get(output["name"])
            if legal is None:
                continue
            first = node["args"][0] if node["args"] else None
            if op in _PASS_THROUGH:
                self.need(first, legal)
            elif op in ("add", "add_", "sub", "sub_") and isinstance(
                self.argument(node, 1, "other"), (int, float)
            ):
                by = node["args"][1] * (node["kwargs"].get("alpha", 1) or 0)
                self.need(first, legal.shifted(by if op.startswith("add") else -by))
            elif op in ("cat", "stack") and isinstance(first, list):
                for part in first:
                    self.need(part, legal)
            elif op in ("where", "masked_fill", "masked_fill_"):
                for part in node["args"][1:] if op == "where" else [first]:
                    self.need(part, legal)

    def ask(self, node: dict[str, Any]) -> None:
        op, args = node["target"].split(".")[1], node["args"]
        op = op[:-1] if op.endswith("_") and not op.startswith("__") else op
        why = f"{node['name']} ({node['target']})"

        def index_range(arg: Any, extent: int, negative: bool = False) -> None:
            self.need(arg, Legal(-extent if negative else 0, extent - 1, why=why))

        def extent_of(dim_arg: Any) -> int:
            sizes = self.sizes(args[0])
            return sizes[dim_arg] if sizes and isinstance(dim_arg, int) else 1

        if op == "embedding":
            index_range(args[1], self.sizes(args[0])[0])
        elif op in ("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"):
            index_range(args[1], self.sizes(args[0])[0])
            count = (self.sizes(args[1]) or [1])[0]
            self.need(args[2], Legal(0, max(count - 1, 0), ascending=True, why=why))
        elif op in ("_embedding_bag_backward", "_embedding_bag_dense_backward"):
            # (grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights), dense without
            # offsets
            dense = op == "_embedding_bag_dense_backward"
            after = args[2:] if dense else args[3:]
            count, bags = (self.sizes(args[1]) or [1])[0], (self.sizes(args[0]) or [1])[0]
            index_range(args[1], after[3])
            if not dense:
                self.need(args[2], Legal(0, max(count - 1, 0), ascending=True, why=why))
            self.need(after[0], Legal(0, bags - 1, ascending=True, why=why))
            self.need(after[1], Legal(1, max(count, 1), why=why))
            index_range(after[2], after[3])
        elif op in ("embedding_dense_backward", "embedding_backward"):
            index_range(args[1], args[2])
        elif op == "embedding_renorm":
            index_range(args[1], self.sizes(args[0])[0])
        elif op in (
            "index",
            "index_put",
            "_unsafe_index",
            "_unsafe_index_put",
            "_index_put_impl",
            "_unsafe_masked_index",
            "index_put_",
        ):
            sizes = self.sizes(args[0])
            position = 0
            for index in args[1] if isinstance(args[1], list) else []:
                meta = (
                    self.metas.get(index["value"]) if isinstance(index, dict) and "value" in index else None
                )
                if meta and meta["dtype"] in ("bool", "u8"):
                    position += max(len(meta["sizes"]), 1)  # a mask takes as many axes as it has
                    continue
                if meta and position < len(sizes):
                    index_range(index, sizes[position], negative=True)
                position += 1
        elif op in (
            "index_select",
            "gather",
            "scatter",
            "scatter_add",
            "scatter_reduce",
            "index_add",
            "index_copy",
            "index_fill",
            "index_reduce",
            "take_along_dim",
        ):
            dim = self.argument(node, 1, "dim", 0)
            if op == "take_along_dim":
                index_range(args[1], extent_of(self.argument(node, 2, "dim", 0)))
            else:
                index_range(self.argument(node, 2, "index"), extent_of(dim))
        elif op in ("gather_backward", "index_select_backward"):
            dim = args[2]
            self.need(
                args[3],
                Legal(0, (self.sizes(args[1]) or [1])[dim] - 1 if isinstance(dim, int) else 0, why=why),
            )
        elif op in ("take", "put"):
            total = math.prod(self.sizes(args[0]))
            index_range(args[1], total, negative=True)
        elif op == "one_hot":
            classes = self.argument(node, 1, "num_classes", -1)
            index_range(args[0], classes if isinstance(classes, int) and classes > 0 else 8)
        elif op in (
            "nll_loss_forward",
            "nll_loss",
            "nll_loss_nd",
            "cross_entropy_loss",
            "nll_loss2d_forward",
            "nll_loss2d",
        ):
            sizes = self.sizes(args[0])
            if self.is_integer(args[1]) and sizes:
                index_range(args[1], sizes[1] if len(sizes) > 1 else sizes[0])
        elif op in ("nll_loss_backward", "nll_loss2d_backward"):
            sizes = self.sizes(args[1])
            if sizes:
                index_range(args[2], sizes[1] if len(sizes) > 1 else sizes[0])
        elif op in (
            "max_pool2d_with_indices_backward",
            "max_pool3d_with_indices_backward",
            "adaptive_max_pool2d_backward",
            "adaptive_max_pool3d_backward",
            "fractional_max_pool2d_backward",
            "fractional_max_pool3d_backward",
        ):
            axes = 3 if "3d" in op else 2
            index_range(args[-1], math.prod(self.sizes(args[1])[-axes:]))
        elif op in ("max_unpool2d", "max_unpool3d"):
            index_range(args[1], math.prod(args[2]))
        elif op in ("searchsorted", "bucketize"):
            self.need(args[0] if op == "searchsorted" else args[1], Legal(ascending=True, why=why))
        elif op in ("div", "remainder", "fmod", "floor_divide", "gcd", "true_divide", "divide"):
            divisor = self.argument(node, 1, "other")
            if op != "gcd" and self.is_integer(divisor):
                self.need(divisor, Legal(nonzero=True, why=why))
        elif op in ("bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__"):
            meta = self.metas.get(args[0].get("value")) if isinstance(args[0], dict) else None
            bits = torch.iinfo(torch_dtype(meta["dtype"])).bits if meta and meta["dtype"][0] in "iu" else 8
            self.need(args[1], Legal(0, bits - 1, why=why))
        elif op == "pow" and len(args) > 1 and self.is_integer(args[1]):
            if self.is_integer(args[0]) or isinstance(args[0], int):
                self.need(args[1], Legal(0, 4, why=why))
        elif op == "bernoulli":
            self.need(args[0], Legal(0.0, 1.0, why=why))
        elif op == "multinomial":
            self.need(args[0], Legal(0.001, 1.0, why=why))
        elif op in ("binary_cross_entropy", "binary_cross_entropy_backward"):
            shift = 1 if op.endswith("backward") else 0
            self.need(args[shift], Legal(0.01, 0.99, why=why))
            self.need(args[shift + 1], Legal(0.0, 1.0, why=why))
        elif op == "repeat_interleave" and args and self.is_integer(args[-1]):
            self.need(args[-1], Legal(0, 3, why=why))
        elif op in ("poisson", "_standard_gamma", "_sample_dirichlet"):
            self.need(args[0], Legal(0.1, 4.0, why=why))
        elif op == "value_selecting_reduction_backward":  # (grad, dim, indices, sizes, keepdim)
            index_range(args[2], args[3][args[1]] if args[3] else 1)
        elif op == "cummaxmin_backward":  # (grad, input, indices, dim)
            sizes = self.sizes(args[1])
            index_range(args[2], sizes[args[3]] if sizes else 1)
        elif op in ("multi_margin_loss", "multi_margin_loss_backward"):
            shift = 1 if op.endswith("backward") else 0
            index_range(args[1 + shift], (self.sizes(args[shift]) or [1])[-1])
        else:
            self.ask_by_names(node, why)

    def ask_by_names(self, node: dict[str, Any], why: str) -> None:
        """What the names of a schema's arguments tell, for an operator without a rule of its own.

        A variance, or its inverse root, is positive wherever a normalisation takes one. An integer that is
        named like an index is 0: legal for any axis, where a random one could read outside of a tensor
        (PyTorch does not check every backward).
        """
        try:
            schema = operator(node["target"])._schema
        except PallascopeError:
            return
        for index, argument in enumerate(schema.arguments):
            given = self.argument(node, index, argument.name)
            if argument.name in _VARIANCES and "norm" in node["target"]:
                self.need(given, Legal(0.1, 2.0, why=why))
            elif any(part in argument.name for part in _INDEX_LIKE):
                for tensor in given if isinstance(given, list) else [given]:
                    if self.is_integer(tensor):
                        self.need(tensor, Legal(0, 0, why=why))


def legal_values(graph: dict[str, Any]) -> dict[str, Legal]:
    """For each graph input that the graph makes demands on: what its values have to be."""
    demands = _Demands(graph).found
    result = {i["name"]: demands[i["name"]] for i in graph["inputs"] if i["name"] in demands}
    for i in graph["inputs"]:
        # A variance is a variance also where the graph normalises by plain arithmetic.
        if i["kind"] == "buffer" and i["target"].rsplit(".", 1)[-1] in ("running_var", "var", "variance"):
            result.setdefault(i["name"], Legal(0.1, 2.0, why="a variance"))
    return result
