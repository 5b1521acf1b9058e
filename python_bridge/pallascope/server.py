"""The host's request server: the requests of core's client, served over two file descriptors.

Standard library only at import. torch, jax and the rest of this package are imported inside the requests that
need them, so a host answers at once and an error of an import is an answer too.

A message is: 4 bytes little-endian unsigned, the length of the header; 8 bytes little-endian unsigned, the
length of the body; the header, a JSON object in UTF-8; the body, raw bytes. No request of version 1 has a
body; one that comes is read and ignored.

    request   {"id": 7, "request": "check", ...}
    event     {"id": 7, "event": "progress", "text": "running the kernels, steady", "fraction": 0.5}
    answer    {"id": 7, "ok": true, "result": {...}}
              {"id": 7, "ok": false, "error": {"kind", "message", "where", "remedy", "traceback"}}

"kind" is host_error for an exception of Python, and the kind of a PallascopeError for a diagnostic. Requests
are served one after the other, on the thread that called `serve`; `interrupt` alone is answered at once, from
the thread that reads. The end of the request stream ends the process: at once when nobody reads the answers
any more, else after the requests that came before.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import io
import json
import os
import queue
import select
import struct
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

PROTOCOL = 1
_LENGTHS = struct.Struct("<IQ")
# A header holds a program at most; a longer one means that the two ends lost each other. The client has this
# limit too: a program above it travels as a file ("program_path").
_LONGEST_HEADER = 128 << 20
# A watched file is traced again at each save, and each trace holds the model's weights.
_TRACES_KEPT = 8


class StreamError(Exception):
    """The request stream is not what the framing says."""


def read_exactly(fd: int, count: int) -> bytes | None:
    """`count` bytes, or None at the end of the stream. Raises StreamError when it ends within them."""
    parts: list[bytes] = []
    missing = count
    while missing:
        part = os.read(fd, min(missing, 1 << 20))
        if not part:
            if missing == count:
                return None
            raise StreamError(f"the stream ended {missing} bytes early")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def read_message(fd: int) -> tuple[dict[str, Any], bytes] | None:
    """(header, body) of the next message, or None at the end of the stream. Raises StreamError."""
    lengths = read_exactly(fd, _LENGTHS.size)
    if lengths is None:
        return None
    header_length, body_length = _LENGTHS.unpack(lengths)
    if header_length > _LONGEST_HEADER:
        raise StreamError(f"a header of {header_length} bytes")
    header = read_exactly(fd, header_length) if header_length else b""
    body = read_exactly(fd, body_length) if body_length else b""
    if header is None or body is None:
        raise StreamError("the stream ended within a message")
    try:
        decoded = json.loads(header)
    except ValueError as error:
        raise StreamError(f"a header that is no JSON ({error})") from error
    if not isinstance(decoded, dict):
        raise StreamError("a header that is no JSON object")
    return decoded, body


def pack_message(header: dict[str, Any], body: bytes = b"") -> bytes:
    """The bytes of one message."""
    text = json.dumps(header, allow_nan=False).encode()
    return _LENGTHS.pack(len(text), len(body)) + text + body


def _leave(status: int) -> None:
    """Ends the process now: finalising torch and jax takes long, and a thread may be stuck in either."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


class Server:
    """One host. `read_fd` and `write_fd` belong to the server from here on."""

    def __init__(self, read_fd: int, write_fd: int):
        # First of all the streams leave descriptors 0 and 1, so that a print, or a puts of C code, reaches
        # stderr, and an input() of user code finds an empty file, and neither reaches the protocol.
        self.read_fd = os.dup(read_fd)
        self.write_fd = os.dup(write_fd)
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
        os.dup2(2, 1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        for fd in {read_fd, write_fd} - {0, 1, 2}:
            os.close(fd)
        # print() is buffered by line, or not at all where stdout was a pipe when Python started.
        with contextlib.suppress(AttributeError, ValueError):
            sys.stdout.reconfigure(line_buffering=True)
        self.lock = threading.Lock()
        self.waiting: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.current: int | None = None
        self.worker = threading.get_ident()
        self.state_lock = threading.Lock()
        self.handlers = Handlers(self)

    def send(self, header: dict[str, Any]) -> None:
        """Writes one message; ends the process when nobody reads."""
        data = pack_message(header)
        with self.lock:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self.write_fd, view) :]
            except OSError:
                _leave(0)

    def progress(self, text: str, fraction: float) -> None:
        """An event of the request that is being served."""
        self.send(
            {"id": self.current, "event": "progress", "text": text, "fraction": round(float(fraction), 4)}
        )

    def run(self) -> None:
        """Serves until the stream ends or `shutdown` comes; does not return."""
        threading.Thread(target=self._read, daemon=True, name="pallascope requests").start()
        while True:
            try:
                request = self.waiting.get()
            except KeyboardInterrupt:  # an interrupt that came after its request had been answered
                continue
            if request is None:
                _leave(0)
            self._serve(request)

    def _read(self) -> None:
        try:
            while (message := read_message(self.read_fd)) is not None:
                request = message[0]
                if request.get("request") == "interrupt":
                    self._interrupt(request)
                else:
                    self.waiting.put(request)
        except (StreamError, OSError) as error:
            print(f"pallascope host: {error}", file=sys.stderr, flush=True)
            _leave(1)
        self.waiting.put(None)
        # The client may have closed its end and still read (a pipe of requests), or it may be gone: then
        # whatever runs now runs for nobody.
        poll = select.poll()
        poll.register(self.write_fd, 0)
        while True:
            if any(
                event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(200)
            ):
                _leave(0)
            time.sleep(0.05)

    def _interrupt(self, request: dict[str, Any]) -> None:
        """Raises KeyboardInterrupt in the worker, when the request named by "of" (or any) is being served.

        It takes effect at the worker's next Python instruction: C++ code and compiled kernels finish first.
        """
        with self.state_lock:
            hit = self.current is not None and request.get("of", self.current) == self.current
            if hit:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self.worker), ctypes.py_object(KeyboardInterrupt)
                )
        self.send({"id": request.get("id"), "ok": True, "result": {"interrupted": hit}})

    def _serve(self, request: dict[str, Any]) -> None:
        number = request.get("id")
        with self.state_lock:
            self.current = number
        try:
            try:
                answer = {"id": number, "ok": True, "result": self.handlers.handle(request)}
                pack_message(answer)  # a result that JSON cannot hold is this request's error
            except SystemExit as error:
                answer = self._failure(number, error, f"the code called sys.exit({error.code!r})")
            except BaseException as error:
                answer = self._failure(number, error)
            finally:
                with self.state_lock:
                    self.current = None
            _checkpoint()
        except KeyboardInterrupt as error:  # it came while an answer was being made
            answer = self._failure(number, error)
        self.send(answer)
        if request.get("request") == "shutdown":
            _leave(0)

    @staticmethod
    def _failure(number: Any, error: BaseException, message: str | None = None) -> dict[str, Any]:
        kind, where, remedy = "host_error", "", ""
        if isinstance(error, KeyboardInterrupt):
            kind, message = "cancelled", "the request was interrupted"
        elif isinstance(error, MemoryError):
            message = "out of memory" + (f": {error}" if str(error) else "")
        elif hasattr(error, "as_dict") and type(error).__module__.startswith("pallascope"):
            kind, message, where, remedy = error.kind, error.message, error.where, error.remedy
        if message is None:
            message = f"{type(error).__name__}: {error}"
        shown = error.__traceback__
        while (
            shown is not None and shown.tb_next is not None and shown.tb_frame.f_code.co_filename == __file__
        ):
            shown = shown.tb_next  # a user's error starts at the user's frame
        text = "".join(traceback.format_exception(type(error), error, shown))
        return {
            "id": number,
            "ok": False,
            "error": {"kind": kind, "message": message, "where": where, "remedy": remedy, "traceback": text},
        }


def _checkpoint() -> None:
    """A call, at which the interpreter raises an interrupt that is still pending."""


class Handlers:
    """The requests. What is kept between them: traces by token, and what the `python` request finds at
    hand."""

    def __init__(self, server: Server):
        self.server = server
        self.traces: dict[str, Any] = {}
        self.trace_count = 0
        self.namespace: dict[str, Any] = {
            "__name__": "__pallascope__",
            "__builtins__": __builtins__,
            "inputs": None,
            "outputs": None,
            "reference": None,
            "kernels": None,
            "graph": None,
        }
        self.module: Any = None
        self.namespace_ready = False

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request.get("request")
        handler = getattr(self, f"request_{name}", None) if isinstance(name, str) else None
        if handler is None:
            raise _error(
                "usage",
                f"the host has no request '{name}'",
                "",
                "the requests are "
                + ", ".join(
                    sorted(n.removeprefix("request_") for n in dir(self) if n.startswith("request_"))
                ),
            )
        return handler(request)

    # ------------------------------------------------------------------ hello and the end

    def request_hello(self, request: dict[str, Any]) -> dict[str, Any]:
        light = {
            "protocol": PROTOCOL,
            "pid": os.getpid(),
            "python": sys.version.split()[0],
            "executable": sys.executable,
        }
        self.server.send({"id": request.get("id"), "event": "hello_light", **light})
        self.server.progress("importing torch", 0.1)
        import torch

        self.server.progress("importing jax", 0.6)
        import jax

        return {
            **light,
            "torch": torch.__version__,
            "jax": jax.__version__,
            "platform": jax.default_backend(),
            "devices": [str(d) for d in jax.devices()],
        }

    def request_shutdown(self, request: dict[str, Any]) -> dict[str, Any]:
        return {}

    # ------------------------------------------------------------------ tracing

    def request_trace(self, request: dict[str, Any]) -> dict[str, Any]:
        self.server.progress("importing torch", 0.1)
        from . import tracing

        self.server.progress(f"tracing {request['function']}", 0.5)
        program = tracing.trace_file(request["file"], request["function"], request.get("specs") or [])
        self.trace_count += 1
        token = f"trace-{self.trace_count}"
        self.traces[token] = program
        while len(self.traces) > _TRACES_KEPT:
            self.traces.pop(next(iter(self.traces)))
        return {"program": program.to_json(), "origin": token, "name": program.name}

    # ------------------------------------------------------------------ running

    def _program(self, request: dict[str, Any]) -> dict[str, Any]:
        from .tracing import Program

        if request.get("program") is not None:
            text = request["program"]
            return Program(text if isinstance(text, dict) else str(text)).data
        path = request.get("program_path")
        if not path:
            raise _error("usage", "the request has neither 'program' nor 'program_path'")
        try:
            with open(path, encoding="utf-8") as f:
                return Program(f.read()).data
        except OSError as error:
            raise _error("not_readable", f"'{path}' cannot be read: {error.strerror}", path) from error
        except ValueError as error:
            raise _error("malformed_json", f"'{path}' is no JSON: {error}", path) from error

    def _trace(self, token: Any) -> Any:
        if token not in self.traces:
            raise _error(
                "not_found",
                f"this host has no trace '{token}'",
                "",
                "trace the function again: the host was "
                f"started anew since, or {_TRACES_KEPT} traces came after it",
            )
        return self.traces[token]

    def _prepare(self, request: dict[str, Any]) -> tuple[dict[str, Any], Any, list[Any], str, int]:
        """(graph, module, inputs, how they were made, seed) for check and run."""
        self.server.progress("importing torch and jax", 0.0)
        import torch  # noqa: F401

        from . import inputs as making
        from .bundle import Bundle
        from .execute import load_module, unload_module
        from .pt2 import Pt2

        program = self._program(request)
        index = int(request.get("graph", 0))
        if not 0 <= index < len(program["graphs"]):
            raise _error(
                "not_found",
                f"there is no graph {index}",
                program.get("name", ""),
                f"the program has {len(program['graphs'])}",
            )
        graph = program["graphs"][index]
        weights = request.get("weights") or {}
        known, pt2 = {}, None
        if weights.get("kind") == "pt2":
            pt2 = Pt2(weights["path"])
            known = pt2.weights(program, graph)
        elif weights.get("kind") == "trace":
            known = self._trace(weights["token"]).tensors
        elif weights:
            raise _error(
                "usage", f"weights of the kind '{weights.get('kind')}' are not known", "", "use pt2 or trace"
            )
        wanted = request.get("inputs") or {"kind": "random"}
        seed = int(wanted.get("seed", 0))
        kind = wanted.get("kind")
        self.server.progress("making the inputs", 0.05)
        if kind == "random":
            tensors, made = making.random_inputs(graph, seed, known)
        elif kind == "bundle":
            tensors, made = Bundle(wanted["path"]).inputs(int(wanted.get("graph", index))), "from the bundle"
            if len(tensors) != len(graph["inputs"]):
                raise _error(
                    "invalid_argument",
                    f"the bundle has {len(tensors)} inputs for graph {index}, the graph "
                    f"takes {len(graph['inputs'])}",
                    wanted["path"],
                )
        elif kind == "pt2":
            samples = (pt2 if pt2 and not wanted.get("path") else Pt2(wanted["path"])).samples()
            if samples is None:
                raise _error(
                    "not_found", "the archive has no sample inputs", wanted.get("path", ""), "use random ones"
                )
            tensors, made = making.sample_inputs(graph, samples, known, seed)
        elif kind == "trace":
            samples = self._trace(wanted["token"]).samples[index]
            tensors, made = making.sample_inputs(graph, samples, known, seed)
        else:
            raise _error(
                "usage", f"inputs of the kind '{kind}' are not known", "", "use random, bundle, pt2 or trace"
            )
        self.server.progress("loading the module", 0.08)
        module = load_module(request["source"], graph["name"])
        if self.module is not None:
            unload_module(self.module)
        self.module = module
        self.namespace.update(graph=graph, inputs=tensors, kernels=module, outputs=None, reference=None)
        return graph, module, tensors, made, seed

    def _place(self) -> dict[str, Any]:
        import jax
        import torch

        return {
            "platform": jax.default_backend(),
            "python": sys.version.split()[0],
            "torch": torch.__version__,
            "jax": jax.__version__,
            "interpret": bool(getattr(self.module, "INTERPRET", True)),
        }

    def request_check(self, request: dict[str, Any]) -> dict[str, Any]:
        start = time.perf_counter()
        graph, module, tensors, made, seed = self._prepare(request)
        from .check import check_graph

        def progress(text: str, fraction: float) -> None:
            self.server.progress(text, 0.1 + 0.9 * fraction)

        result, values = check_graph(
            graph,
            module,
            tensors,
            modes=request.get("modes") or ["debug", "steady"],
            tolerance=request.get("tolerance"),
            seed=seed,
            detail=bool(request.get("picture", False)),
            launches=int(request.get("launches") or 0),
            buffers=request.get("buffers"),
            progress=progress,
        )
        self.namespace.update(outputs=list(values["outputs"].values())[-1], reference=values["eager"].outputs)
        return {**result, **self._place(), "seconds": time.perf_counter() - start, "inputs_made": made}

    def request_run(self, request: dict[str, Any]) -> dict[str, Any]:
        start = time.perf_counter()
        graph, module, tensors, made, seed = self._prepare(request)
        from .check import neutral_jax, run_module, summarise
        from .execute import time_mode
        from .layout import clone_all
        from .observe import Launches

        launches = int(request.get("launches") or 0)
        seconds, timings, outputs = {}, {}, []
        modes = request.get("modes") or ["debug", "steady"]
        for count, mode in enumerate(modes):
            low, high = (0.1 + 0.9 * k / len(modes) for k in (count, count + 1))
            self.server.progress(f"running the kernels, {mode}", low)
            told = [Launches(self.server.progress, mode, launches, low, high)] if launches else []
            outputs, _, seconds[mode] = run_module(module, tensors, mode, seed, told)
            if request.get("time"):
                with neutral_jax():
                    timings[mode] = time_mode(module, clone_all(tensors), mode)
        names = [o["value"] for o in graph["outputs"] if o["kind"] == "user_output"]
        self.namespace.update(outputs=outputs)
        result = {
            "outputs": [summarise(v, n or "None") for v, n in zip(outputs, names, strict=True)],
            "seconds_by_mode": seconds,
            **self._place(),
            "seconds": time.perf_counter() - start,
            "inputs_made": made,
        }
        if timings:
            result["timings"] = timings
        return result

    # ------------------------------------------------------------------ Python

    def request_python(self, request: dict[str, Any]) -> dict[str, Any]:
        """Runs statements in one namespace; the value of a last expression is its "repr" (null without one).

        torch and jax are imported when the namespace is first used; inputs, outputs, reference, kernels and
        graph are those of the last check or run, or what the code assigned since.
        """
        if not self.namespace_ready:
            self.server.progress("importing torch and jax", 0.1)
            import jax
            import torch

            self.namespace.update(torch=torch, jax=jax)
            self.namespace_ready = True
        code = request["code"]
        tree = ast.parse(code, "<repl>", "exec")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        import linecache

        linecache.cache["<repl>"] = (len(code), None, code.splitlines(keepends=True), "<repl>")
        text = None
        with _captured() as printed:
            try:
                exec(compile(tree, "<repl>", "exec"), self.namespace)
                if last is not None:
                    value = eval(compile(ast.Expression(last.value), "<repl>", "eval"), self.namespace)
                    if value is not None:
                        self.namespace["_"] = value
                        text = repr(value)
            except BaseException as error:
                # What was printed before the error is the best hint at it.
                if printed.getvalue():
                    error.add_note("printed before: " + printed.getvalue()[-2000:]) if hasattr(
                        error, "add_note"
                    ) else None
                raise
        return {"stdout": printed.getvalue(), "repr": text}


@contextlib.contextmanager
def _captured() -> Iterator[io.StringIO]:
    """Python's own prints; what C code writes goes to the standard error of the host."""
    buffer, before = io.StringIO(), sys.stdout
    sys.stdout = buffer
    try:
        yield buffer
    finally:
        sys.stdout = before


def _error(kind: str, message: str, where: str = "", remedy: str = "") -> Exception:
    from .errors import PallascopeError

    return PallascopeError(kind, message, where, remedy)


def serve(read_fd: int, write_fd: int) -> None:
    """Serves requests from `read_fd`, answers on `write_fd`. Does not return: the process ends with the
    stream."""
    Server(read_fd, write_fd).run()


if __name__ == "__main__":
    serve(0, 1)
