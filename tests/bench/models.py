"""The compile time of whole models: traces them through torch.compile and runs bench_models on the traces.

    models.py CASES.py [CASES.py ...] [--keep FOLDER] [-- ARGUMENTS OF bench_models]

A cases file defines MODELS: name -> function that gives (module, inputs), or name -> (module class, function that
gives inputs). Modules of the second kind are traced for training too. Exits with 1 when lowering, scheduling and code
generation of a graph of 20 nodes or more take over 1 ms per 100 nodes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "build" / "python"), str(ROOT / "python_bridge")]

BOUND_MS = 1.0  # per 100 nodes
SMALL = 20  # below so many nodes the fixed cost of a module is what is measured


def models(file: str) -> Iterator[tuple[str, Any, tuple[Any, ...], bool]]:
    """(name, module, inputs, training) of each model of a cases file."""
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None and spec.loader is not None, f"{file} is no Python file"
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    for name, made in cases.MODELS.items():
        if isinstance(made, tuple):
            for training in (False, True):
                yield f"{name}_train" if training else name, made[0]().eval(), made[1](), training
        else:
            module, inputs = made()
            yield name, module.eval(), tuple(inputs), False


def tensors(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if hasattr(value, "values") and not isinstance(value, type):
        value = list(value.values())
    return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []


def dump(file: str, folder: str) -> None:
    """A bundle of each model in `folder`."""
    import torch

    import pallascope  # noqa: F401  (registers the backend)

    for name, module, inputs, training in models(file):
        torch._dynamo.reset()
        options = {"dump": os.path.join(folder, name)}
        compiled = torch.compile(module, backend="pallascope", dynamic=False, options=options)
        with torch.set_grad_enabled(training):
            results = tensors(compiled(*inputs))
            if training:
                sum(t.pow(2).sum() for t in results if t.is_floating_point()).backward()
        print(f"traced {name}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--keep", metavar="FOLDER", help="a folder for the traces; they stay there")
    arguments, rest = parser.parse_known_args()
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or scratch
        for file in arguments.cases:
            dump(file, folder)
        report = os.path.join(scratch, "report.json")
        command = [str(ROOT / "build" / "tests" / "bench_models"), f"--benchmark_out={report}", *[r for r in rest if r != "--"]]
        status = subprocess.run(command, env={**os.environ, "PALLASCOPE_TRACES": folder}, check=False).returncode
        if status:
            return status
        rows = json.loads(Path(report).read_text(encoding="utf-8"))["benchmarks"]
    slow = []
    for row in rows:
        if "error_message" in row:
            slow.append(f"{row['name']}: {row['error_message']}")
        elif row.get("nodes", 0) >= SMALL and row["ms_per_100_nodes"] > BOUND_MS:
            slow.append(f"{row['name']}: {row['ms_per_100_nodes']:.2f} ms per 100 nodes")
    print("\n".join(slow) if slow else f"every graph of {SMALL} nodes or more is within {BOUND_MS:g} ms per 100 nodes")
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
