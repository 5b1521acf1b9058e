"""The one door to the C++ lowering, the extension module `_pallascope_core`."""

from __future__ import annotations

import importlib
import json
from typing import Any

from .errors import PallascopeError

OPTIONS = {"target": "interpret", "fusion": True, "upto": None}


def lower_json(program: str, graph_index: int, options: dict[str, Any]) -> dict[str, Any]:
    """Lowers graph `graph_index` of a trace (JSON text) in C++.

    options: "target" (str), "fusion" (bool), "upto" (decision number or None); missing ones take OPTIONS'
    value. Gives {"source", "nodes", "kernels", "library", "torch", "mutated", "decisions", "lower_ms", "schedule_ms",
    "codegen_ms", "read_ms", "bytes_moved"}. Raises PallascopeError with the C++ diagnostic, or
    host_unavailable when the extension cannot be imported.
    """
    try:
        core = importlib.import_module("_pallascope_core")
    except ImportError as error:
        raise PallascopeError(
            "host_unavailable",
            f"the lowering cannot be imported ({error})",
            "_pallascope_core",
            "build Pallascope, and have its build/python folder on PYTHONPATH",
        ) from error
    answer = json.loads(core.lower(program, graph_index, json.dumps({**OPTIONS, **options})))
    if not answer.get("ok"):
        problem = answer["error"]
        raise PallascopeError(
            problem["kind"], problem["message"], problem.get("where", ""), problem.get("remedy", "")
        )
    del answer["ok"]
    return answer
