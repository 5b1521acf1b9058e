"""The request server, in a process of its own."""

import json
import os
import subprocess
import sys
import textwrap
import time

import pytest
import torch

import pallascope
from conftest import BRIDGE, fake_source
from models import Block
from pallascope.bundle import write_bundle
from pallascope.server import pack_message, read_message


class Host:
    """A client of one host process."""

    def __init__(self, *code):
        command = [sys.executable, *(code or ("-m", "pallascope.server"))]
        environment = {**os.environ, "PYTHONPATH": str(BRIDGE)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        self.events, self.number = [], 0

    def send(self, request, body=b"", **fields):
        self.number += 1
        self.process.stdin.write(pack_message({"id": self.number, "request": request, **fields}, body))
        self.process.stdin.flush()
        return self.number

    def receive(self):
        while True:
            message = read_message(self.process.stdout.fileno())
            assert message is not None, self.process.stderr.read().decode()
            if "event" not in message[0]:
                return message[0]
            self.events.append(message[0])

    def __call__(self, request, body=b"", **fields):
        number = self.send(request, body, **fields)
        answer = self.receive()
        assert answer["id"] == number
        return answer

    def result(self, request, **fields):
        answer = self(request, **fields)
        assert answer["ok"], answer["error"]["traceback"]
        return answer["result"]

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(30)
        return self.process.returncode


@pytest.fixture(scope="module")
def host():
    host = Host()
    yield host
    assert host.close() == 0


def test_hello(host):
    result = host.result("hello")
    assert (
        result["protocol"] == 1 and result["pid"] == host.process.pid and result["torch"] == torch.__version__
    )
    assert result["platform"] == "cpu" and result["devices"] and result["executable"] == sys.executable
    assert result["jax"].count(".") == 2 and result["python"] == sys.version.split()[0]
    light = host.events[0]
    assert light["event"] == "hello_light" and light["pid"] == host.process.pid and light["protocol"] == 1
    assert all(0 <= e["fraction"] <= 1 and e["text"] for e in host.events[1:])


NOISY = """
    import os, sys, torch
    print("printed at import")
    sys.stdout.write("more"); sys.stdout.flush()
    os.system("echo from a child")
    os.write(1, b"raw bytes to descriptor 1")

    def f(x, i):
        print("printed while tracing")
        return x[i] * 2

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 4)
        def forward(self, x):
            return self.linear(x)
"""


@pytest.fixture
def user_file(tmp_path):
    file = tmp_path / "noisy.py"
    file.write_text(textwrap.dedent(NOISY))
    return str(file)


def test_trace_and_check_with_noise(host, user_file):
    traced = host.result("trace", file=user_file, function="f", specs=["f32[5,2]", "i64[7]"])
    graph = json.loads(traced["program"])["graphs"][0]
    assert [n["target"] for n in graph["nodes"]] == ["aten.index.Tensor", "aten.mul.Tensor"]
    source = fake_source(graph).replace(
        "    return run.outputs\n", "    print('printed in a kernel')\n    return run.outputs\n"
    )
    result = host.result(
        "check",
        program=traced["program"],
        graph=0,
        source=source,
        inputs={"kind": "random", "seed": 3},
        weights=None,
        modes=["debug", "steady"],
        tolerance=None,
    )
    assert result["verdict"] == "passed" and result["interpret"] is True and result["platform"] == "cpu"
    (row,) = result["outputs"]
    assert row["name"] == "mul" and row["kind"] == "output" and set(row["modes"]) == {"debug", "steady"}
    assert result["inputs_made"] == "2 random (seed 3, 1 of them within the range that the graph needs)"
    assert result["seconds"] > 0 and result["jax"]
    assert result["notes"] == [] and result["float64"] is None


def test_weights_of_a_trace(host, user_file):
    traced = host.result("trace", file=user_file, function="M", specs=["f32[2,3]"])
    graph = json.loads(traced["program"])["graphs"][0]
    arguments = dict(program=traced["program"], source=fake_source(graph))
    result = host.result("check", weights={"kind": "trace", "token": traced["origin"]}, **arguments)
    assert result["verdict"] == "passed" and result["inputs_made"].endswith("2 given")
    result = host.result(
        "run",
        weights={"kind": "trace", "token": traced["origin"]},
        inputs={"kind": "trace", "token": traced["origin"]},
        modes=["steady"],
        time=True,
        **arguments,
    )
    assert result["outputs"][0]["sizes"] == [2, 4] and set(result["seconds_by_mode"]) == {"steady"}
    assert result["timings"]["steady"]["calls"] >= 4 and "1 sample inputs" in result["inputs_made"]
    answer = host("check", weights={"kind": "trace", "token": "trace-99"}, **arguments)
    assert answer["error"]["kind"] == "not_found" and "trace-99" in answer["error"]["message"]


def test_a_wrong_kernel_fails_the_check(host):
    program = pallascope.trace(lambda x: x.sin(), torch.randn(3, 4))
    source = fake_source(program.graph()).replace("return run.outputs", "return [o + 1 for o in run.outputs]")
    result = host.result("check", program=program.to_json(), source=source, picture=True)
    assert result["verdict"] == "failed"
    assert (result["torch"], result["python"]) == (torch.__version__, sys.version.split()[0])
    figures = result["outputs"][0]["modes"]["steady"]
    assert (
        figures["mismatched"] == 12
        and figures["first"]["index"] == [0, 0]
        and figures["picture"]["rows"] == 3
    )
    result = host.result(
        "check",
        program=program.to_json(),
        source=source,
        tolerance={"atol": 2.0, "rtol": 0.0},
        modes=["steady"],
    )
    assert result["verdict"] == "passed" and "picture" not in result["outputs"][0]["modes"]["steady"]


def test_python_sees_the_last_check(host):
    program = pallascope.trace(lambda x: x.sin(), torch.randn(3))
    host.result("check", program=program.to_json(), source=fake_source(program.graph()))
    assert (
        host.result(
            "python",
            code="torch.equal(outputs[0], inputs[0].sin()) and torch.equal(reference[0], outputs[0])",
        )["repr"]
        == "True"
    )
    assert (
        host.result("python", code="graph['nodes'][0]['target'], kernels.INPUTS[0]['name'], jax.__name__")[
            "repr"
        ]
        == "('aten.sin.default', 'x', 'jax')"
    )
    assert host.result("python", code="inputs = 5\nprint('a')\nprint('b', end='')") == {
        "stdout": "a\nb",
        "repr": None,
    }
    assert host.result("python", code="def g(n):\n    return n + inputs\n") == {"stdout": "", "repr": None}
    assert (
        host.result("python", code="g(1)")["repr"] == "6" and host.result("python", code="_")["repr"] == "6"
    )
    assert host.result("python", code="None") == {"stdout": "", "repr": None}
    assert host.result("python", code="") == {"stdout": "", "repr": None}


def test_errors_are_answers(host, user_file, tmp_path):
    answer = host("python", code="def h():\n    return 1 / 0\nprint('x')\nh()")
    assert answer["ok"] is False and answer["error"]["kind"] == "host_error"
    assert answer["error"]["message"] == "ZeroDivisionError: division by zero"
    traceback = answer["error"]["traceback"]
    assert "return 1 / 0" in traceback and "server.py" not in traceback and "printed before: x" in traceback
    for code, message in (
        ("raise MemoryError", "out of memory"),
        ("import sys; sys.exit(3)", "sys.exit(3)"),
        ("def f(:", "SyntaxError"),
        ("raise KeyboardInterrupt", "interrupted"),
        ("class E(BaseException): pass\nraise E('odd')", "odd"),
    ):
        assert message in host("python", code=code)["error"]["message"], code
    answer = host("trace", file=user_file, function="nope")
    assert answer["error"]["kind"] == "not_found" and "f, M" in answer["error"]["remedy"]
    answer = host("nothing")
    assert answer["error"]["kind"] == "usage" and "check" in answer["error"]["remedy"]
    assert host("check", program="{}", source="")["error"]["kind"] == "malformed_graph"
    assert host("check", source="")["error"]["kind"] == "usage"
    program = pallascope.trace(torch.sin, torch.randn(3))
    text = program.to_json()
    assert host("check", program=text, source="def f(:")["error"]["message"].startswith("SyntaxError")
    assert host("check", program=text, graph=4, source="")["error"]["kind"] == "not_found"
    assert host("check", program=text)["error"]["message"] == "KeyError: 'source'"
    source = fake_source(program.graph())
    for inputs, kind in (
        ({"kind": "bundle", "path": str(tmp_path / "none")}, "not_found"),
        ({"kind": "x"}, "usage"),
        ({"kind": "pt2", "path": user_file}, "not_a_zip"),
    ):
        assert host("check", program=text, source=source, inputs=inputs)["error"]["kind"] == kind
    assert (
        host("check", program_path=str(tmp_path / "none"), source=source)["error"]["kind"] == "not_readable"
    )
    broken = source.replace("    run = run_graph", "    raise ValueError('in a kernel')\n    run = run_graph")
    error = host("check", program=text, source=broken)["error"]
    assert error["kind"] == "host_error" and "mode debug: in a kernel" in error["message"]
    assert "raise ValueError('in a kernel')" in error["traceback"]
    assert host.result("check", program=text, source=source)["verdict"] == "passed", "the host goes on"


def test_bundles_and_archives(host, tmp_path):
    torch.manual_seed(0)
    x = torch.randn(4, 8)
    program = pallascope.trace(Block().eval(), x)
    source = fake_source(program.graph())
    inputs = [
        x if i["kind"] == "user_input" else program.tensors[i["target"]] for i in program.graph()["inputs"]
    ]
    write_bundle(str(tmp_path / "b"), program, [inputs])
    path = str(tmp_path / "b" / "program.json")
    result = host.result(
        "check", program_path=path, source=source, inputs={"kind": "bundle", "path": str(tmp_path / "b")}
    )
    assert result["verdict"] == "passed" and result["inputs_made"] == "from the bundle"
    torch.export.save(torch.export.export(Block().eval(), (x,)), tmp_path / "m.pt2")
    data = {**program.data, "weights": {"scale": {"member": "data/weights/weight_6", "bytes": 32}}}
    arguments = dict(
        program=json.dumps(data), source=source, weights={"kind": "pt2", "path": str(tmp_path / "m.pt2")}
    )
    result = host.result("check", **arguments)
    assert result["inputs_made"].endswith("1 given")
    result = host.result("check", inputs={"kind": "pt2"}, **arguments)
    assert "1 sample inputs" in result["inputs_made"]
    assert host.result("python", code="inputs[-1].shape")["repr"] == "torch.Size([4, 8])"


def test_a_body_is_ignored_and_ids_come_back(host):
    host.number = 2**40
    assert host("python", body=b"\x00" * 100_000, code="1")["result"]["repr"] == "1"


def test_an_interrupt_stops_python(host):
    running = host.send("python", code="import time\nwhile True: time.sleep(0.01)")
    time.sleep(0.5)
    interrupt = host.send("interrupt", of=running)
    answers = {a["id"]: a for a in (host.receive(), host.receive())}
    assert answers[interrupt]["result"] == {"interrupted": True}
    assert answers[running]["error"]["kind"] == "cancelled"
    assert host.result("interrupt") == {"interrupted": False}
    assert host.result("python", code="'still here'")["repr"] == "'still here'"


def test_input_of_user_code_is_empty(host):
    assert "EOFError" in host("python", code="input()")["error"]["message"]


def test_pending_requests_are_answered_after_the_end():
    host = Host()
    first, second = host.send("python", code="1 + 1"), host.send("python", code="2 + 2")
    host.process.stdin.close()
    assert [(a["id"], a["result"]["repr"]) for a in (host.receive(), host.receive())] == [
        (first, "2"),
        (second, "4"),
    ]
    assert host.process.wait(20) == 0


def test_the_end_of_the_stream_ends_the_process():
    host = Host()
    assert host.close() == 0
    host = Host()
    host.send("python", code="import time\ntime.sleep(1000)")
    time.sleep(0.3)
    host.process.stdin.close()
    host.process.stdout.close()  # the client is gone: what runs now runs for nobody
    assert host.process.wait(20) == 0


def test_shutdown():
    host = Host()
    assert host("shutdown")["ok"] and host.process.wait(20) == 0


def test_a_broken_stream_is_told_on_standard_error():
    host = Host()
    host.process.stdin.write(b"GET / HTTP/1.1\r\n\r\n" * 4)
    host.process.stdin.close()
    assert host.process.wait(20) == 1 and b"pallascope host: a header of" in host.process.stderr.read()


def test_other_descriptors_and_a_light_start():
    """`serve` over two pipes, as an embedding process calls it; nothing heavy is imported before a request
    asks."""
    requests_read, requests_write = os.pipe()
    answers_read, answers_write = os.pipe()
    code = (
        "import sys, pallascope.server as s\n"
        "assert 'torch' not in sys.modules and 'jax' not in sys.modules and 'numpy' not in sys.modules\n"
        f"s.serve({requests_read}, {answers_write})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        pass_fds=(requests_read, answers_write),
        env={**os.environ, "PYTHONPATH": str(BRIDGE)},
        stdout=subprocess.PIPE,
    )
    os.close(requests_read)
    os.close(answers_write)
    os.write(
        requests_write,
        pack_message({"id": 1, "request": "python", "code": "print('hello'); import sys; sys.stdout"}),
    )
    while "event" in (message := read_message(answers_read)[0]):
        pass
    assert message["ok"] and message["result"]["stdout"] == "hello\n"
    os.close(requests_write)
    assert process.wait(20) == 0 and process.stdout.read() == b""
    os.close(answers_read)
