"""A host for the tests of the client: speaks the protocol with the standard library only, and misbehaves on request.

Arguments change how it starts: protocol=N, hello=error, hello=hang, start=exit, start=garbage, start=slow,
start=flaky:FILE (two of three starts fail; FILE counts them), shutdown=deaf, note=FILE (written at a shutdown), and
what happens when the header of a request was read and its body not: answers=NAME, exits=NAME, closes=NAME.
"""

import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import time

LENGTHS = struct.Struct("<IQ")
settings = dict(argument.split("=", 1) for argument in sys.argv[1:])
out = os.dup(1)
os.dup2(2, 1)


def read_exactly(count):
    data = b""
    while len(data) < count:
        piece = os.read(0, min(count - len(data), 1 << 20))
        if not piece:
            os._exit(0)
        data += piece
    return data


def write_all(data):
    view = memoryview(data)
    while view:
        view = view[os.write(out, view):]


def pack(header, body=b""):
    text = json.dumps(header).encode()
    return LENGTHS.pack(len(text), len(body)) + text + body


def hello(request):
    if settings.get("hello") == "error":
        return {"error": {"kind": "host_error", "message": "No module named 'torch'", "traceback": "Traceback: none"}}
    if settings.get("hello") == "hang":
        time.sleep(1000)
    return {"result": {"protocol": int(settings.get("protocol", 1)), "pid": os.getpid(),
                       "python": sys.version.split()[0], "executable": sys.executable, "torch": "0.0", "jax": "0.1",
                       "platform": "cpu", "devices": ["cpu:0", {"id": 1}], "path": sys.path,
                       "environment": sorted(os.environ)}}


def handle(request, body):
    name = request["request"]
    if name == "hello":
        return hello(request), b""
    if name == "echo":
        return {"result": request}, body
    if name == "progress":
        for step in range(request["steps"]):
            write_all(pack({"id": request["id"], "event": "progress", "text": f"step {step}",
                            "fraction": step / request["steps"]}))
        write_all(pack({"id": request["id"], "event": "later", "version": 7}))
        return {"result": {}}, b""
    if name == "error":
        return {"error": request["error"]}, b""
    if name == "odd":  # an answer with the right id in which every field has the wrong type
        write_all(pack({"id": request["id"], "ok": 1, "error": ["not", "an", "object"]}))
        return None, b""
    if name == "segfault":
        ctypes.string_at(0)
    if name == "abort":
        os.abort()
    if name == "exit":
        os._exit(7)
    if name == "die_with_words":
        print("first words", flush=True)
        os.write(2, b"famous \xff last words\n")
        os._exit(9)
    if name == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        write_all(pack({"id": request["id"], "event": "progress", "text": "hanging"}))
        while True:
            time.sleep(1000)
    if name == "garbage":
        write_all(request.get("text", "hello, world\n").encode())
        time.sleep(1000)
    if name == "not_json":
        write_all(LENGTHS.pack(9, 0) + b"{no json}")
        time.sleep(1000)
    if name == "wrong_id":
        write_all(pack({"id": request["id"] + 1, "ok": True, "result": {}}))
        time.sleep(1000)
    if name == "truncated":
        message = pack({"id": request["id"], "ok": True, "result": {}})
        write_all(message[: len(message) // 2])
        os._exit(0)
    if name == "hang_up":
        os.close(out)
        time.sleep(1000)
    if name == "answer_and_exit":
        event = pack({"id": request["id"], "event": "progress", "text": "soon"})
        write_all(event * request.get("events", 0) + pack({"id": request["id"], "ok": True, "result": {"last": True}},
                                   b"x" * request.get("size", 0)))
        os._exit(5)
    if name == "noise":
        print("noise on standard output", flush=True)
        os.write(1, b"and on its descriptor\n")
        return {"result": {}}, b""
    if name == "stderr":
        os.write(2, request["text"].encode() * request.get("times", 1))
        return {"result": {}}, b""
    if name == "child":  # leaves a process behind that holds all our streams
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], close_fds=False)
        return {"result": {"pid": child.pid}}, b""
    if name == "fds":
        return {"result": {"fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd")),
                           "group": os.getpgid(0), "pid": os.getpid(),
                           "oom": int(open("/proc/self/oom_score_adj").read()),
                           "blocked": [line for line in open("/proc/self/status") if line.startswith("SigBlk")]}}, b""
    if name == "shutdown":
        if settings.get("shutdown") != "deaf":
            write_all(pack({"id": request["id"], "ok": True, "result": {}}))
            if "note" in settings:
                open(settings["note"], "w").write("left by itself")
            os._exit(0)
        time.sleep(1000)
    return {"error": {"kind": "usage", "message": f"no request {name}"}}, b""


if settings.get("start") == "exit":
    print("I cannot start", file=sys.stderr, flush=True)
    os._exit(4)
if settings.get("start", "").startswith("flaky:"):
    path = settings["start"].removeprefix("flaky:")
    count = len(open(path).read()) if os.path.exists(path) else 0
    open(path, "a").write("x")
    if count % 3 != 2:
        os._exit(4)
if settings.get("start") == "garbage":
    write_all(b"Welcome to this machine.\n")
if settings.get("start") == "slow":
    time.sleep(1)

while True:
    header_length, body_length = LENGTHS.unpack(read_exactly(12))
    request = json.loads(read_exactly(header_length))
    if settings.get("answers") == request["request"]:
        write_all(pack({"id": request["id"], "ok": True, "result": {}}))
        time.sleep(1000)
    if settings.get("exits") == request["request"]:
        os._exit(6)
    if settings.get("closes") == request["request"]:
        os.close(0)
        time.sleep(1000)
    answer, body = handle(request, read_exactly(body_length))
    if answer is not None:
        write_all(pack({"id": request["id"], "ok": "result" in answer, **answer}, body))
