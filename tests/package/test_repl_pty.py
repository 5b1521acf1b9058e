"""The prompt of build/pallascope through a pseudo-terminal: what a person types, and what they see."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("PALLASCOPE_BUILD", ROOT / "build")) / "pallascope"


def without_display():
    """The environment of a terminal: with a display the program would open its window."""
    return {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}

# Nothing here waits for Python, so a prompt that takes longer than this is stuck.
PATIENCE = 20.0

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="build/pallascope is not built")

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


def tensor(sizes: list[int]) -> dict:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= size
    return {"dtype": "f32", "sizes": sizes, "strides": strides, "offset": 0}


def node(name: str, target: str, args: list, sizes: list[int], line: int) -> dict:
    return {"name": name, "target": target, "args": args, "kwargs": {},
            "outputs": [{"name": name, "tensor": tensor(sizes)}],
            "stack": [{"file": "/home/me/model.py", "line": line, "function": "f", "code": f"line {line}"}]}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A program of four operators, as a file."""
    graph = {"name": "forward", "kind": "inference",
             "inputs": [{"kind": "user_input", "name": "x", "target": "x", "tensor": tensor([4, 8])}],
             "nodes": [node("sin", "aten.sin.default", [{"value": "x"}], [4, 8], 5),
                       node("sum_1", "aten.sum.dim_IntList", [{"value": "sin"}, [1], True], [4, 1], 6),
                       node("div", "aten.div.Tensor", [{"value": "sin"}, {"value": "sum_1"}], [4, 8], 7),
                       node("relu", "aten.relu.default", [{"value": "div"}], [4, 8], 8)],
             "outputs": [{"kind": "user_output", "value": "relu"}]}
    path = tmp_path / "small.json"
    path.write_text(json.dumps({"format": "pallascope.trace", "version": 1, "producer": "torch 2.13.0+cpu",
                                "name": "small", "graphs": [graph]}))
    return path


class Terminal:
    """pallascope in a pseudo-terminal. `text` is all that it has shown, without control sequences."""

    def __init__(self, home: Path, *arguments: str):
        environment = {**without_display(), "XDG_STATE_HOME": str(home), "HOME": str(home), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(PROGRAM, [str(PROGRAM), *arguments], environment)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        self.raw = ""
        self.read_to = 0

    @property
    def text(self) -> str:
        return CONTROL.sub("", self.raw)

    def type(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def wait_for(self, pattern: str) -> str:
        """Reads until `pattern` is shown after what was waited for before; gives the text up to its end."""
        end = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern, self.text[self.read_to:])
            if found:
                shown = self.text[self.read_to:self.read_to + found.end()]
                self.read_to += found.end()
                return shown
            assert time.monotonic() < end, f"{pattern!r} was not shown; what was:\n{self.text[self.read_to:]}"
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    part = os.read(self.fd, 65536)
                except OSError as error:
                    assert error.errno == errno.EIO, error
                    part = b""
                assert part, f"it ended before {pattern!r} was shown; what was:\n{self.text[self.read_to:]}"
                self.raw += part.decode(errors="replace")

    def command(self, line: str) -> str:
        """Types a line and gives what was shown up to the next prompt."""
        self.type(line + "\r")
        self.wait_for(r"\n")
        return self.wait_for(r"(?m)^(\w*)> ")

    def ended(self) -> int:
        """The exit status, once it ends."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    part = os.read(self.fd, 65536)
                    self.raw += part.decode(errors="replace")
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"it did not end; what was shown:\n{self.text}")

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


@pytest.fixture
def start(tmp_path: Path):
    terminals = []

    def start_one(*arguments: str) -> Terminal:
        terminal = Terminal(tmp_path, *arguments)
        terminals.append(terminal)
        terminal.wait_for(r"(?m)^> ")
        return terminal

    yield start_one
    for terminal in terminals:
        terminal.close()


def test_open_summary_step_why_and_quit(start, trace: Path):
    terminal = start("--repl")
    assert "4 nodes → " in terminal.command(f"open {trace}")
    summary = terminal.command("summary")
    assert "small.json" in summary and "not checked" in summary and "bytes moved" in summary
    assert "of" in terminal.command("goto d3")
    assert terminal.command("step").rstrip().endswith("d4>")
    assert "accepted" in terminal.command("why sum_1")
    assert "lowered to kernel" in terminal.command("goto end; why d0")
    terminal.type("quit\r")
    assert terminal.ended() == 0


def test_a_file_on_the_command_line_is_open_at_the_prompt(start, trace: Path):
    terminal = start(str(trace))
    assert "4 nodes → " in terminal.text
    assert "sum_1" in terminal.command("ls nodes")


def test_unknown_commands_suggest(start):
    terminal = start("--repl")
    assert "did you mean `summary`?" in terminal.command("sumary")
    assert "py x.shape" in terminal.command("x.shape")
    assert "open" in terminal.command("summary")  # nothing is open: how to open something


def test_help_has_examples(start):
    terminal = start("--repl")
    assert "why-not" in terminal.command("help")
    assert "example: why-not sum_2 div_5" in terminal.command("help why-not")


def test_json_at_the_prompt(start, trace: Path):
    terminal = start(str(trace))
    shown = terminal.command("summary --json")
    assert json.loads(shown[shown.index("{"):shown.rindex("}") + 1])["result"]["nodes"] == 4


def test_tab_completes_commands_names_and_files(start, trace: Path):
    terminal = start("--repl")
    terminal.type("sum\t")
    terminal.wait_for("summary ")
    terminal.type("\x15")  # Ctrl-U: the line is gone
    terminal.type(f"open {str(trace)[:-5]}\t")
    terminal.wait_for(re.escape("small.json"))
    terminal.type("\r")
    terminal.wait_for("4 nodes")
    terminal.wait_for(r"(?m)^> ")
    terminal.type("show su\t")
    terminal.wait_for("show sum_1")
    terminal.type("\r")
    terminal.wait_for(r"aten\.sum\.dim_IntList")
    terminal.wait_for(r"(?m)^> ")
    terminal.type("ls \t")  # several: they are listed
    shown = terminal.wait_for("nodes")
    assert "buffers" in shown and "decisions" in shown


def test_history_is_kept_across_runs(start, trace: Path, tmp_path: Path):
    terminal = start("--repl")
    terminal.command("help stepback")
    terminal.type("quit\r")
    assert terminal.ended() == 0
    assert "help stepback" in (tmp_path / "pallascope" / "history").read_text()
    second = start("--repl")
    second.type("\x1b[A\x1b[A")  # up twice: before `quit`
    second.wait_for("help stepback")
    second.type("\r")
    second.wait_for("example: stepback 3")


def test_ctrl_c_gives_the_line_up_and_ctrl_d_leaves(start):
    terminal = start("--repl")
    terminal.type("summary and more")
    terminal.wait_for("more")
    terminal.type("\x03")
    terminal.wait_for(r"\^C")
    terminal.wait_for(r"(?m)^> ")
    assert "unknown" not in terminal.text and "help" in terminal.command("help help")
    terminal.type("\x03")
    terminal.wait_for(r"(?m)^> ")
    terminal.type("\x04")
    assert terminal.ended() == 0


def test_ctrl_c_ends_what_a_command_waits_for(start):
    """Python that would run for minutes (or is still starting) is stopped, and the prompt goes on."""
    terminal = start("--repl")
    terminal.type("py import time; time.sleep(600)\r")
    time.sleep(1.0)
    terminal.type("\x03")
    terminal.wait_for("cancel")
    terminal.wait_for(r"(?m)^> ")
    assert "example" in terminal.command("help quit")


def test_python_blocks_end_with_an_empty_line(start):
    """The block is read as a whole; whether a host runs it does not matter here."""
    terminal = start("--repl")
    terminal.type("def f(x):\r")
    terminal.wait_for(r"\.\.\. ")
    terminal.type("  return x\r")
    terminal.wait_for(r"\.\.\. ")
    terminal.type("\x03")
    terminal.wait_for(r"(?m)^> ")


def batch(tmp_path: Path, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess:
    environment = {**without_display(), "XDG_STATE_HOME": str(tmp_path)}
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, env=environment,
                          input=text, stdin=subprocess.DEVNULL if text is None else None)


def test_batch_json_is_one_object_a_line(trace: Path, tmp_path: Path):
    done = batch(tmp_path, "-c", f"open {trace}; summary; why d0; show nothing_like_this", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["command"] for line in lines] == ["open", "summary", "why", "show"]
    assert [line["ok"] for line in lines] == [True, True, True, False]
    assert lines[3]["error"]["kind"] == "not_found"
    assert set(lines[3]["error"]) <= {"kind", "message", "where", "remedy"}
    assert done.returncode == 1 and done.stderr == ""


def test_batch_status_is_0_when_all_is_well(trace: Path, tmp_path: Path):
    done = batch(tmp_path, "-c", f"open {trace}; why-not sin relu; ls kernels")
    assert done.returncode == 0, done.stderr
    assert "> why-not sin relu" in done.stdout


def test_batch_needs_full_names(trace: Path, tmp_path: Path):
    done = batch(tmp_path, "-c", f"open {trace}; summ", "--json")
    error = json.loads(done.stdout.splitlines()[1])["error"]
    assert error["kind"] == "unknown_command" and "summary" in error["remedy"]
    assert done.returncode == 1


def test_commands_come_from_a_pipe(trace: Path, tmp_path: Path):
    done = batch(tmp_path, "--repl", "--json", text=f"open {trace}  # a comment\nsummary\nquit\nsummary\n")
    assert [json.loads(line)["command"] for line in done.stdout.splitlines()] == ["open", "summary", "quit"]
    assert done.returncode == 0


def test_a_command_line_that_makes_no_sense_is_status_2(tmp_path: Path):
    done = batch(tmp_path, "--nonsense")
    assert done.returncode == 2


def test_version_and_help(tmp_path: Path):
    assert re.fullmatch(r"pallascope \d+\.\d+\.\d+\n", batch(tmp_path, "--version").stdout)
    assert "Exit status" in batch(tmp_path, "--help").stdout
