"""Checks every #include of the source tree against the layers that CMake declares.

Separate libraries alone do not keep layers apart: all of them share one include root, so an include
that goes the wrong way compiles happily. `pallascope_layer()` in CMakeLists.txt says what a layer may
include; configuring writes the same to build/layers.json; this module reads both sides.

    python3 tests/layers/layers.py [ROOT [LAYERS_JSON]]

prints one line per wrong include and exits 1 if there was any.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import posixpath
import re
import sys

ROOMS = ("core", "app", "python_bridge")
SUFFIXES = (".h", ".hpp", ".cpp", ".cc", ".inc")

# Headers of the C library and of Linux that any room may use. A header of neither C++, this list nor
# the third-party table is refused: an unknown library must be declared before it is used.
SYSTEM = frozenset(
    "assert.h complex.h ctype.h dirent.h dlfcn.h elf.h endian.h errno.h execinfo.h fcntl.h fenv.h float.h "
    "ftw.h getopt.h glob.h grp.h inttypes.h langinfo.h libgen.h limits.h link.h locale.h malloc.h math.h "
    "memory.h netdb.h poll.h pthread.h pty.h pwd.h sched.h semaphore.h setjmp.h signal.h spawn.h stdarg.h "
    "stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h strings.h syslog.h termios.h time.h ucontext.h "
    "unistd.h utime.h wchar.h wctype.h".split()
)
SYSTEM_FOLDERS = ("sys/", "netinet/", "arpa/", "linux/", "asm/")

_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.S)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*(?:include|include_next)[ \t]*(?:<([^>\n]+)>|"([^"\n]+)"|(\S.*))', re.M)


@dataclasses.dataclass(frozen=True)
class Layer:
    path: str
    uses: tuple[str, ...]
    third_party: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Declaration:
    layers: tuple[Layer, ...]
    third_party: dict[str, tuple[str, ...]]  # library -> beginnings of its headers

    @staticmethod
    def load(path: pathlib.Path) -> "Declaration":
        data = json.loads(path.read_text(encoding="utf-8"))
        return Declaration(
            tuple(Layer(x["path"], tuple(x["uses"]), tuple(x["third_party"])) for x in data["layers"]),
            {name: tuple(headers) for name, headers in data["third_party"].items()},
        )

    def layer_of(self, path: str) -> Layer | None:
        """The layer that a file (relative to the root) lies in; the innermost one if rooms nest."""
        found = [x for x in self.layers if path.startswith(x.path + "/")]
        return max(found, key=lambda x: len(x.path), default=None)

    def library_of(self, header: str) -> str | None:
        """The longest matching beginning wins: imgui_impl_glfw.h is not ImGui's own."""
        found = [
            (len(prefix), name)
            for name, prefixes in self.third_party.items()
            for prefix in prefixes
            if header.startswith(prefix)
        ]
        return max(found)[1] if found else None


def includes(text: str):
    """(line number, name, quoted) of each #include; comments do not count."""
    text = _BLOCK_COMMENT.sub(lambda m: "\n" * m.group().count("\n"), text)
    for match in _INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        angle, quoted, other = match.groups()
        yield line, angle or quoted or other, quoted is not None


def _judge(
    declaration: Declaration, root: pathlib.Path, file: str, layer: Layer, name: str, quoted: bool
) -> str | None:
    """Why `file` may not include `name`, or None."""
    target = name
    if quoted:  # the compiler looks next to the file first
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(file), name))
        if (root / beside).is_file():
            target = beside
    if target.split("/")[0] in ROOMS:
        used = declaration.layer_of(target)
        if used is None:
            return f"{target} lies in no declared layer"
        if used == layer or used.path in layer.uses:
            return None
        if layer.path in used.uses:
            return f"{layer.path} must not know {used.path}, which is built on it"
        return f"{layer.path} does not declare that it uses {used.path}"

    library = declaration.library_of(name)
    if name in SYSTEM or name.startswith(SYSTEM_FOLDERS):
        return None
    if library is not None:
        if library in layer.third_party:
            return None
        return f"{layer.path} does not declare the third-party library {library}"
    if not quoted and re.fullmatch(r"[a-z_0-9]+", name):
        return None  # the C++ library: <vector>
    return f"{name} is neither ours, nor standard, nor of a library in cmake/deps.cmake"


def violations(root: pathlib.Path, declaration: Declaration) -> list[str]:
    out = []
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            file = path.relative_to(root).as_posix()
            layer = declaration.layer_of(file)
            if layer is None:
                out.append(f"{file}: lies in no declared layer (pallascope_layer in CMakeLists.txt)")
                continue
            for line, name, quoted in includes(path.read_text(encoding="utf-8")):
                reason = _judge(declaration, root, file, layer, name, quoted)
                if reason:
                    out.append(f"{file}:{line}: {reason}")
    return out


def main(arguments: list[str]) -> int:
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[2]
    declared = pathlib.Path(arguments[1]) if len(arguments) > 1 else root / "build" / "layers.json"
    found = violations(root, Declaration.load(declared))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
