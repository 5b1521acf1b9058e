"""Pallascope: traced PyTorch graphs as JAX Pallas kernels.

    import pallascope, torch
    torch.compile(model, backend="pallascope")(x)       importing registers the backend
    pallascope.compile_log()                            what each compile did
    pallascope.lower(f, x).source                       the generated module

Importing costs next to nothing: torch and JAX are loaded when something needs them (a host says hello before
it loads torch), so the names below are resolved at first use, and the backend is registered when dynamo is
imported.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from typing import Any

from .errors import PallascopeError

__version__ = "0.1.0"
__all__ = [
    "PallascopeError",
    "Lowered",
    "Program",
    "compile_log",
    "load",
    "lower",
    "reset_log",
    "trace",
    "trace_file",
    "__version__",
]

_LAZY = {
    "trace": "tracing",
    "trace_file": "tracing",
    "Program": "tracing",
    "lower": "lowered",
    "Lowered": "lowered",
    "load": "lowered",
    "compile_log": "log",
    "reset_log": "log",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'pallascope' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


def _backend(gm: Any, example_inputs: Any, **kwargs: Any) -> Any:
    from .backend import compile_graph

    return compile_graph(gm, example_inputs, **kwargs)


_REGISTRY = "torch._dynamo.backends.registry"


class _RegisterWithDynamo(importlib.abc.MetaPathFinder):
    """Registers the backend as soon as dynamo's registry has been imported, and then leaves sys.meta_path."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _REGISTRY:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            _register(module)

        spec.loader.exec_module = exec_module
        return spec


def _register(registry: Any) -> None:
    if "pallascope" not in registry._COMPILER_FNS:
        registry.register_backend(_backend, name="pallascope")


if _REGISTRY in sys.modules:
    _register(sys.modules[_REGISTRY])
else:
    sys.meta_path.insert(0, _RegisterWithDynamo())
