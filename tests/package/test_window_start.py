"""What the program says when a window was asked for and cannot be opened, and that a picture is what it shows."""

import os
import pathlib
import shutil
import struct
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("PALLASCOPE_BUILD", ROOT / "build")) / "pallascope"
EXAMPLE = ROOT / "assets" / "examples" / "gpt2_block.pt2"


def program(arguments, tmp_path, display=None, **options):
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment["XDG_STATE_HOME"] = str(tmp_path)
    if display is not None:
        environment["DISPLAY"] = display
    return subprocess.run(arguments, capture_output=True, text=True, timeout=120, env=environment, cwd=ROOT,
                          stdin=subprocess.DEVNULL, check=False, **options)


def test_without_a_display_a_window_is_an_error_that_says_what_helps(tmp_path):
    done = program([PROGRAM, "--window"], tmp_path)
    assert done.returncode == 1
    assert "there is no display" in done.stderr
    assert "DISPLAY" in done.stderr
    assert "--repl" in done.stderr


def test_a_display_that_is_not_there_is_named_and_the_report_follows(tmp_path):
    done = program([PROGRAM], tmp_path, display=":987")
    assert "the display cannot be used" in done.stderr
    assert "What follows is the report" in done.stderr
    assert "gpt2_block.pt2" in done.stdout
    assert done.returncode == 0


def test_a_size_that_is_none_is_refused(tmp_path):
    done = program([PROGRAM, "--window", "--size", "big"], tmp_path, display=":987")
    assert done.returncode == 2
    assert "--size is WIDTHxHEIGHT" in done.stderr


@pytest.fixture(scope="module")
def screen():
    """A display of its own. (xvfb-run sometimes fails to take its folder away and then says that with its exit status.)"""
    read, write = os.pipe()
    server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x720x24", "-nolisten", "tcp"],
                              pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as numbers:
        number = numbers.readline().strip()
    assert number, "Xvfb did not start"
    yield f":{number}"
    server.terminate()
    server.wait(timeout=20)


@pytest.mark.skipif(shutil.which("Xvfb") is None, reason="needs Xvfb")
class TestPicture:
    def shoot(self, screen, tmp_path, *arguments):
        picture = tmp_path / "window.png"
        done = program([PROGRAM, "--picture", picture, "--size", "1280x720", *arguments], tmp_path, display=screen)
        return done, picture

    def test_is_of_the_size_that_was_asked_for(self, screen, tmp_path):
        done, picture = self.shoot(screen, tmp_path, EXAMPLE)
        assert done.returncode == 0, done.stderr
        data = picture.read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", data[16:24]) == (1280, 720)
        assert len(data) > 60_000  # panels and text, not an empty window

    def test_a_command_that_fails_is_told_by_the_exit_status(self, screen, tmp_path):
        done, _ = self.shoot(screen, tmp_path, "-c", "open nothing.pt2")
        assert done.returncode == 1
        assert "there is no file 'nothing.pt2'" in done.stderr

    def test_frames_are_timed(self, screen, tmp_path):
        done = program([PROGRAM, "--frames", "30", "--timings"], tmp_path, display=screen)
        assert done.returncode == 0, done.stderr
        assert "first frame" in done.stdout and "30 frames" in done.stdout
