"""Measures how long the window takes from the start of the program to its first frame, on a screen of its own (Xvfb).

    python3 tests/bench/window_start.py [RUNS]

Prints each run's milliseconds until the first frame was handed to the screen (the program's own clock, software GL
included), and the whole process's wall time with one frame. Python is not waited for: the host starts after that frame.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main(runs):
    read, write = os.pipe()
    server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1600x1000x24"], pass_fds=[write],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as numbers:
        environment = {**os.environ, "DISPLAY": f":{numbers.readline().strip()}"}
    first, whole = [], []
    try:
        for _ in range(runs):
            start = time.perf_counter()
            out = subprocess.run([ROOT / "build" / "pallascope", "--frames", "1", "--timings"], env=environment,
                                 capture_output=True, text=True, check=True).stdout
            whole.append((time.perf_counter() - start) * 1e3)
            first.append(float(re.search(r"first frame ([\d.]+) ms", out).group(1)))
            print(f"first frame {first[-1]:6.1f} ms   process {whole[-1]:6.1f} ms", flush=True)
    finally:
        server.terminate()
    print(f"median      {statistics.median(first):6.1f} ms   process {statistics.median(whole):6.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
