"""A program: inputs with their storage, statements as text, and the names that it returns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F

DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
    "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "b8": torch.bool,
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}
CONSTANTS = {"nan": float("nan"), "inf": float("inf")}
SPACE: dict[str, Any] = {"torch": torch, "F": F, **DTYPES, **CONSTANTS}


@dataclass(frozen=True)
class Input:
    """A tensor over storage of its own, which holds `storage` (one dimension)."""

    storage: torch.Tensor
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def make(self) -> torch.Tensor:
        made = torch.empty(0, dtype=self.storage.dtype)
        return made.set_(self.storage.clone().untyped_storage(), self.offset, self.sizes, self.strides)

    def text(self) -> str:
        values = self.storage.tolist()
        count, dtype = len(values), NAMES[self.storage.dtype]
        if values == list(range(count)) and count > 2:
            storage = f"torch.arange({count}).to({dtype})"
        elif count > 2 and all(v == values[0] for v in values) and values[0] != 0:
            storage = f"torch.full(({count},), {values[0]}, dtype={dtype})"
        else:
            storage = f"torch.tensor({values}, dtype={dtype})"
        if self.offset == 0 and torch.empty(self.sizes).stride() == self.strides and count == torch.Size(self.sizes).numel():
            return storage if len(self.sizes) == 1 else f"{storage}.reshape({self.sizes})"
        return f"torch.as_strided({storage}, {self.sizes}, {self.strides}, {self.offset})"


def plain_input(tensor: torch.Tensor) -> Input:
    dense = tensor.detach().contiguous()
    return Input(dense.reshape(-1).clone(), tuple(dense.shape), tuple(dense.stride()))


@dataclass(frozen=True)
class Statement:
    """`text` in which {0}, {1}, ... stand for the names read; its value goes to `targets` (none: only an effect)."""

    text: str
    reads: tuple[str, ...]
    targets: tuple[str, ...] = ()

    def line(self) -> str:
        said = self.text.format(*self.reads)
        return f"{', '.join(self.targets)} = {said}" if self.targets else said


@dataclass(frozen=True)
class Program:
    inputs: dict[str, Input]
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]
    seed: int = 0
    cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def with_(self, **changes: Any) -> Program:
        return replace(self, cache={}, **changes)

    def source(self, name: str = "f") -> str:
        lines = [f"def {name}({', '.join(self.inputs)}):"]
        lines += [f"    {s.line()}" for s in self.statements]
        comma = "," if len(self.outputs) == 1 else ""
        return "\n".join([*lines, f"    return ({', '.join(self.outputs)}{comma})"]) + "\n"

    def function(self) -> Callable[..., tuple[torch.Tensor, ...]]:
        if "function" not in self.cache:
            space = dict(SPACE)
            exec(compile(self.source(), f"<program {self.seed}>", "exec"), space)
            self.cache["function"] = space["f"]
        return self.cache["function"]

    def arguments(self) -> tuple[torch.Tensor, ...]:
        return tuple(i.make() for i in self.inputs.values())

    def run(self) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
        """Eager's results, and the arguments afterwards."""
        arguments = self.arguments()
        with torch.no_grad():
            return self.function()(*arguments), arguments

    def snippet(self) -> str:
        """Python that needs nothing but torch, and ends with the call of `f`."""
        names = ", ".join(DTYPES)
        types = ", ".join(f"torch.{str(d).removeprefix('torch.')}" for d in DTYPES.values())
        head = ["import torch", "import torch.nn.functional as F", f"{names} = {types}", 'nan, inf = float("nan"), float("inf")']
        inputs = [f"{name} = {i.text()}" for name, i in self.inputs.items()]
        return "\n".join([*head, "", self.source(), *inputs, f"print(f({', '.join(self.inputs)}))"]) + "\n"


def torch_names(statements: Sequence[Statement]) -> list[str]:
    """The functions and methods that the statements call, for counting."""
    return [n for s in statements for n in re.findall(r"(?:torch|F|\}|\))\.(?:linalg\.|Tensor\.)?([a-z_0-9]+)\(", s.text)]
