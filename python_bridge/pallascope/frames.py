"""Where a node of an FX graph comes from: the frames of its stack, its model line, its module."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterable
from typing import Any

import torch

SOURCE_LIMIT = 1 << 20  # bytes of one source file; a larger one is generated, and nobody reads it

_TORCH_DIR = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
OWN_DIR = os.path.dirname(os.path.abspath(__file__)) + os.sep
_FRAME = re.compile(r'\s*File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<function>.*)$')


def target_name(target: Any) -> str:
    if isinstance(target, (torch._ops.OpOverload, str)):
        return str(target)
    return getattr(target, "__name__", None) or str(target)


def parse_stack(text: str | None) -> list[dict[str, Any]]:
    """The frames of a traceback text, outermost first, without those of this package and of code that torch
    made.

    Each is {"file", "line", "function", "code"}; code is "" where the text has none. Lines of ^ marks are
    left out.
    """
    frames: list[dict[str, Any]] = []
    for line in (text or "").splitlines():
        match = _FRAME.match(line)
        if match:
            frames.append(
                {
                    "file": match["file"],
                    "line": int(match["line"]),
                    "function": match["function"].strip(),
                    "code": "",
                }
            )
        elif frames and line.strip() and not frames[-1]["code"] and set(line.strip()) - set("^~"):
            frames[-1]["code"] = line.strip()
    return [f for f in frames if not f["file"].startswith((OWN_DIR, "<eval_with_key>"))]


def user_frame(frames: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The innermost frame outside torch, or None."""
    return next((f for f in reversed(frames) if not is_torch_file(f["file"])), None)


def is_torch_file(path: str) -> bool:
    """Whether a file belongs to torch itself, here or in the place where a trace was made."""
    return path.startswith(_TORCH_DIR) or "/site-packages/torch/" in path.replace(os.sep, "/")


def where_of(node: torch.fx.Node) -> str:
    """`node 'add' (aten.add.Tensor), model.py:26: y = x + 1`, for diagnostics."""
    text = f"node '{node.name}'"
    if node.op == "call_function":
        text += f" ({target_name(node.target)})"
    frame = user_frame(parse_stack(node.meta.get("stack_trace")))
    if frame:
        text += f", {frame['file']}:{frame['line']}"
        if frame["code"]:
            text += f": {frame['code']}"
    return text


def module_path(text: str) -> str:
    """`h.0.c1` for the spellings of dynamo (`L['self'].h.0.c1`, `L['self']._modules['h']...`) and export
    (`h.0.c1@1`)."""
    text = re.sub(r"^[LG]\['[^']*'\]", "", text)
    text = re.sub(r"\.__closure__\[\d+\]\.cell_contents", "", text)
    text = re.sub(r"\._(?:modules|parameters|buffers)\['([^']*)'\]", r".\1", text)
    text = re.sub(r"\[(\d+)\]", r".\1", text)
    text = re.sub(r"@\d+", "", text)
    return "" if text.startswith("L__self__") else text.strip(".")


def module_of(node: torch.fx.Node) -> tuple[str, str]:
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return "", ""
    path, kind = list(stack.values())[-1]
    name = kind.__qualname__ if isinstance(kind, type) else str(kind).rsplit(".", 1)[-1]
    return module_path(str(path)), "" if name == "FunctionModule" else name


def collect_sources(graphs: Iterable[dict[str, Any]]) -> dict[str, str]:
    """file -> text of every source file outside torch that a graph's frames name and that can be read
    here."""
    files = {
        f["file"]
        for g in graphs
        for n in g["nodes"]
        for f in n.get("stack", [])
        if not is_torch_file(f["file"])
    }
    sources = {}
    for file in sorted(files):
        try:
            if os.path.getsize(file) > SOURCE_LIMIT:
                continue
            with open(file, encoding="utf-8", errors="replace") as f:
                sources[file] = f.read()
        except (OSError, ValueError):
            # A notebook cell or an exec'd text has no file, but linecache may know its lines.
            text = "".join(linecache.getlines(file))
            if text and len(text) <= SOURCE_LIMIT:
                sources[file] = text
    return sources
