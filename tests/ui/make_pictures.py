"""Makes pictures of the window from the program itself, on a screen of its own (Xvfb).

    .venv/bin/python tests/ui/make_pictures.py [FOLDER] [--readme] [--only TEXT]

Writes FOLDER (default build/pictures): the seed function, the GPT-2 block and a made-up graph of 5,000 operators, in
both themes, at 1600x1000 and 1280x720, and the GPT-2 block with other panels in front. `--readme` also renews those
that README.md shows, in assets/pictures. Needs xvfb-run and a built pallascope; the checks run in the Python host.
"""

import argparse
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import synthetic  # noqa: E402

EXAMPLES = ROOT / "assets" / "examples"
REFUSED = "d63"  # of the GPT-2 block: two additions with products between them

# name -> commands, further options
SCENES = {
    "gpt2_block": ([f"open {EXAMPLES}/gpt2_block.pt2", f"goto {REFUSED}", "check --picture --buffers", f"why {REFUSED}"], []),
    "sin_add": ([f"trace {EXAMPLES}/sin_add.py:f f32[4] f32[4]", "check --picture --buffers", "why d2"], []),
    "synthetic": ([], ["{synthetic}"]),
}
PANELS = {
    "gpt2_block_index": ([f"open {EXAMPLES}/gpt2_block.pt2", "index k3"], ["--panel", "Index"]),
    "gpt2_block_repl": ([f"open {EXAMPLES}/gpt2_block.pt2", f"why-not add add_1"], ["--panel", "REPL"]),
    "start": (["help"], []),
}
README = {"gpt2_block-dark-1600x1000": "window.png"}


def shoot(binary, path, commands, options, theme, size):
    arguments = [str(binary), "--picture", str(path), "--theme", theme, "--size", size, *options]
    if commands:
        arguments += ["-c", "; ".join(commands)]
    width, height = size.split("x")
    done = subprocess.run(
        ["xvfb-run", "-a", "-s", f"-screen 0 {width}x{height}x24", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )
    if done.returncode != 0 or not path.exists():
        sys.exit(f"{path.name}: {' '.join(arguments)}\n{done.stdout}{done.stderr}")
    print(path.name, f"{path.stat().st_size // 1024} KiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=ROOT / "build" / "pictures", type=pathlib.Path)
    parser.add_argument("--binary", default=ROOT / "build" / "pallascope", type=pathlib.Path)
    parser.add_argument("--readme", action="store_true")
    parser.add_argument("--only", default="", help="only pictures whose name holds this")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / "synthetic.json"
    synthetic.main([str(trace), "5000"])
    wanted = [
        (f"{name}-{theme}-{size}", commands, options, theme, size)
        for name, (commands, options) in SCENES.items()
        for theme in ("dark", "light")
        for size in ("1600x1000", "1280x720")
    ] + [(f"{name}-dark-1600x1000", commands, options, "dark", "1600x1000") for name, (commands, options) in PANELS.items()]
    for name, commands, options, theme, size in wanted:
        if arguments.only not in name:
            continue
        path = folder / f"{name}.png"
        path.unlink(missing_ok=True)
        shoot(arguments.binary, path, commands, [o.replace("{synthetic}", str(trace)) for o in options], theme, size)
        if arguments.readme and name in README:
            target = ROOT / "assets" / "pictures" / README[name]
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())


if __name__ == "__main__":
    main()
