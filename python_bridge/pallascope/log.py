"""What each compile did: `pallascope.compile_log()`. Standard library only."""

from __future__ import annotations

import threading
from typing import Any

_lock = threading.Lock()
_entries: list[dict[str, Any]] = []


def record(entry: dict[str, Any]) -> None:
    """Adds one compile."""
    with _lock:
        _entries.append(entry)


def compile_log() -> list[dict[str, Any]]:
    """One dict for each graph that was compiled since the start or `reset_log()`, oldest first.

    graph, kind      name of the graph; "inference", "forward", "backward" or "export"
    nodes, kernels   counts: ATen nodes, Pallas kernels
    library, torch   the operators (`aten.mm.default`) that became jax.lax calls, and those left to PyTorch
    decisions        length of the decision log
    read_ms, lower_ms, schedule_ms, codegen_ms   milliseconds of the C++ stages
    bytes_moved      bytes that the kernels read and write in main memory
    source           the generated module
    """
    with _lock:
        return [dict(e) for e in _entries]


def reset_log() -> None:
    """Empties the log."""
    with _lock:
        _entries.clear()
