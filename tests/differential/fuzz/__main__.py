"""python -m fuzz --seed S --count N: runs programs S to S+N-1 and prints those that do not agree with eager."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from .runner import Way
from .work import Answer, answers


WAYS = {
    "mixed": None, "steady": Way(), "debug": Way(mode="debug"), "nofusion": Way(fusion=False), "prefix": Way(upto=0.5), "compile": Way(compiled=True), "numpy": Way(numpy=True),
    "numpy-nofusion": Way(numpy=True, fusion=False), "numpy-prefix": Way(numpy=True, upto=0.5),
}  # fmt: skip


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Random programs against eager PyTorch.")
    parser.add_argument("--seed", type=int, default=0, help="the first program")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--batch", type=int, default=40, help="programs in one traced function")
    parser.add_argument("--workers", type=int, default=1, choices=(1, 2))
    parser.add_argument("--way", choices=tuple(WAYS), default="mixed")
    parser.add_argument("--shrink", type=float, default=45, metavar="SECONDS", help="for each failure; 0 prints it as it is")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    way = WAYS[given.way]
    start, total = time.monotonic(), Answer()
    kinds: Counter[str] = Counter()
    for answer in answers(given.seed, given.count, given.batch, given.workers, way, given.shrink):
        total.programs += answer.programs
        total.torch_calls += answer.torch_calls
        total.tally += answer.tally
        total.names += answer.names
        for found in answer.found:
            kinds[found.kind] += 1
            print(f"\n# {'-' * 100}\n# seed {found.seed}, {found.way}: {found.text}\n{found.snippet}", flush=True)
        if not given.quiet:
            seconds = time.monotonic() - start
            print(f"\r{total.programs}/{given.count} programs, {sum(kinds.values())} differ, {total.programs / seconds:.1f} a second", end="", file=sys.stderr, flush=True)
    seconds = time.monotonic() - start
    print(f"\n{total.programs} programs in {seconds:.0f} s ({total.programs / seconds:.1f} a second), {len(total.names)} torch functions called")
    print("differences:", dict(kinds) or "none")
    print("accepted:", dict(total.tally) or "nothing special")
    print("left to PyTorch:", dict(total.torch_calls.most_common(60)))
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
