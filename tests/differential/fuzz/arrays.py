"""Generated modules on NumPy: each kernel is called as the Python function that it is, without tracing or compiling.

This is quick, and tells whether the generated text means what eager does, not what XLA makes of it. What fails here is
run again on JAX, which alone counts. A function that NumPy has not is JAX's, one operator at a time.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable
from typing import Any

import jax as real_jax
import ml_dtypes
import numpy as np
import torch
from jax import numpy as real_jnp

HEAD = """import jax
import jax.numpy as jnp
import torch
from jax import lax
from jax.experimental import pallas as pl
"""
OWN_HEAD = """import torch
from fuzz.arrays import from_array, jax, jnp, lax, pl
"""
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def to_array(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(BFLOAT16).copy()
    return tensor.contiguous().numpy().copy()


def from_array(array: Any) -> torch.Tensor:
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def on_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with real_jax.enable_x64(True):
            return real_jax.tree_util.tree_map(np.asarray, function(*args, **kwargs))

    return call


def truncated_division(a: Any, b: Any) -> Any:
    if not np.issubdtype(np.asarray(a).dtype, np.integer):
        return np.divide(a, b)
    quotient = np.floor_divide(a, b)
    return quotient + ((np.remainder(a, b) != 0) & ((a < 0) != (b < 0))).astype(quotient.dtype)


def matmul(a: Any, b: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    wide = np.dtype(preferred_element_type or np.result_type(a, b))
    return np.matmul(a.astype(wide), b.astype(wide))


def torch_special(name: str) -> Callable[..., Any]:
    return lambda x: getattr(torch.special, name)(torch.from_numpy(np.ascontiguousarray(x))).numpy()


def reduce(operand: Any, start: Any, step: Callable[..., Any], axes: tuple[int, ...]) -> Any:
    """lax.reduce in the elements' order."""
    moved = np.moveaxis(operand, axes, range(len(axes)))
    total = np.full(moved.shape[len(axes) :], start)
    for element in moved.reshape(-1, *total.shape):
        total = step(total, element)
    return total


def reduce_precision(x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    return x.astype({(5, 10): np.dtype(np.float16), (8, 7): BFLOAT16}[exponent_bits, mantissa_bits]).astype(x.dtype)


class Space:
    """Functions by name: our own, NumPy's, or JAX's."""

    def __init__(self, real: Any, own: dict[str, Any], numpy: bool):
        self._real, self._own, self._numpy = real, own, numpy

    def __getattr__(self, name: str) -> Any:
        if name in self._own:
            found = self._own[name]
        else:
            jaxs = getattr(self._real, name)
            found = getattr(np, name, None) if self._numpy else None
            if isinstance(jaxs, types.ModuleType):
                found = Space(jaxs, {}, False)
            elif isinstance(found, (type, float)) or jaxs is None or isinstance(jaxs, (float, str)):
                found = jaxs if found is None else found
            elif found is None:
                found = on_jax(jaxs) if callable(jaxs) and not isinstance(jaxs, type) else jaxs
            else:
                found = either(found, on_jax(jaxs))
        setattr(self, name, found)
        return found


def either(first: Callable[..., Any], second: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return first(*args, **kwargs)
        except (TypeError, ValueError):
            return second(*args, **kwargs)

    return call


class Ref:
    """A buffer of a kernel. A read is a copy; a write must have the dtype and the shape of its place."""

    def __init__(self, array: np.ndarray):
        self.array = array
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, where: Any) -> Any:
        return self.array[where].copy()

    def __setitem__(self, where: Any, value: Any) -> None:
        value = np.asarray(value)
        if value.dtype != self.dtype or value.shape != self.array[where].shape:
            raise TypeError(f"a {value.dtype} {value.shape} is written to a {self.dtype} {self.array[where].shape}")
        self.array[where] = value


def pallas_call(kernel: Callable[..., Any], out_shape: Any, grid: Any = (1,), interpret: bool = True, name: str = "", **other: Any) -> Any:
    if grid != (1,) or other:
        raise NotImplementedError("a grid")
    many = isinstance(out_shape, (tuple, list))

    def call(*arrays: Any) -> Any:
        made = [np.frombuffer(b"\xa5" * (np.dtype(s.dtype).itemsize * int(np.prod(s.shape))), np.dtype(s.dtype)).copy().reshape(s.shape)
                if s.dtype != real_jnp.bool_ else np.zeros(s.shape, bool) for s in (out_shape if many else [out_shape])]  # fmt: skip
        with np.errstate(all="ignore"):
            kernel(*[Ref(np.asarray(a)) for a in arrays], *[Ref(m) for m in made])
        return tuple(made) if many else made[0]

    return call


jnp = Space(real_jnp, {"bfloat16": BFLOAT16.type, "matmul": matmul, "bool_": np.bool_}, True)
lax = Space(
    real_jax.lax,
    {"optimization_barrier": lambda x: x, "rsqrt": lambda x: (1 / np.sqrt(x)).astype(x.dtype), "div": truncated_division, "rem": np.fmod, "erf": torch_special("erf"),
     "erfc": torch_special("erfc"), "reduce": reduce, "reduce_precision": reduce_precision, "Precision": real_jax.lax.Precision,
     "broadcasted_iota": lambda dtype, shape, d: np.broadcast_to(np.arange(shape[d], dtype=dtype).reshape([-1 if k == d else 1 for k in range(len(shape))]), shape)},
    False,
)  # fmt: skip
jax = types.SimpleNamespace(
    jit=lambda f, **_: f, enable_x64=lambda _: contextlib.nullcontext(), block_until_ready=lambda x: x, default_backend=lambda: "cpu", ShapeDtypeStruct=real_jax.ShapeDtypeStruct,
    dlpack=types.SimpleNamespace(from_dlpack=to_array), nn=Space(real_jax.nn, {"sigmoid": lambda x: (1 / (1 + np.exp(-x))).astype(x.dtype)}, False), numpy=jnp, lax=lax,
)  # fmt: skip
pl = types.SimpleNamespace(pallas_call=pallas_call)


def on_numpy(source: str) -> str:
    """The module's text over this file instead of JAX."""
    if HEAD not in source:
        raise NotImplementedError("a module with other imports")
    return source.replace(HEAD, OWN_HEAD).replace("torch.from_dlpack(", "from_array(")
