"""Makes a failing program smaller as long as it fails in the same way."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator

import torch

from .program import NAMES, SPACE, Input, Program, Statement, plain_input

Fails = Callable[[Program], bool]


def eager_accepts(program: Program) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results, _ = program.run()
        except Exception:
            return False
    return all(isinstance(r, torch.Tensor) and r.dtype in NAMES for r in results)


def tidy(program: Program) -> Program:
    """Without inputs that nothing reads."""
    used = {r for s in program.statements for r in s.reads} | set(program.outputs)
    kept = {n: i for n, i in program.inputs.items() if n in used}
    return program.with_(inputs=kept or dict(list(program.inputs.items())[:1]))


def rename(statement: Statement, old: str, new: str) -> Statement:
    return Statement(statement.text, tuple(new if r == old else r for r in statement.reads), statement.targets)


def fewer_outputs(program: Program) -> Iterator[Program]:
    for name in program.outputs:
        yield program.with_(outputs=(name,))
    for k in range(len(program.outputs)):
        if len(program.outputs) > 1:
            yield program.with_(outputs=program.outputs[:k] + program.outputs[k + 1 :])


def fewer_statements(program: Program) -> Iterator[Program]:
    count = len(program.statements)
    for size in sorted({count // 2, count // 4, 1} - {0}, reverse=True):
        for k in range(count - size, -1, -1):
            kept = program.statements[:k] + program.statements[k + size :]
            gone = {t for s in program.statements[k : k + size] for t in s.targets}
            read = {r for s in kept for r in s.reads}
            if not gone & (read | set(program.outputs)):
                yield program.with_(statements=kept)
            elif not gone & read and (left := tuple(o for o in program.outputs if o not in gone)):
                yield program.with_(statements=kept, outputs=left)


def bypassed(program: Program) -> Iterator[Program]:
    """A statement's operand instead of its result."""
    for k, statement in enumerate(program.statements):
        for new in dict.fromkeys(statement.reads):
            for old in statement.targets:
                rest = tuple(rename(s, old, new) for s in program.statements[k + 1 :])
                outputs = tuple(new if o == old else o for o in program.outputs)
                yield program.with_(statements=program.statements[:k] + rest, outputs=outputs)


def values_before(program: Program, count: int) -> dict[str, torch.Tensor]:
    """The tensors that are there after `count` statements in eager."""
    space = dict(SPACE)
    space.update(zip(program.inputs, program.arguments()))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for statement in program.statements[:count]:
            exec(statement.line(), space)
    return {n: v for n, v in space.items() if isinstance(v, torch.Tensor)}


def result_as_input(program: Program) -> Iterator[Program]:
    """An input that holds what a statement gives, instead of the statement, in its layout or in a plain one."""
    for k, statement in enumerate(program.statements):
        if not statement.targets:
            continue
        values = values_before(program, k + 1)
        if any(values[t].untyped_storage().nbytes() > 1 << 14 for t in statement.targets):
            continue
        for as_is in (False, True):
            inputs = dict(program.inputs)
            for t in statement.targets:
                v = values[t]
                inputs[t] = Input(torch.empty(0, dtype=v.dtype).set_(v.untyped_storage()).clone(), tuple(v.shape), tuple(v.stride()), v.storage_offset()) if as_is else plain_input(v)
            yield tidy(program.with_(inputs=inputs, statements=program.statements[:k] + program.statements[k + 1 :]))


def plainer_text(program: Program) -> Iterator[Program]:
    """Smaller numbers in the calls, and fewer keywords."""
    for k, statement in enumerate(program.statements):
        text = statement.text
        for match in re.finditer(r"(?<![\w{.])-?\d+(\.\d+)?(e-?\d+)?(?![\w}.])", text):
            for new in ("0", "1", "2", str(int(float(match[0]) / 2))):
                if abs(float(new)) < abs(float(match[0])):
                    yield replaced(program, k, text[: match.start()] + new + text[match.end() :])
        for match in re.finditer(r", \w+=[\w.']+", text):
            yield replaced(program, k, text[: match.start()] + text[match.end() :])


def replaced(program: Program, k: int, text: str) -> Program:
    old = program.statements[k]
    return program.with_(statements=(*program.statements[:k], Statement(text, old.reads, old.targets), *program.statements[k + 1 :]))


def smaller_inputs(program: Program) -> Iterator[Program]:
    for name, given in program.inputs.items():
        for d, extent in enumerate(given.sizes):
            for n in (1, 2, extent // 2, extent - 1):
                if 0 <= n < extent:
                    sizes = (*given.sizes[:d], n, *given.sizes[d + 1 :])
                    yield with_input(program, name, Input(given.storage, sizes, given.strides, given.offset))
            if extent == 1:
                yield with_input(program, name, Input(given.storage, given.sizes[:d] + given.sizes[d + 1 :], given.strides[:d] + given.strides[d + 1 :], given.offset))
    # Two inputs often share an extent, and the calls name it.
    extents = {n for i in program.inputs.values() for n in i.sizes if n > 1}
    for extent in sorted(extents, reverse=True):
        for n in sorted({1, 2, extent - 1} - {extent}):
            inputs = {name: Input(i.storage, tuple(n if s == extent else s for s in i.sizes), i.strides, i.offset) for name, i in program.inputs.items()}
            yield program.with_(inputs=inputs)


def with_input(program: Program, name: str, made: Input) -> Program:
    return program.with_(inputs={**program.inputs, name: made})


def plainer_inputs(program: Program) -> Iterator[Program]:
    for name, given in program.inputs.items():
        tensor = given.make()
        if (dense := plain_input(tensor)).sizes != given.sizes or dense.strides != given.strides or given.offset or len(given.storage) != len(dense.storage):
            yield with_input(program, name, dense)
        count, dtype = len(given.storage), given.storage.dtype
        if given.offset:
            yield with_input(program, name, Input(given.storage[given.offset :], given.sizes, given.strides, 0))
        last = given.offset + sum((n - 1) * s for n, s in zip(given.sizes, given.strides)) + 1
        if 0 not in given.sizes and last < count:
            yield with_input(program, name, Input(given.storage[:last], given.sizes, given.strides, given.offset))
        whole = torch.arange(count).to(dtype)
        for storage in (torch.zeros(count, dtype=dtype), torch.ones(count, dtype=dtype), whole, given.storage.trunc() if dtype.is_floating_point else whole):
            if simpler(storage, given.storage):
                yield with_input(program, name, Input(storage, given.sizes, given.strides, given.offset))
        for k in range(min(count, 40)):
            for value in (0, 1):
                storage = given.storage.clone()
                storage[k] = value
                if simpler(storage, given.storage):
                    yield with_input(program, name, Input(storage, given.sizes, given.strides, given.offset))
        if dtype != torch.float32 and dtype.is_floating_point:
            yield with_input(program, name, Input(given.storage.float(), given.sizes, given.strides, given.offset))


def simpler(new: torch.Tensor, old: torch.Tensor) -> bool:
    return cost(new) < cost(old)


def cost(storage: torch.Tensor) -> float:
    """How much there is to read in the values."""
    if not storage.dtype.is_floating_point:
        return float(storage.double().abs().clamp(max=99).sum())
    whole = storage.double().nan_to_num(99.0, 99.0, -99.0)
    return float((whole.abs().clamp(max=99) + torch.where(whole == whole.round(), 0.0, 120.0)).sum())


MOVES = [fewer_outputs, fewer_statements, result_as_input, bypassed, smaller_inputs, plainer_inputs, plainer_text]


def size(program: Program) -> tuple[float, ...]:
    inputs = program.inputs.values()
    text = sum(len(s.text) for s in program.statements)
    return (len(program.statements), len(program.outputs), len(program.inputs), sum(torch.Size(i.sizes).numel() + len(i.sizes) for i in inputs),
            sum(plain_input(i.make()).strides != i.strides or i.offset > 0 for i in inputs), text, sum(len(i.storage) for i in inputs),
            sum(cost(i.storage) for i in inputs))  # fmt: skip


def shrink(program: Program, fails: Fails, seconds: float = 60, tests: int = 400) -> Program:
    """The smallest program found that `fails`; `program` itself does."""
    end, tried, seen = time.monotonic() + seconds, 0, set()
    best = tidy(program)
    if not (eager_accepts(best) and fails(best)):
        best = program
    while True:
        for move in MOVES:
            again = True
            while again:
                again = False
                for candidate in move(best):
                    if time.monotonic() > end or tried >= tests:
                        return best
                    candidate = tidy(candidate)
                    key = candidate.snippet()
                    if key in seen or size(candidate) >= size(best):
                        continue
                    seen.add(key)
                    if not eager_accepts(candidate):
                        continue
                    tried += 1
                    if fails(candidate):
                        best, again = candidate, True
                        break
        if not smaller_left(best, seen):
            return best


def smaller_left(best: Program, seen: set[str]) -> bool:
    """Whether some move has a candidate that was not tried."""
    for move in MOVES:
        for candidate in move(best):
            candidate = tidy(candidate)
            if size(candidate) < size(best) and candidate.snippet() not in seen and eager_accepts(candidate):
                return True
    return False
