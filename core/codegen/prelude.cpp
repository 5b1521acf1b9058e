#include "core/codegen/prelude.h"

namespace pallascope::codegen {

std::string_view prelude() {
  return R"PY(import jax
import jax.numpy as jnp
import torch
from jax import lax
from jax.experimental import pallas as pl

TORCH_TO_JAX = {
    torch.float32: jnp.float32,
    torch.float64: jnp.float64,
    torch.float16: jnp.float16,
    torch.bfloat16: jnp.bfloat16,
    torch.int64: jnp.int64,
    torch.int32: jnp.int32,
    torch.int16: jnp.int16,
    torch.int8: jnp.int8,
    torch.uint8: jnp.uint8,
    torch.bool: jnp.bool_,
}
# Pallas kernels are interpreted where JAX has only a CPU, and compiled elsewhere.
INTERPRET = jax.default_backend() == "cpu"


def _divisor(value, shape):
    """A divisor that XLA cannot see: it would divide by a broadcast through its reciprocal, and find 49 / 49 below 1."""
    return lax.optimization_barrier(jnp.broadcast_to(value, shape)) if INTERPRET else value


def _expect(name, tensor, dtype, sizes, strides):
    """Raises unless `tensor` is laid out as the index analysis assumed (axes of extent 1 aside)."""
    came = (tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()))
    same = came[:2] == (dtype, sizes) and (
        tensor.numel() == 0 or all(n == 1 or a == b for n, a, b in zip(sizes, strides, came[2]))
    )
    if not same:
        raise AssertionError(
            f"{name}: the kernel was generated for {dtype} sizes {sizes} strides {strides}, "
            f"but {came[0]} sizes {came[1]} strides {came[2]} came"
        )


def _storage(tensor, dims, strides):
    """The tensor's elements as a dense array of `dims`: a view if they lie so, else a copy."""
    tensor = tensor.detach()
    if tensor.numel() == 0:
        return tensor.reshape(dims)
    # The strides are the tensor's own, so they come before the copies that the conjugate and negative bits need.
    tensor = torch.as_strided(tensor, dims, strides, tensor.storage_offset())
    return tensor.resolve_conj().resolve_neg().contiguous()


def _to_jax(tensor, dims, strides):
    """A JAX array over the tensor's memory. JAX copies silently what is not aligned to 64 bytes: copy it here."""
    dense = _storage(tensor, dims, strides)
    if dense.numel() == 0:
        return jnp.zeros(dims, TORCH_TO_JAX[tensor.dtype])
    if dense.data_ptr() % 64:
        dense = dense.clone()
    return jax.dlpack.from_dlpack(dense)


def _to_torch(array, taken):
    """A tensor over the array's memory, or a copy if that memory is an input's or another result's (`taken`)."""
    tensor = torch.from_dlpack(array)
    if tensor.numel() and tensor.data_ptr() in taken:
        tensor = tensor.clone()
    taken.add(tensor.data_ptr())
    return tensor


def _view(tensor, sizes, strides, offset):
    """A view over a dense buffer (or an input's own memory), counted from its first element."""
    if tensor.numel() == 0 or 0 in sizes:
        return torch.empty_strided(sizes, strides, dtype=tensor.dtype, device=tensor.device)
    # Detached: autograd lets nobody write to a view that was made without it.
    return torch.as_strided(tensor, sizes, strides, tensor.storage_offset() + offset).detach()


def _restride(tensor, strides):
    """The tensor with these strides, copied only if they differ (axes of extent 1 aside)."""
    if all(n <= 1 or a == b for n, a, b in zip(tensor.shape, tensor.stride(), strides)):
        return tensor if tensor.stride() == strides else _view(tensor, tensor.shape, strides, 0)
    made = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    whole = made
    for k, (n, s) in enumerate(zip(tensor.shape, strides)):
        if n > 1 and s == 0:  # an expanded axis holds one element of it
            made, tensor = made.narrow(k, 0, 1), tensor.narrow(k, 0, 1)
    made.copy_(tensor)
    return whole


def _in_memory(tensor, strides, offset):
    """The tensor in memory of its own with these strides from this place on: what as_strided counts by."""
    reach = sum((n - 1) * s for n, s in zip(tensor.shape, strides)) if tensor.numel() else -1
    made = torch.zeros(offset + reach + 1, dtype=tensor.dtype, device=tensor.device)
    whole = made = torch.as_strided(made, tensor.shape, strides, offset)
    for k, (n, s) in enumerate(zip(tensor.shape, strides)):
        if n > 1 and s == 0:
            made, tensor = made.narrow(k, 0, 1), tensor.narrow(k, 0, 1)
    made.copy_(tensor)
    return whole


def _check(flag, error, message):
    """Raises PyTorch's error for a value that a kernel found illegal: a kernel itself cannot raise."""
    if not bool(jnp.all(flag == 1)):
        raise error(message)
)PY";
}

std::string_view self_check() {
  return R"PY(

def _make_inputs(seed):
    generator = torch.Generator().manual_seed(seed)
    made = []
    for spec in INPUTS:
        dtype = getattr(torch, spec["dtype"])
        extent = 1 + sum((n - 1) * s for n, s in zip(spec["sizes"], spec["strides"])) if 0 not in spec["sizes"] else 0
        if dtype == torch.bool:
            flat = torch.rand(extent, generator=generator) > 0.5
        elif dtype.is_floating_point or dtype.is_complex:
            flat = torch.randn(extent, generator=generator, dtype=torch.float64).to(dtype)
        else:
            low, high = spec.get("range", (0, 9))
            flat = torch.randint(low, high + 1, (extent,), generator=generator).to(dtype)
        made.append(torch.as_strided(flat, spec["sizes"], spec["strides"]) if extent else flat.reshape(spec["sizes"]))
    return made


def _clone(tensor):
    extent = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
    if extent == 0:
        return tensor.clone()
    flat = torch.as_strided(tensor, (extent,), (1,)).clone()
    return torch.as_strided(flat, tensor.shape, tensor.stride())


def _self_check(seed=0):
    inputs = _make_inputs(seed)
    expected_arguments = [_clone(t) for t in inputs]
    expected = reference(expected_arguments)
    failed = False
    for mode in ("debug", "steady"):
        arguments = [_clone(t) for t in inputs]
        results = call(arguments, mode)
        pairs = [(f"output {k}", e, r) for k, (e, r) in enumerate(zip(expected, results)) if e is not None]
        pairs += [(f"argument {k}", e, r) for k, (e, r) in enumerate(zip(expected_arguments, arguments))]
        for name, want, got in pairs:
            try:
                torch.testing.assert_close(got, want, equal_nan=True)
            except AssertionError as error:
                failed = True
                print(f"{mode}: {name} differs: {error}")
        print(f"{mode}: {'differs from' if failed else 'agrees with'} PyTorch on {len(pairs)} tensors")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(_self_check())
)PY";
}

}  // namespace pallascope::codegen
