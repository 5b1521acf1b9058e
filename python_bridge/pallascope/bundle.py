"""A bundle: a folder (or a zip of it) with a program and the inputs of its graphs, as a bug report needs
them.

    program.json           the trace (core/trace/FORMAT.md), all graphs: forward, backward, graph breaks
    bundle.json            {"format": "pallascope.bundle", "version": 1, "torch": "2.13.0+cpu",
                            "graphs": [{"inputs": "inputs/graph_0.pt"}, {"inputs": null}, ...],
                            "tolerance": {} or {"atol": .., "rtol": ..}}
    inputs/graph_0.pt      torch.save of the list of input tensors at the graph's first call, in the order of
                           the graph's inputs; strides, offsets and shared storage are kept

A graph that was compiled and never called has null inputs. The folder is valid after every step of the user's
script, so a script that crashes leaves what it came to.
"""

from __future__ import annotations

import io
import json
import os
import threading
import zipfile
from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from . import fx
from .errors import PallascopeError

FORMAT, VERSION = "pallascope.bundle", 1


def _write(path: str, text: str) -> None:
    """Replaces a file in one step, so that a reader never sees half of it."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(temporary, path)


class BundleWriter:
    """Writes one bundle while the user's script runs. Use `BundleWriter.at(folder)`: one writer a folder."""

    _writers: ClassVar[dict[str, BundleWriter]] = {}
    _lock = threading.RLock()

    def __init__(self, folder: str, tolerance: dict[str, float] | None = None, name: str = "program"):
        """Starts a bundle. One that an earlier run left in `folder` is replaced; any other content is refused
        (PallascopeError invalid_argument), so that a mistyped folder loses nothing."""
        self.folder = os.path.abspath(os.path.expanduser(folder))
        self.name = name
        self.tolerance = dict(tolerance or {})
        self.graphs: list[dict[str, Any]] = []
        self.inputs: list[str | None] = []
        if os.path.exists(self.folder):
            if not os.path.isdir(self.folder):
                raise PallascopeError(
                    "invalid_argument", f"'{folder}' is a file", self.folder, "name a folder to write"
                )
            if os.listdir(self.folder) and not os.path.exists(os.path.join(self.folder, "bundle.json")):
                raise PallascopeError(
                    "invalid_argument",
                    f"the folder '{folder}' has other content",
                    self.folder,
                    "name a new folder, or one that holds a bundle to replace",
                )
        os.makedirs(os.path.join(self.folder, "inputs"), exist_ok=True)
        for file in os.listdir(os.path.join(self.folder, "inputs")):
            if file.startswith("graph_") and file.endswith(".pt"):
                os.remove(os.path.join(self.folder, "inputs", file))
        self._flush()

    @classmethod
    def at(cls, folder: str, tolerance: dict[str, float] | None = None) -> BundleWriter:
        """The writer of this process for a folder: a second compile into the same folder adds its graphs."""
        key = os.path.realpath(os.path.expanduser(folder))
        with cls._lock:
            if key not in cls._writers or not os.path.isdir(cls._writers[key].folder):
                cls._writers[key] = cls(folder, tolerance, os.path.basename(key) or "program")
            return cls._writers[key]

    def add_graph(self, graph: dict[str, Any]) -> int:
        """Adds a GRAPH object; gives its number."""
        with self._lock:
            self.graphs.append(graph)
            self.inputs.append(None)
            self._flush()
            return len(self.graphs) - 1

    def save_inputs(self, index: int, tensors: Sequence[torch.Tensor]) -> None:
        """Keeps a graph's inputs as they are now (call this before the graph changes them)."""
        name = f"inputs/graph_{index}.pt"
        with self._lock:
            torch.save([t.detach() for t in tensors], os.path.join(self.folder, name))
            self.inputs[index] = name
            self._flush()

    def _flush(self) -> None:
        program = fx.program_json(self.name, self.graphs)
        _write(os.path.join(self.folder, "program.json"), fx.dumps(program))
        about = {
            "format": FORMAT,
            "version": VERSION,
            "torch": torch.__version__,
            "graphs": [{"inputs": i} for i in self.inputs],
            "tolerance": self.tolerance,
        }
        _write(os.path.join(self.folder, "bundle.json"), json.dumps(about, indent=1))


def write_bundle(folder: str, program: Any, inputs: Sequence[Sequence[torch.Tensor] | None] = ()) -> None:
    """Writes a traced Program as a bundle. `inputs`: for each graph its tensors in the graph's order, or
    None."""
    writer = BundleWriter(folder, name=program.name)
    for index, graph in enumerate(program.data["graphs"]):
        writer.add_graph(graph)
        if index < len(inputs) and inputs[index] is not None:
            writer.save_inputs(index, inputs[index])


class Bundle:
    """A bundle that was written, from a folder or a zip. Nothing of it is executed: tensors load
    weights-only."""

    def __init__(self, path: str | os.PathLike[str]):
        """Raises PallascopeError: not_found, not_a_zip, missing_member, malformed_json, wrong_package,
        schema_version."""
        self.path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        if not os.path.exists(self.path):
            raise PallascopeError("not_found", f"there is no bundle '{path}'", self.path)
        if not os.path.isdir(self.path) and not zipfile.is_zipfile(self.path):
            raise PallascopeError(
                "not_a_zip",
                f"'{path}' is neither a folder nor a zip",
                self.path,
                "give the folder that torch.compile's dump option wrote, or a zip of it",
            )
        about = self._json("bundle.json")
        if about.get("format") != FORMAT:
            raise PallascopeError("wrong_package", f"'{path}' is no Pallascope bundle", self.path)
        if about.get("version") != VERSION:
            raise PallascopeError(
                "schema_version",
                f"the bundle has version {about.get('version')}",
                self.path,
                f"this Pallascope reads version {VERSION}",
            )
        self.torch_version: str = about.get("torch", "")
        self.tolerance: dict[str, float] = about.get("tolerance") or {}
        self.graphs: list[dict[str, Any]] = about.get("graphs", [])

    def _bytes(self, member: str) -> bytes:
        try:
            if os.path.isdir(self.path):
                with open(os.path.join(self.path, *member.split("/")), "rb") as f:
                    return f.read()
            with zipfile.ZipFile(self.path) as archive:
                # A zip of the folder itself has the folder's name before each member.
                names = [n for n in archive.namelist() if n == member or n.endswith("/" + member)]
                if not names:
                    raise KeyError(member)
                return archive.read(min(names, key=len))
        except (OSError, KeyError) as error:
            raise PallascopeError("missing_member", f"the bundle lacks '{member}'", self.path) from error

    def _json(self, member: str) -> dict[str, Any]:
        try:
            return json.loads(self._bytes(member))
        except ValueError as error:
            raise PallascopeError("malformed_json", f"'{member}' is no JSON: {error}", self.path) from error

    def program_text(self) -> str:
        """The trace as JSON text."""
        return self._bytes("program.json").decode("utf-8")

    def inputs(self, graph_index: int) -> list[torch.Tensor]:
        """The input tensors of a graph at its first call. Raises PallascopeError (not_found) when there are
        none."""
        entry = self.graphs[graph_index] if 0 <= graph_index < len(self.graphs) else {}
        if not entry.get("inputs"):
            raise PallascopeError(
                "not_found",
                f"the bundle has no inputs for graph {graph_index}",
                self.path,
                "the graph was compiled and never called; use random inputs",
            )
        return torch.load(io.BytesIO(self._bytes(entry["inputs"])), weights_only=True)
