"""Grows a program statement by statement, running each in eager: what eager refuses is not in the program."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import torch

from . import mutate, operators, structure
from .inputs import DTYPE_WEIGHTS, index_input, random_input, random_sizes, weighted
from .program import DTYPES, SPACE, Input, Program, Statement

LARGEST = 600
TABLE = [*operators.TABLE, *structure.TABLE, *mutate.TABLE]
WEIGHTS = [weight for weight, _ in TABLE]


class NoChoice(Exception):
    """The operator has no operand in this program."""


class Growing:
    """The program so far and the tensors it has in eager."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.seed = seed
        self.inputs: dict[str, Input] = {}
        self.statements: list[Statement] = []
        self.space: dict[str, Any] = dict(SPACE)
        self.values: list[str] = []
        self.favourites = [self.rng.choice((2, 3, 4, 5, 6)) for _ in range(self.rng.choice((1, 2, 2, 3)))]
        if self.rng.random() < 0.25:
            self.favourites.append(1)
        if self.rng.random() < 0.04:
            self.favourites.append(0)
        # One dtype often, so that operators meet each other more than they meet casts.
        self.main_dtype = DTYPES[weighted(self.rng, DTYPE_WEIGHTS)]

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def tensor(self, name: str) -> torch.Tensor:
        return self.space[name]

    def dtype(self) -> torch.dtype:
        return self.main_dtype if self.chance(0.6) else DTYPES[weighted(self.rng, DTYPE_WEIGHTS)]

    def float_dtype(self) -> torch.dtype:
        return self.main_dtype if self.main_dtype.is_floating_point else DTYPES[self.rng.choice(("f32", "f32", "f64", "bf16", "f16"))]

    def add_input(self, made: Input) -> str:
        if len(self.inputs) >= 5:
            raise NoChoice
        name = f"x{len(self.inputs)}"
        self.inputs[name] = made
        self.space[name] = made.make()
        self.values.append(name)
        return name

    def input(self, sizes: tuple[int, ...] | None = None, dtype: torch.dtype | None = None, kind: str | None = None) -> str:
        sizes = random_sizes(self.rng, self.favourites) if sizes is None else tuple(sizes)
        return self.add_input(random_input(self.rng, sizes, dtype or self.dtype(), kind))

    def indices(self, sizes: tuple[int, ...], bound: int, negative: bool = False, dtype: torch.dtype = torch.int64) -> str:
        if bound < 1:
            raise NoChoice
        return self.add_input(index_input(self.rng, tuple(sizes), bound, negative, dtype))

    def pick(self, wanted: Callable[[torch.Tensor], bool] | None = None) -> str:
        """A value that will do, recent ones more likely."""
        fit = [v for v in self.values if wanted is None or wanted(self.tensor(v))]
        if not fit:
            raise NoChoice
        return fit[max(self.rng.randrange(len(fit)), self.rng.randrange(len(fit)))]

    def floating(self) -> str:
        return self.pick(lambda t: t.is_floating_point())

    def dim(self, name: str) -> int:
        rank = self.tensor(name).dim()
        if rank == 0:
            raise NoChoice
        return self.rng.randrange(rank) - (rank if self.chance(0.3) else 0)

    def broadcastable(self, name: str, wanted: Callable[[torch.Tensor], bool] | None = None) -> str:
        """Another value that broadcasts with this one: one of the program's, or a new input."""
        sizes = self.tensor(name).shape

        def fits(other: torch.Tensor) -> bool:
            try:
                return torch.Size(torch.broadcast_shapes(sizes, other.shape)).numel() <= LARGEST and (wanted is None or wanted(other))
            except RuntimeError:
                return False

        if self.chance(0.75):
            try:
                return self.pick(fits)
            except NoChoice:
                pass
        made = [1 if self.chance(0.2) else n for n in sizes]
        if made and self.chance(0.25):
            made = made[self.rng.randrange(len(made)) :]
        dtype = self.dtype()
        if wanted is not None and not wanted(torch.empty(made, dtype=dtype)):
            dtype = torch.float32
        return self.input(tuple(made), dtype)

    def try_statement(self, statement: Statement) -> bool:
        line = statement.line()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(line, self.space)
            except Exception:
                return False
        for target in statement.targets:
            made = self.space.get(target)
            if not isinstance(made, torch.Tensor) or made.numel() > LARGEST or made.dtype not in DTYPES.values():
                return False
        self.statements.append(statement)
        self.values += statement.targets
        return True

    def step(self) -> bool:
        operator = self.rng.choices(TABLE, WEIGHTS)[0][1]
        before = dict(self.inputs)
        try:
            made = operator(self)
        except (NoChoice, RuntimeError, IndexError):  # no operand, or a subscript that the operand does not have
            made = None
        if made is not None:
            text, reads, *count = made
            if isinstance(reads, str):
                reads = (reads,)
            targets = tuple(f"v{len(self.statements)}{'abc'[k] if count and count[0] > 1 else ''}" for k in range(count[0] if count else 1))
            if self.try_statement(Statement(text, tuple(reads), targets)):
                return True
        for name in set(self.inputs) - set(before):  # made for a statement that is not there
            del self.inputs[name], self.space[name]
            self.values.remove(name)
        return False

    def finish(self) -> Program:
        made = [v for v in self.values if v.startswith("v")]
        used = {r for s in self.statements for r in s.reads}
        unused = [v for v in made if v not in used]
        outputs = [*unused[-4:]]
        for _ in range(self.rng.choice((0, 0, 1, 2))):
            if made:
                outputs.append(self.rng.choice(made))
        if self.chance(0.1):
            outputs.append(self.rng.choice(list(self.inputs)))
        self.rng.shuffle(outputs)
        if not outputs:
            outputs = [self.values[-1]]
        outputs = list(dict.fromkeys(outputs)) if self.chance(0.9) else outputs
        return Program(dict(self.inputs), tuple(self.statements), tuple(outputs), self.seed)


def generate(seed: int) -> Program:
    growing = Growing(seed)
    for _ in range(growing.rng.choice((1, 1, 2, 3))):
        growing.input(dtype=growing.main_dtype if growing.chance(0.7) else None)
    wanted = growing.rng.choice((2, 3, 4, 5, 6, 7, 8, 10, 12))
    for _ in range(wanted * 4):
        if len(growing.statements) >= wanted:
            break
        growing.step()
    return growing.finish()
