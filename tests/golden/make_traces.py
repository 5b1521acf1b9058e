"""Traces the examples into data/*.json beside this file, for test_golden.

    .venv/bin/python tests/golden/make_traces.py

Needs torch alone: no C++ is called. Paths are written as seen from the repository, frames of torch are left out, so
the files say the same on every machine.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "python_bridge"))

from pallascope import tracing  # noqa: E402

EXAMPLES = {
    "sin_add": ["f32[4]", "f32[4]"],
    "softmax": ["f32[8,16]"],
    "layer_norm": ["f32[8,16]", "f32[16]", "f32[16]"],
    "segments": ["f32[12,16]", "i64[12]"],
}


def relative(path):
    path = pathlib.Path(path)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) and ".venv" not in path.parts else None


def main():
    for name, specs in EXAMPLES.items():
        program = tracing.trace_file(ROOT / "assets" / "examples" / f"{name}.py", "f", specs)
        data = program.data
        data["name"] = name
        data["sources"] = {relative(p): text for p, text in data.get("sources", {}).items() if relative(p)}
        for graph in data["graphs"]:
            for node in graph["nodes"]:
                frames = [{**f, "file": relative(f["file"])} for f in node.get("stack", [])]
                node["stack"] = [f for f in frames if f["file"]]
        path = HERE / "data" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
