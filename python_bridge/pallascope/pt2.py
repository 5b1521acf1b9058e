"""The tensors of a .pt2 archive."""

from __future__ import annotations

import io
import mmap
import os
import struct
import zipfile
from typing import Any

import torch

from .dtypes import torch_dtype
from .errors import PallascopeError
from .layout import shape_as, storage_elements


class Pt2:
    """The tensors of a .pt2: weights mapped from the file (copy on write), samples loaded weights-only."""

    def __init__(self, path: str | os.PathLike[str]):
        """Raises PallascopeError: not_found, not_a_zip."""
        self.path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        if not os.path.exists(self.path):
            raise PallascopeError("not_found", f"there is no file '{path}'", self.path)
        if not zipfile.is_zipfile(self.path):
            raise PallascopeError(
                "not_a_zip",
                f"'{path}' is no zip archive",
                self.path,
                "give a file that torch.export.save wrote",
            )
        with zipfile.ZipFile(self.path) as archive:
            self.members = {i.filename: i for i in archive.infolist()}
        self._map: mmap.mmap | None = None

    def member(self, name: str) -> zipfile.ZipInfo:
        """The archive member of a name that may lack the archive's root folder. Raises missing_member."""
        found = self.members.get(name)
        if found is None:
            found = next((i for n, i in self.members.items() if n.endswith("/" + name)), None)
        if found is None:
            raise PallascopeError("missing_member", f"the archive lacks '{name}'", self.path)
        return found

    def storage(self, member: str, dtype: torch.dtype) -> torch.Tensor:
        """All elements of a stored member as a flat tensor. Mapped, not read: pages load when they are
        touched."""
        info = self.member(member)
        size = torch.empty((), dtype=dtype).element_size()
        count = info.file_size // size
        if count == 0:
            return torch.empty(0, dtype=dtype)
        if info.compress_type != zipfile.ZIP_STORED:
            with zipfile.ZipFile(self.path) as archive:  # someone repacked it: then it has to be unpacked
                return torch.frombuffer(bytearray(archive.read(info)), dtype=dtype, count=count)
        if self._map is None:
            with open(self.path, "rb") as f:
                self._map = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY)
        # The local header has name and extra fields of its own lengths (the extra field pads to 64 bytes).
        header = self._map[info.header_offset : info.header_offset + 30]
        if header[:4] != b"PK\x03\x04":
            raise PallascopeError("not_readable", f"the archive is damaged at '{info.filename}'", self.path)
        name_length, extra_length = struct.unpack("<HH", header[26:30])
        start = info.header_offset + 30 + name_length + extra_length
        if start % size:
            return torch.frombuffer(
                bytearray(self._map[start : start + info.file_size]), dtype=dtype, count=count
            )
        return torch.frombuffer(self._map, dtype=dtype, count=count, offset=start)

    def weights(self, program: dict[str, Any], graph: dict[str, Any]) -> dict[str, torch.Tensor]:
        """target -> tensor for the inputs of a graph whose bytes the program's "weights" place in this
        archive."""
        placed = program.get("weights") or {}
        result = {}
        for i in graph["inputs"]:
            weight = placed.get(i["target"])
            if weight is None or i["kind"] == "user_input":
                continue
            flat = self.storage(weight["member"], torch_dtype(i["tensor"]["dtype"]))
            if flat.numel() < storage_elements(i["tensor"]):
                raise PallascopeError(
                    "storage_bounds",
                    f"'{weight['member']}' has {flat.numel()} elements, "
                    f"'{i['target']}' reaches to {storage_elements(i['tensor'])}",
                    self.path,
                )
            result[i["target"]] = shape_as(flat, i["tensor"])
        return result

    def samples(self) -> list[torch.Tensor] | None:
        """The tensors among the sample inputs, flattened in order; None when the archive has none.

        The pickle is loaded with weights_only=True: one that asks for more is refused (not_readable).
        """
        name = next((n for n in self.members if "/data/sample_inputs/" in f"/{n}"), None)
        if name is None:
            return None
        with zipfile.ZipFile(self.path) as archive:
            data = archive.read(name)
        if not data:
            return None
        try:
            loaded = torch.load(io.BytesIO(data), weights_only=True)
        except Exception as error:
            raise PallascopeError(
                "not_readable",
                "the sample inputs hold more than tensors, and code in a file is not "
                f"run ({str(error).splitlines()[0]})",
                f"{self.path}: {name}",
                "use random inputs",
            ) from error
        return [v for v in torch.utils._pytree.tree_leaves(loaded) if isinstance(v, torch.Tensor)]
