"""CMake and the Python package name the same version."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_versions_agree():
    cmake = re.search(r"^project\(pallascope VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)
    package = ROOT / "python_bridge" / "pallascope" / "__init__.py"
    python = re.search(r'^__version__ = "([\d.]+)"', package.read_text(), re.M)
    assert cmake and python and cmake.group(1) == python.group(1)
