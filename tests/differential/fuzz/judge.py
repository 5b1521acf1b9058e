"""Whether results agree with eager's.

What torch.testing accepts agrees. Where it does not, the program runs again in eager with each rounded number moved by
an ulp or so (`shaken`), several times: an element must lie in the range of these runs, widened by its width, and an
element that falls on both sides of a step in them (NaN or not, another integer, another truth) is not judged. Numbers
that are exact, which is where layout, order and aliasing show, are never moved. A result that agrees with eager under
flushed subnormals is accepted, and counted.
"""

from __future__ import annotations

import random
import re
import warnings
from collections import Counter
from dataclasses import dataclass

import torch

from .program import SPACE, Program

RUNS = 12
tally: Counter[str] = Counter()


@dataclass(frozen=True)
class Difference:
    kind: str  # dtype, sizes, strides, values, count, alias, raises, refused
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def dense(tensor: torch.Tensor) -> bool:
    """Whether the elements lie without gaps and without overlap."""
    step = 1
    for stride, size in sorted((s, n) for s, n in zip(tensor.stride(), tensor.shape) if n > 1):
        if stride != step:
            return False
        step *= size
    return True


def close(got: torch.Tensor, want: torch.Tensor) -> str:
    try:
        torch.testing.assert_close(got, want, equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""


def storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.numel() else 0


def traced_strides(program: Program) -> list[tuple[int, ...]]:
    """What PyTorch's own trace says: for a few operators it differs from what the kernels do."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        arguments = [mode.from_tensor(a, static_shapes=True) for a in program.arguments()]
        results = program.function()(*arguments)
    return [tuple(t.stride()) for t in (*results, *arguments)]


def form(got: torch.Tensor, want: torch.Tensor, who: str) -> Difference | None:
    """Differences that are no matter of rounding."""
    if got.dtype != want.dtype:
        return Difference("dtype", f"{who} is {got.dtype}, eager's {want.dtype}")
    if got.shape != want.shape:
        return Difference("sizes", f"{who} is {tuple(got.shape)}, eager's {tuple(want.shape)}")
    if want.numel() and dense(want):
        if any(n > 1 and a != b for n, a, b in zip(want.shape, got.stride(), want.stride())):
            return Difference("strides", f"{who} has {got.stride()}, eager's {want.stride()} for {tuple(want.shape)}")
    return None


def compare(program: Program, outputs: tuple[torch.Tensor, ...], arguments: tuple[torch.Tensor, ...]) -> Difference | None:
    """`outputs` and the `arguments` afterwards against eager's."""
    want, want_arguments = program.run()
    if len(outputs) != len(want):
        return Difference("count", f"{len(outputs)} results for eager's {len(want)}")
    wrong: list[tuple[int, str]] = []
    everything = list(zip((*outputs, *arguments), (*want, *want_arguments)))
    for k, (g, w) in enumerate(everything):
        who = f"result {k}" if k < len(want) else f"argument {k - len(want)}"
        if difference := form(g, w, who):
            if difference.kind != "strides" or traced_strides(program)[k] != g.stride():
                return difference
            tally["strides as PyTorch's trace has them"] += 1
        if text := close(g, w):
            wrong.append((k, f"{who}: {text}"))
    if wrong:
        remaining = unjudged(program, [k for k, _ in wrong], [everything[k][0] for k, _ in wrong])
        if remaining is not None:
            return Difference("values", wrong[remaining][1])
    for k, (g, w) in enumerate(zip(outputs, want)):
        for j, (mine, theirs) in enumerate(zip(arguments, want_arguments)):
            if storage(w) and (storage(w) == storage(theirs)) != (storage(g) == storage(mine)):
                says = "shares" if storage(w) == storage(theirs) else "does not share"
                return Difference("alias", f"eager's result {k} {says} memory with argument {j}")
    return None


def unjudged(program: Program, which: list[int], got: list[torch.Tensor]) -> int | None:
    """The position in `which` of the first result that rounding does not explain."""
    torch.set_flush_denormal(True)
    try:
        results, arguments = program.run()
        flushed = [(*results, *arguments)[k] for k in which]
    finally:
        torch.set_flush_denormal(False)
    open_ = [k for k, (g, w) in enumerate(zip(got, flushed)) if close(g, w)]
    if not open_:
        tally["flushed subnormals"] += 1
        return None
    runs = [shaken(program, run) for run in range(RUNS)]
    runs = [[run[which[k]] for k in open_] for run in runs if run is not None]
    for at, k in enumerate(open_):
        if not runs or not within(got[k], [program_result(program, which[k]), *(run[at] for run in runs)]):
            return k
    tally["explained by rounding"] += 1
    return None


def program_result(program: Program, k: int) -> torch.Tensor:
    results, arguments = program.run()
    return (*results, *arguments)[k]


def within(got: torch.Tensor, runs: list[torch.Tensor]) -> bool:
    """Whether each element is in the widened range of the runs, or not one that they agree on."""
    if not got.dtype.is_floating_point:
        same = torch.stack([r == runs[0] for r in runs]).all(0)
        return bool(((got == runs[0]) | ~same).all())
    stacked = torch.stack([r.double() for r in runs])
    mine = got.double()
    # A step: in some runs NaN or infinite, in others not.
    state = torch.stack([r.isnan().int() + 2 * r.isposinf().int() + 4 * r.isneginf().int() for r in stacked])
    stepped = (state != state[0]).any(0)
    mine_state = mine.isnan().int() + 2 * mine.isposinf().int() + 4 * mine.isneginf().int()
    low, high = stacked.amin(0), stacked.amax(0)
    info = torch.finfo(got.dtype)
    width = 2 * (high - low) + 2 * info.eps * stacked.abs().amax(0) + info.tiny
    inside = (mine >= low - width) & (mine <= high + width)
    good = torch.where(state[0] == 0, inside & (mine_state == 0), mine_state == state[0])
    return bool((good | stepped).all())


def shake(tensor: torch.Tensor, where: torch.Tensor, generator: torch.Generator) -> None:
    """Moves the chosen elements by up to two units in the last place, in place."""
    if not tensor.numel() or not bool(where.any()) or any(s == 0 and n > 1 for s, n in zip(tensor.stride(), tensor.shape)):
        return
    eps = torch.finfo(tensor.dtype).eps
    noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 4 - 2
    moved = (tensor.double() * (1 + noise * eps)).to(tensor.dtype)
    tensor.copy_(torch.where(where & tensor.isfinite(), moved, tensor))


def shaken(program: Program, run: int) -> list[torch.Tensor] | None:
    """Results and arguments of a run in which inexact results, and the operands of such, are moved a little."""
    generator = torch.Generator().manual_seed(random.Random(f"{program.seed} {run}").getrandbits(31))
    wide = {**SPACE, "f32": torch.float64, "f16": torch.float64, "bf16": torch.float64}
    space = dict(SPACE)
    space.update(zip(program.inputs, program.arguments()))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for statement in program.statements:
                line = statement.line()
                names = set(statement.reads)
                before = {n: space[n].double() if space[n].is_floating_point() else space[n].clone() for n in names}
                exact = dict(wide, **before)
                try:
                    exec(line, exact)
                except Exception:  # an operator that takes no f64 in one of its places: taken as inexact
                    exact = {}
                targets = statement.targets or statement.reads[:1]
                exec(line, space)
                inexact = [n for n in targets if isinstance(space[n], torch.Tensor) and space[n].is_floating_point() and not equal(space[n], exact.get(n))]
                if statement.targets and inexact and not any(storage(space[t]) == storage(space[n]) for t in targets for n in names):
                    for n in names:
                        if space[n].is_floating_point():
                            exact[n] = space[n].clone()
                            shake(exact[n], torch.ones_like(exact[n], dtype=torch.bool), generator)
                        else:
                            exact[n] = space[n]
                    again = {**SPACE, **{n: exact[n] for n in names}}
                    exec(line, again)
                    for n in targets:
                        space[n] = again[n]
                if ZERO_SIGN.search(statement.text) and not any(storage(space[t]) == storage(space[n]) for t in statement.targets for n in names):
                    for n in statement.targets:
                        if space[n].is_floating_point():
                            flip(space[n], space[n] == 0, generator)
                if not any(storage(space[t]) == storage(space[n]) for t in statement.targets for n in names):
                    for n in statement.targets:
                        if space[n].is_floating_point():
                            flip(space[n], space[n].isnan(), generator)
                for n in inexact:
                    shake(space[n], torch.ones_like(space[n], dtype=torch.bool), generator)
        except Exception:
            return None
    return [space[n] for n in (*program.outputs, *program.inputs)]


# Which of two zeros these give is not defined (and XLA, NumPy and eager choose differently).
ZERO_SIGN = re.compile(r"max|min|clamp|relu|hardtanh|floor|remainder|%|//|sum|cum|sort")


def flip(tensor: torch.Tensor, where: torch.Tensor, generator: torch.Generator) -> None:
    """Gives the chosen elements a random sign, in place. The sign of a NaN that an operator makes is left open by IEEE
    754, and libraries differ in it; copysign and atan2 show it."""
    if tensor.numel() and bool(where.any()) and not any(s == 0 and n > 1 for s, n in zip(tensor.stride(), tensor.shape)):
        flipped = where & (torch.rand(tensor.shape, generator=generator) < 0.5)
        tensor.copy_(torch.where(flipped, -tensor, tensor))


def equal(native: torch.Tensor, exact: torch.Tensor | None) -> bool:
    if exact is None or exact.shape != native.shape:
        return False
    return bool(((native.double() == exact.double()) | (native.isnan() & exact.isnan())).all())
