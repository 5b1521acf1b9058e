"""`pallascope.trace`: a function or a module as a Program, through torch.export.

The graph is the one that export records: in-place operators and composite operators stay, because the
lowering (C++) handles both and shows what it did.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import itertools
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from . import fx
from .dtypes import torch_dtype
from .errors import PallascopeError

_file_numbers = itertools.count()


class FunctionModule(torch.nn.Module):
    """A function as a module, for torch.export, whose inputs take the names of the function's parameters."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()

        def forward(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        with contextlib.suppress(TypeError, ValueError):  # a builtin has no signature: args_0, args_1, ...
            forward.__signature__ = inspect.signature(function)
        self.forward = forward


class Program:
    """A traced program: its JSON text, and the tensors that came with it.

    tensors      input target -> tensor, for parameters, buffers and constants
    samples      for each graph, the example values of its user inputs by input name
    conversions  for each graph, the fx.Conversion (None for a program that was read from text)
    """

    def __init__(
        self,
        data: dict[str, Any] | str,
        tensors: dict[str, torch.Tensor] | None = None,
        conversions: Sequence[fx.Conversion | None] | None = None,
        samples: Sequence[dict[str, torch.Tensor]] | None = None,
        out_spec: Any = None,
    ):
        self.data: dict[str, Any] = json.loads(data) if isinstance(data, str) else data
        if self.data.get("format") != fx.FORMAT:
            raise PallascopeError(
                "malformed_graph",
                "this JSON is no Pallascope trace",
                "",
                f'its "format" would be "{fx.FORMAT}"',
            )
        if self.data.get("version") != fx.VERSION:
            raise PallascopeError(
                "schema_version",
                f"the trace has version {self.data.get('version')}",
                "",
                f"this Pallascope reads version {fx.VERSION}",
            )
        self.tensors = dict(tensors or {})
        count = len(self.data["graphs"])
        self.conversions = list(conversions) if conversions else [None] * count
        self.samples = list(samples) if samples else [{} for _ in range(count)]
        self.out_spec = out_spec

    @property
    def name(self) -> str:
        return self.data.get("name", "")

    def __len__(self) -> int:
        return len(self.data["graphs"])

    def graph(self, index: int = 0) -> dict[str, Any]:
        """The GRAPH object `index`. Raises PallascopeError (not_found) outside 0..len-1."""
        if not 0 <= index < len(self):
            raise PallascopeError(
                "not_found",
                f"there is no graph {index}",
                self.name,
                f"the program has the graphs 0 to {len(self) - 1}",
            )
        return self.data["graphs"][index]

    def to_json(self) -> str:
        """The text that core/trace reads."""
        return fx.dumps(self.data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the JSON text. The tensors are not in it; a bundle keeps them."""
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.to_json())

    def __repr__(self) -> str:
        nodes = ", ".join(f"{g['name']}: {len(g['nodes'])} nodes" for g in self.data["graphs"])
        return f"<pallascope program '{self.name}' ({nodes})>"


def trace(
    fn_or_module: Callable[..., Any] | torch.nn.Module, *args: Any, name: str | None = None, **kwargs: Any
) -> Program:
    """Traces a function or module on example arguments (tensors, numbers, or nests of these).

    Raises PallascopeError: unsupported for what the format cannot hold, symbolic_size for sizes that depend
    on data, host_error when the function cannot be exported at all (the message is torch's).
    """
    if isinstance(fn_or_module, torch.nn.Module):
        module: torch.nn.Module = fn_or_module
        name = name or type(fn_or_module).__name__
    elif callable(fn_or_module):
        module = FunctionModule(fn_or_module)
        module.train(False)
        name = name or getattr(fn_or_module, "__name__", "function")
    else:
        raise PallascopeError(
            "invalid_argument",
            f"a {type(fn_or_module).__name__} cannot be traced",
            "",
            "give a function or a torch.nn.Module",
        )
    args, kwargs = _distinct((args, kwargs))
    try:
        with _user_frames():
            exported = torch.export.export(module, args, kwargs or None, strict=False)
    except PallascopeError:
        raise
    except Exception as error:
        raise PallascopeError(
            "host_error",
            f"torch.export cannot trace '{name}': {_first_line(error)}",
            _where_in(error),
            _trace_remedy(error),
        ) from error
    return from_exported(exported, name)


def _trace_remedy(error: BaseException) -> str:
    kind = type(error).__name__
    if kind == "UnsupportedFakeTensorException":
        return "use dense tensors of an unquantized dtype"
    if isinstance(error, (IndexError, ValueError, RuntimeError)) and type(error).__module__ == "builtins":
        return "correct the call: PyTorch refuses these arguments, with or without Pallascope"
    return "torch.export needs a function of tensors without control flow on their values"


def _distinct(tree: Any) -> Any:
    """The same tensors, none of them twice: export knows a tensor by its identity, and `trace(torch.mul, x, x)` would
    record the square of one input."""
    seen: set[int] = set()

    def one(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            return tensor
        return tensor.detach().requires_grad_(tensor.requires_grad)

    return torch.utils._pytree.tree_map_only(torch.Tensor, one, tree)


@contextlib.contextmanager
def _user_frames() -> Iterator[None]:
    """Lets export record every frame of the user's code inside.

    Export by itself keeps the frames of functions called `forward` alone: a traced function would have no
    line at all, and a helper's lines would be lost. Where torch has no such filter any more, its own choice
    stands.
    """
    from torch.fx.proxy import TracerBase

    before = getattr(TracerBase, "_filter_traceback_frames", None)
    if before is None:
        yield
        return

    def keep(self: Any, summary: traceback.StackSummary) -> traceback.StackSummary:
        first = next((i for i, f in enumerate(summary) if f.name == "forward"), len(summary))
        frames = [f for f in summary[first:] if f.name == "forward" or not fx.is_torch_file(f.filename)]
        return traceback.StackSummary.from_list([f for f in frames if not f.filename.startswith(fx.OWN_DIR)])

    TracerBase._filter_traceback_frames = keep
    try:
        yield
    finally:
        TracerBase._filter_traceback_frames = before


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip() if lines else ''}"


def _where_in(error: BaseException) -> str:
    """The innermost line outside torch and outside this package in an exception's traceback."""
    frames = inspect.getinnerframes(error.__traceback__, 1) if error.__traceback__ else []
    for frame in reversed(frames):
        if (
            not fx.is_torch_file(frame.filename)
            and not frame.filename.startswith(fx.OWN_DIR)
            and not frame.filename.startswith("<")
        ):
            return f"{frame.filename}:{frame.lineno}"
    return ""


def from_exported(exported: torch.export.ExportedProgram, name: str = "program") -> Program:
    """A torch.export program as a Program of one graph, with its parameters, buffers, constants and example
    inputs."""
    from torch.export.graph_signature import InputKind, OutputKind

    signature = exported.graph_signature
    kinds = {
        InputKind.PARAMETER: "parameter",
        InputKind.BUFFER: "buffer",
        InputKind.CONSTANT_TENSOR: "constant",
        InputKind.USER_INPUT: "user_input",
    }
    by_name: dict[str, tuple[str, str]] = {}
    input_names: dict[str, str] = {}  # target -> placeholder, for mutations
    tensors: dict[str, torch.Tensor] = {}
    user_inputs: list[str] = []
    for spec in signature.input_specs:
        if spec.kind not in kinds:
            raise PallascopeError(
                "unsupported",
                f"the exported program has an input of the kind {spec.kind.name}",
                spec.arg.name,
                "export a model of tensors and numbers",
            )
        placeholder = spec.arg.name
        if spec.kind is InputKind.USER_INPUT:
            by_name[placeholder] = ("user_input", placeholder)
            user_inputs.append(placeholder)
            continue
        by_name[placeholder] = (kinds[spec.kind], spec.target)
        input_names[spec.target] = placeholder
        value = exported.state_dict.get(spec.target)
        value = exported.constants.get(spec.target) if value is None else value
        if isinstance(value, torch.Tensor):
            tensors[spec.target] = value.detach()
    mutations: dict[int, str] = {}
    for index, spec in enumerate(signature.output_specs):
        if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
            mutations[index] = input_names[spec.target]
        elif spec.kind is OutputKind.USER_INPUT_MUTATION:
            mutations[index] = spec.target
        elif spec.kind is not OutputKind.USER_OUTPUT:
            raise PallascopeError(
                "unsupported",
                f"the exported program has an output of the kind {spec.kind.name}",
                name,
                "export a forward pass",
            )
    conversion = fx.convert(exported.graph_module, name, "export", lambda node: by_name[node.name], mutations)
    tensors.update(conversion.constants)
    samples = {}
    if exported.example_inputs is not None:
        leaves = torch.utils._pytree.tree_leaves(exported.example_inputs)
        pairs = zip(user_inputs, leaves, strict=True)
        samples = {n: v.detach() for n, v in pairs if isinstance(v, torch.Tensor)}
    data = fx.program_json(name, [conversion.graph])
    return Program(data, tensors, [conversion], [samples], exported.call_spec.out_spec)


# ------------------------------------------------------------------------------------------------- from a
# file

_SPEC = re.compile(r"^([a-z0-9]+)\[\s*([0-9,\s]*)\]$")


def parse_spec(text: str) -> tuple[torch.dtype, tuple[int, ...]]:
    """`f32[8,128]` as (torch.float32, (8, 128)); `bool[]` is rank 0. Raises PallascopeError (usage)."""
    match = _SPEC.match(text.strip())
    sizes = [s.strip() for s in match[2].split(",")] if match and match[2].strip() else []
    if not match or not all(s.isdigit() for s in sizes):
        raise PallascopeError(
            "usage", f"'{text}' is no tensor", "", "write a dtype and sizes, as in f32[8,128] or i64[]"
        )
    return torch_dtype(match[1], text), tuple(int(s) for s in sizes)


def _sample(spec: str, position: int) -> torch.Tensor:
    """A tensor to trace with: export looks at its meta, and a few functions look at its values too."""
    dtype, sizes = parse_spec(spec)
    if dtype.is_floating_point or dtype.is_complex:
        generator = torch.Generator().manual_seed(position)
        return torch.randn(
            sizes, generator=generator, dtype=torch.complex64 if dtype.is_complex else torch.float32
        ).to(dtype)
    return torch.zeros(sizes, dtype=dtype)


@contextlib.contextmanager
def _importing_from(folder: str) -> Iterator[None]:
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def load_file(file: str | os.PathLike[str]) -> Any:
    """Imports a Python file under a fresh module name, so that an edited file is read again.

    Raises PallascopeError: not_found, not_readable, or host_error with the line that raised.
    """
    path = os.path.abspath(os.path.expanduser(os.fspath(file)))
    if not os.path.exists(path):
        raise PallascopeError("not_found", f"there is no file '{file}'", path)
    if not os.path.isfile(path):
        raise PallascopeError("not_readable", f"'{file}' is no file", path, "give a Python file")
    name = f"pallascope_user_{next(_file_numbers)}"
    import linecache
    from importlib.machinery import SourceFileLoader

    # The loader is named, so that a file without the ending .py works as well.
    spec = importlib.util.spec_from_file_location(name, path, loader=SourceFileLoader(name, path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up there
    linecache.checkcache(path)
    try:
        with _importing_from(os.path.dirname(path)):
            # A file edited within one second keeps its mtime and size at times: never trust a .pyc here.
            exec(compile(spec.loader.get_data(path), path, "exec"), module.__dict__)
    except BaseException as error:
        sys.modules.pop(name, None)
        if isinstance(error, (KeyboardInterrupt, MemoryError)):
            raise
        where = f"{path}:{error.lineno}" if isinstance(error, SyntaxError) else _where_in(error) or path
        raise PallascopeError(
            "host_error", f"importing '{file}' raised {_first_line(error)}", where
        ) from error
    return module


def trace_file(file: str | os.PathLike[str], function: str, specs: Sequence[str] = ()) -> Program:
    """Traces `function` of a Python file on inputs such as `f32[8,128]`.

    function  a function, a module instance, or a torch.nn.Module class (made without arguments, in eval
              mode); a dotted name reaches into a class or a namespace
    specs     one a positional argument; without any, the file's INPUTS (tensors or specs) or example_inputs()
              is used, and a function of no arguments is called with none

    Raises PallascopeError: not_found, usage, and what `load_file` and `trace` raise.
    """
    module = load_file(file)
    target: Any = module
    for part in function.split("."):
        if not hasattr(target, part):
            names = [
                n
                for n, v in vars(module).items()
                if callable(v) and not n.startswith("_") and getattr(v, "__module__", None) == module.__name__
            ]
            raise PallascopeError(
                "not_found",
                f"there is no '{function}' in '{file}'",
                os.fspath(file),
                "it defines " + ", ".join(names) if names else "it defines no function",
            )
        target = getattr(target, part)
    with _importing_from(os.path.dirname(os.path.abspath(os.path.expanduser(os.fspath(file))))):
        if isinstance(target, type) and issubclass(target, torch.nn.Module):
            try:
                target = target().eval()
            except Exception as error:
                raise PallascopeError(
                    "host_error",
                    f"{function}() raised {_first_line(error)}",
                    _where_in(error),
                    "a class is made without arguments; define an instance to trace",
                ) from error
        if not callable(target):
            raise PallascopeError(
                "usage",
                f"'{function}' in '{file}' is a {type(target).__name__}",
                os.fspath(file),
                "name a function, a torch.nn.Module or a class of one",
            )
        if specs:
            inputs: list[Any] = [_sample(s, i) for i, s in enumerate(specs)]
        elif hasattr(module, "INPUTS"):
            inputs = list(module.INPUTS) if isinstance(module.INPUTS, (list, tuple)) else [module.INPUTS]
            inputs = [_sample(v, i) if isinstance(v, str) else v for i, v in enumerate(inputs)]
        elif callable(getattr(module, "example_inputs", None)):
            made = module.example_inputs()
            inputs = list(made) if isinstance(made, (list, tuple)) else [made]
        else:
            inputs = []
        _check_arity(target, function, inputs)
        return trace(target, *inputs, name=function)


def _check_arity(target: Any, function: str, inputs: Sequence[Any]) -> None:
    try:
        signature = inspect.signature(target.forward if isinstance(target, torch.nn.Module) else target)
    except (TypeError, ValueError):
        return  # a builtin without a signature: torch.export will say what is wrong
    try:
        signature.bind(*inputs)
    except TypeError as error:
        raise PallascopeError(
            "usage",
            f"{function}{signature} cannot be called with {len(inputs)} inputs ({error})",
            "",
            "give one spec an argument, as in f32[8,128], or define INPUTS in the file",
        ) from error
