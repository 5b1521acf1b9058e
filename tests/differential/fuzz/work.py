"""Batches of programs in worker processes: a crash costs one batch, which is then run program by program."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from typing import Any

from .program import Program
from .runner import Way

# Tried in turn over the batches; most of the weight is on what users run.
WAYS = [
    Way(numpy=True), Way(), Way(numpy=True), Way(numpy=True, fusion=False), Way(mode="debug"), Way(numpy=True, upto=0.3), Way(numpy=True), Way(fusion=False),
    Way(numpy=True, mode="debug"), Way(), Way(numpy=True), Way(numpy=True, mode="debug", upto=0.7), Way(mode="debug", upto=0.5), Way(numpy=True), Way(compiled=True), Way(numpy=True),
]  # fmt: skip


@dataclass
class Found:
    seed: int
    way: Way
    text: str
    kind: str
    snippet: str = ""
    statements: int = 0


@dataclass
class Answer:
    """What a batch gives."""

    programs: int = 0
    found: list[Found] = field(default_factory=list)
    torch_calls: Counter[str] = field(default_factory=Counter)
    tally: Counter[str] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    outputs: int = 0
    finite: int = 0


def run_batch(seeds: list[int], way: Way, shrink_seconds: float) -> Answer:
    """Runs in a worker."""
    import logging

    import torch

    torch.set_num_threads(1)
    logging.disable(logging.ERROR)  # fake tensors log what they refuse
    from . import judge, runner, shrink
    from .generate import generate
    from .program import torch_names

    judge.tally.clear()
    runner.calls.clear()
    if os.environ.get("PALLASCOPE_FUZZ_DIES", "") in map(str, seeds):  # for testing that a crash is survived
        os._exit(1)
    programs = [generate(seed) for seed in seeds]
    answer = Answer(programs=len(programs))
    for program in programs:
        answer.names.update(torch_names(program.statements))
    for k, difference in runner.failures(programs, way).items():
        alone = runner.failures([programs[k]], way)
        program = programs[k]
        kind = difference.kind
        if alone and shrink_seconds > 0:
            # On NumPy as far as it shows there; what JAX then agrees with is shrunk again on JAX.
            small = shrink.shrink(program, lambda p: same_kind(runner, p, way, kind), shrink_seconds)
            if way.numpy and not runner.failures([small], way):
                small = shrink.shrink(program, lambda p: same_kind(runner, p, replace(way, numpy=False), kind), shrink_seconds)
            program = small
            difference = runner.failures([program], way).get(0, difference)
        text = str(difference) if alone else f"only in its batch of {len(seeds)}: {difference}"
        answer.found.append(Found(seeds[k], way, text, kind, program.snippet(), len(program.statements)))
    answer.torch_calls, answer.tally = Counter(runner.calls), Counter(judge.tally)
    return answer


def same_kind(runner: Any, program: Program, way: Way, kind: str) -> bool:
    found = runner.failed([program], way).get(0)
    return found is not None and found.kind == kind


def crashed(seeds: list[int], way: Way) -> Answer:
    from .generate import generate

    answer = Answer(programs=len(seeds))
    if len(seeds) == 1:
        answer.found.append(Found(seeds[0], way, "the process died", "crash", generate(seeds[0]).snippet()))
    return answer


def batches(seed: int, count: int, size: int, way: Way | None) -> list[tuple[list[int], Way]]:
    made = []
    for k, first in enumerate(range(seed, seed + count, size)):
        chosen = way or WAYS[(first // size) % len(WAYS)]
        if chosen.upto is not None:
            chosen = replace(chosen, upto=round(random.Random(first).random(), 2))
        made.append((list(range(first, min(first + size, seed + count))), chosen))
    return made


def answers(seed: int, count: int, size: int, workers: int, way: Way | None, shrink_seconds: float) -> Iterator[Answer]:
    """The answers of all batches, as they come."""
    waiting = batches(seed, count, size, way)
    waiting.reverse()
    context = multiprocessing.get_context("spawn")
    while waiting:
        # Few batches a process: compiled programs are never freed.
        with ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=8) as pool:
            running: dict[Any, tuple[list[int], Way]] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < workers:
                        seeds, chosen = waiting.pop()
                        running[pool.submit(run_batch, seeds, chosen, shrink_seconds)] = (seeds, chosen)
                    done = [f for f in running if f.done()]
                    for future in done:
                        answer = future.result()  # raises if the process died
                        del running[future]
                        yield answer
                    if not done:
                        time.sleep(0.02)
            except BrokenProcessPool:
                for seeds, chosen in running.values():
                    if len(seeds) == 1:
                        yield crashed(seeds, chosen)
                    else:
                        waiting += [([s], chosen) for s in seeds]
