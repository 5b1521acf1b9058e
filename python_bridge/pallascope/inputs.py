"""Inputs for a graph: drawn at random, from a .pt2's weights and samples, from a bundle or from a trace.

A tensor is built exactly as its meta says: sizes, strides (overlapping ones too) and offset, over a storage
that is just large enough. Values are legal for what the graph does with them: indices are in range,
probabilities in 0..1, variances positive, integer divisors not 0.
"""

from __future__ import annotations

import io
import math
import mmap
import os
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .dtypes import torch_dtype
from .errors import PallascopeError


def clone_all(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies with the same sizes, strides and offsets; tensors that share a storage share the copy of it."""
    storages: dict[int, torch.UntypedStorage] = {}
    copies = []
    for t in tensors:
        t = t.detach()
        key = t.untyped_storage()._cdata
        if key not in storages:
            storages[key] = t.untyped_storage().clone()
        copies.append(
            torch.empty(0, dtype=t.dtype).set_(storages[key], t.storage_offset(), t.size(), t.stride())
        )
    return copies


def storage_elements(meta: dict[str, Any]) -> int:
    """How many elements the storage of a TENSOR needs, its offset included; 0 elements need none."""
    if any(s == 0 for s in meta["sizes"]):
        return meta["offset"]
    return meta["offset"] + 1 + sum((n - 1) * s for n, s in zip(meta["sizes"], meta["strides"], strict=True))


def shape_as(flat: torch.Tensor, meta: dict[str, Any]) -> torch.Tensor:
    """A view of a storage's elements with the sizes, strides and offset of a TENSOR."""
    return torch.as_strided(flat, meta["sizes"], meta["strides"], meta["offset"])


# ----------------------------------------------------------------------------------- what values are legal


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
        elif op in ("embedding_dense_backward", "embedding_backward"):
            index_range(args[1], args[2])
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
        elif op in ("select_scatter", "slice_scatter", "diagonal_scatter"):
            pass
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
        self.ask_positive(node, why)

    def ask_positive(self, node: dict[str, Any], why: str) -> None:
        """A variance, or its inverse root, is positive wherever a normalisation takes one."""
        if "norm" not in node["target"]:
            return
        try:
            from .reference import operator

            schema = operator(node["target"])._schema
        except PallascopeError:
            return
        for index, argument in enumerate(schema.arguments):
            if argument.name in ("running_var", "rstd", "save_invstd", "save_var", "invstd"):
                self.need(self.argument(node, index, argument.name), Legal(0.1, 2.0, why=why))


def legal_values(graph: dict[str, Any]) -> dict[str, Legal]:
    """For each graph input that the graph makes demands on: what its values have to be."""
    demands = _Demands(graph).found
    result = {i["name"]: demands[i["name"]] for i in graph["inputs"] if i["name"] in demands}
    for i in graph["inputs"]:
        # A variance is a variance also where the graph normalises by plain arithmetic.
        if i["kind"] == "buffer" and i["target"].rsplit(".", 1)[-1] in ("running_var", "var", "variance"):
            result.setdefault(i["name"], Legal(0.1, 2.0, why="a variance"))
    return result


# ----------------------------------------------------------------------------------- random values


def _draw(count: int, dtype: torch.dtype, legal: Legal, generator: torch.Generator) -> torch.Tensor:
    if dtype is torch.bool:
        return torch.rand(count, generator=generator) > 0.5
    if dtype.is_complex:
        parts = torch.randn(count, 2, generator=generator, dtype=torch.float32)
        return torch.view_as_complex(parts).to(dtype)
    if dtype.is_floating_point:
        if legal.low is None and legal.high is None:
            flat = torch.randn(count, generator=generator, dtype=torch.float32).to(dtype)
        else:
            low = legal.low if legal.low is not None else legal.high - 4.0
            high = legal.high if legal.high is not None else low + 4.0
            flat = (torch.rand(count, generator=generator, dtype=torch.float32) * (high - low) + low).to(
                dtype
            )
        return flat.sort().values if legal.ascending else flat
    info = torch.iinfo(dtype)
    usual = (0, 255) if dtype is torch.uint8 else (0, 20) if info.min == 0 else (-10, 10)
    low = usual[0] if legal.low is None else int(legal.low)
    high = usual[1] if legal.high is None else int(legal.high)
    if legal.low is not None and legal.high is None:
        high = low + 20
    if legal.high is not None and legal.low is None:
        low = high - 20
    low, high = max(low, info.min), min(high, info.max)
    if high < low:
        low = high = max(info.min, min(0, info.max))  # an axis of no elements: there is no legal index
    flat = torch.randint(low, high + 1, (count,), generator=generator, dtype=torch.int64)
    if legal.nonzero:
        flat[flat == 0] = 1 if high >= 1 else -1
    return flat.sort().values.to(dtype) if legal.ascending else flat.to(dtype)


def random_tensor(meta: dict[str, Any], seed: int, legal: Legal | None = None) -> torch.Tensor:
    """A tensor with the sizes, strides and offset of `meta`, with values drawn from `seed`.

    Floats are standard normal, integers within -10..10 (u8: 0..255), booleans even odds, unless `legal`
    narrows them.
    """
    dtype = torch_dtype(meta["dtype"])
    legal = legal or Legal()
    generator = torch.Generator().manual_seed(seed)
    flat = _draw(max(storage_elements(meta), 0), dtype, legal, generator)
    tensor = shape_as(flat, meta)
    if legal.ascending and tensor.dim() and tensor.numel():
        # Ascending along the last axis, whatever the strides are.
        tensor.copy_(tensor.to(torch.float64 if tensor.is_floating_point() else torch.int64).sort(-1).values)
        if legal.low == 0 and not tensor.is_floating_point():
            tensor[..., 0] = 0  # offsets of bags start at 0
    return tensor


def random_inputs(
    graph: dict[str, Any], seed: int = 0, known: dict[str, torch.Tensor] | None = None
) -> tuple[list[torch.Tensor], str]:
    """A tensor for each input of a GRAPH, and a sentence on how they were made.

    known  target -> tensor for parameters, buffers and constants (from weights or a trace); the others are
           drawn. The n-th input depends on `seed` and n alone, so that one more input changes no other.
    """
    legal = legal_values(graph)
    tensors, given, ranged = [], 0, 0
    for index, i in enumerate(graph["inputs"]):
        value = (known or {}).get(i["target"]) if i["kind"] != "user_input" else None
        if value is not None:
            given += 1
            tensors.append(_like(value, i))
            continue
        demand = legal.get(i["name"])
        if demand is not None:
            ranged += 1
        tensors.append(random_tensor(i["tensor"], _input_seed(seed, index), demand))
    text = f"{len(tensors) - given} random (seed {seed}"
    text += f", {ranged} of them within the range that the graph needs)" if ranged else ")"
    return tensors, text + (f", {given} given" if given else "")


def _input_seed(seed: int, index: int) -> int:
    return (seed * 1_000_003 + index * 7919 + 17) % (1 << 63)


def _like(value: torch.Tensor, i: dict[str, Any]) -> torch.Tensor:
    """A copy of a given tensor with the layout of an input's meta. Raises PallascopeError
    (invalid_argument)."""
    meta = i["tensor"]
    if list(value.size()) != meta["sizes"] or value.dtype != torch_dtype(meta["dtype"]):
        raise PallascopeError(
            "invalid_argument",
            f"the tensor for '{i['target']}' is {value.dtype} "
            f"{list(value.size())}, the graph has {meta['dtype']} {meta['sizes']}",
            i["name"],
        )
    if list(value.stride()) == meta["strides"] and value.storage_offset() == meta["offset"]:
        return value.detach()
    result = shape_as(torch.zeros(max(storage_elements(meta), 0), dtype=value.dtype), meta)
    if value.numel():
        result.copy_(value) if not any(
            s == 0 and n > 1 for n, s in zip(meta["sizes"], meta["strides"], strict=True)
        ) else _copy_expanded(result, value)
    return result


def _copy_expanded(result: torch.Tensor, value: torch.Tensor) -> None:
    """Copies into a tensor with strides of 0: the elements that share memory hold one value in `value` as
    well."""
    index = tuple(slice(0, 1) if s == 0 else slice(None) for s in result.stride())
    result[index].copy_(value[index])


# ----------------------------------------------------------------------------------- .pt2 archives


class Pt2:
    """The tensors of a .pt2: weights mapped from the file (copy on write), samples loaded weights-only."""

    def __init__(self, path: str | os.PathLike[str]):
        """Raises PallascopeError: not_found, not_a_zip."""
        self.path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        if not os.path.exists(self.path):
            raise PallascopeError("not_found", f"there is no file '{path}'", self.path)
        if not zipfile.is_zipfile(self.path):
            raise PallascopeError(
                "not_a_zip",
                f"'{path}' is no zip archive",
                self.path,
                "give a file that torch.export.save wrote",
            )
        with zipfile.ZipFile(self.path) as archive:
            self.members = {i.filename: i for i in archive.infolist()}
        self._map: mmap.mmap | None = None

    def member(self, name: str) -> zipfile.ZipInfo:
        """The archive member of a name that may lack the archive's root folder. Raises missing_member."""
        found = self.members.get(name)
        if found is None:
            found = next((i for n, i in self.members.items() if n.endswith("/" + name)), None)
        if found is None:
            raise PallascopeError("missing_member", f"the archive lacks '{name}'", self.path)
        return found

    def storage(self, member: str, dtype: torch.dtype) -> torch.Tensor:
        """All elements of a stored member as a flat tensor. Mapped, not read: pages load when they are
        touched."""
        info = self.member(member)
        size = torch.empty((), dtype=dtype).element_size()
        count = info.file_size // size
        if count == 0:
            return torch.empty(0, dtype=dtype)
        if info.compress_type != zipfile.ZIP_STORED:
            with zipfile.ZipFile(self.path) as archive:  # someone repacked it: then it has to be unpacked
                return torch.frombuffer(bytearray(archive.read(info)), dtype=dtype, count=count)
        if self._map is None:
            with open(self.path, "rb") as f:
                self._map = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY)
        # The local header has name and extra fields of its own lengths (the extra field pads to 64 bytes).
        header = self._map[info.header_offset : info.header_offset + 30]
        if header[:4] != b"PK\x03\x04":
            raise PallascopeError("not_readable", f"the archive is damaged at '{info.filename}'", self.path)
        name_length, extra_length = struct.unpack("<HH", header[26:30])
        start = info.header_offset + 30 + name_length + extra_length
        if start % size:
            return torch.frombuffer(
                bytearray(self._map[start : start + info.file_size]), dtype=dtype, count=count
            )
        return torch.frombuffer(self._map, dtype=dtype, count=count, offset=start)

    def weights(self, program: dict[str, Any], graph: dict[str, Any]) -> dict[str, torch.Tensor]:
        """target -> tensor for the inputs of a graph whose bytes the program's "weights" place in this
        archive."""
        placed = program.get("weights") or {}
        result = {}
        for i in graph["inputs"]:
            weight = placed.get(i["target"])
            if weight is None or i["kind"] == "user_input":
                continue
            flat = self.storage(weight["member"], torch_dtype(i["tensor"]["dtype"]))
            if flat.numel() < storage_elements(i["tensor"]):
                raise PallascopeError(
                    "storage_bounds",
                    f"'{weight['member']}' has {flat.numel()} elements, "
                    f"'{i['target']}' reaches to {storage_elements(i['tensor'])}",
                    self.path,
                )
            result[i["target"]] = shape_as(flat, i["tensor"])
        return result

    def samples(self) -> list[torch.Tensor] | None:
        """The tensors among the sample inputs, flattened in order; None when the archive has none.

        The pickle is loaded with weights_only=True: one that asks for more is refused (not_readable).
        """
        name = next((n for n in self.members if "/data/sample_inputs/" in f"/{n}"), None)
        if name is None:
            return None
        with zipfile.ZipFile(self.path) as archive:
            data = archive.read(name)
        if not data:
            return None
        try:
            loaded = torch.load(io.BytesIO(data), weights_only=True)
        except Exception as error:
            raise PallascopeError(
                "not_readable",
                "the sample inputs hold more than tensors, and code in a file is not "
                f"run ({str(error).splitlines()[0]})",
                f"{self.path}: {name}",
                "use random inputs",
            ) from error
        return [v for v in torch.utils._pytree.tree_leaves(loaded) if isinstance(v, torch.Tensor)]


def sample_inputs(
    graph: dict[str, Any],
    samples: Sequence[torch.Tensor] | dict[str, torch.Tensor],
    known: dict[str, torch.Tensor] | None,
    seed: int,
) -> tuple[list[torch.Tensor], str]:
    """Inputs with the given values for the user inputs (in order, or by name); the rest as random_inputs
    does."""
    tensors, text = random_inputs(graph, seed, known)
    users = [(p, i) for p, i in enumerate(graph["inputs"]) if i["kind"] == "user_input"]
    if isinstance(samples, dict):
        pairs = [(p, i, samples[i["name"]]) for p, i in users if i["name"] in samples]
    else:
        if len(samples) != len(users):
            raise PallascopeError(
                "invalid_argument",
                f"there are {len(samples)} sample inputs, the graph takes {len(users)}",
                graph["name"],
            )
        pairs = [(p, i, v) for (p, i), v in zip(users, samples, strict=True)]
    for position, i, value in pairs:
        tensors[position] = _like(value, i)
    return tensors, f"{len(pairs)} sample inputs, the others: {text}"
