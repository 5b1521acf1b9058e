"""Cases of writes, views and aliases, a file a topic, and how they are compared with eager; test_mutation.py runs them.

A case is a function and a maker of its arguments. Compared are results and arguments (values, dtype, sizes, strides), what
lies around the arguments in their storages, and who shares memory with whom.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from differential import compare, leaves, pallascope

Maker = Callable[[], tuple[Any, ...]]
CASES: dict[str, tuple[Callable[..., Any], Maker]] = {}


def case(name: str, make: Maker) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        assert name not in CASES, name
        CASES[name] = function, make
        return function

    return add


def ramp(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Data that encodes its own index."""
    count = int(torch.tensor(sizes).prod()) if sizes else 1
    made = (torch.arange(count, dtype=torch.float64) - count // 3).reshape(sizes)
    return (made / 4 if dtype.is_floating_point else made).to(dtype)


def around(args: tuple[Any, ...]) -> list[torch.Tensor]:
    """The whole storages: what lies between the elements of an argument must not change."""
    return [torch.empty(0, dtype=t.dtype).set_(t.untyped_storage()) for t in leaves(args) if isinstance(t, torch.Tensor)]


def sharing(args: Any, results: Any) -> list[Any]:
    """For each result: the first of arguments and results before it with the same storage, and the offset in it."""
    seen = [t for t in leaves(args) if isinstance(t, torch.Tensor)]
    known: list[Any] = []
    for r in leaves(results):
        if not isinstance(r, torch.Tensor) or r.numel() == 0:
            known.append(None)
            continue
        same = [k for k, t in enumerate(seen) if t.numel() and t.untyped_storage().data_ptr() == r.untyped_storage().data_ptr()]
        known.append((same[0], r.storage_offset()) if same else None)
        seen.append(r)
    return known


def differences(names: list[str], source: str, modes: tuple[str, ...]) -> list[str]:
    """What differs from eager, a line each. The cases go through one traced function; if it cannot be run, or something
    differs, halves of them do, down to single cases."""

    def together(groups: list[tuple[Any, ...]]) -> list[Any]:
        return [CASES[name][0](*args) for name, args in zip(names, groups)]

    def arguments() -> list[tuple[Any, ...]]:
        return [CASES[name][1]() for name in names]

    found = []
    for mode in modes:
        theirs, mine = arguments(), arguments()
        torch.manual_seed(0)
        want = together(theirs)
        torch.manual_seed(0)
        try:
            if source == "lower":
                got = pallascope.lower(together, arguments()).call(mine, mode=mode)
            else:
                torch._dynamo.reset()
                options = {"mode": mode}
                got = torch.compile(together, backend="pallascope", fullgraph=True, dynamic=False, options=options)(mine)
        except Exception as error:
            if len(names) == 1:
                found.append(f"{names[0]} ({mode}): {type(error).__name__}: {str(error)[:300]}")
                continue
            middle = len(names) // 2
            halves = differences(names[:middle], source, (mode,)) + differences(names[middle:], source, (mode,))
            found += halves or [f"only together ({mode}): {type(error).__name__}: {str(error)[:300]}"]
            continue
        for name, g, w, m, t in zip(names, got, want, mine, theirs):
            for what, line in (
                ("", compare(g, w)),
                ("argument: ", compare(m, t)),
                ("storage of an argument: ", compare(around(m), around(t))),
                ("", "" if sharing(m, g) == sharing(t, w) else f"memory is shared as {sharing(m, g)}, in eager as {sharing(t, w)}"),
            ):
                if line:
                    found.append(f"{name} ({mode}): {what}{line}")
                    break
    return found
