"""Arguments as they come from PyTorch: 64 bits, autograd, layouts and alignment of memory, and layouts that a module was not
made for. Each rule was a silent wrong answer once: where it is deterministic, a mutation test takes the rule out of the
generated source and finds the answer wrong."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import pytest
import torch
import torch.nn.functional as F
from modules import check, module_of, modes

import pallascope
from differential import DTYPES, compare, layouts, plain, run
from pallascope.execute import load_module

# ---------------------------------------------------------------------------------------------------------- x64


@modes
def test_64_bit_values_survive_and_the_users_configuration_stays(mode):
    def f(i, d):
        return i + 2**40, d * (1 + 2.0**-40), i.to(torch.float64) / 3, torch.arange(3) + 2**41

    i, d = torch.tensor([2**40, -(2**62), 3]), torch.tensor([1.0, 1e300, 2.0], dtype=torch.float64)
    assert jax.config.jax_enable_x64 is False
    lowered = pallascope.lower(f, i, d)
    for _ in range(2):
        got = lowered.call(i, d, mode=mode)
        assert not (difference := compare(got, f(i, d), {"rtol": 0, "atol": 0})), difference
        assert jax.config.jax_enable_x64 is False
        assert jnp.array([1.0]).dtype == jnp.float32 and jnp.array([1]).dtype == jnp.int32
    x = torch.tensor([2**40])
    broken = module_of(lambda t: t + 1, x, replace=[("jax.enable_x64(True)", "jax.enable_x64(False)")])
    with pytest.raises(ValueError, match="int64"):  # the ref would be 64 bits wide, the value 32
        broken.call([x], mode)


def test_import_and_call_in_another_thread():
    """The x64 context is a thread's own: a module that one thread loaded is right in another."""
    x = torch.tensor([2**40])
    lowered = pallascope.lower(lambda t: t * 2, x)
    lowered.module()
    found = []
    thread = threading.Thread(target=lambda: found.append(lowered.call(x)))
    thread.start()
    thread.join()
    assert found[0].item() == 2**41


def test_a_user_who_enabled_x64_keeps_it():
    x = torch.randn(4)
    lowered = pallascope.lower(torch.sin, x)
    with jax.enable_x64(True):
        assert lowered.call(x).dtype == torch.float32
        assert jnp.array([1.0]).dtype == jnp.float64


# ---------------------------------------------------------------------------------- tensors as they come and go


@modes
def test_tensors_that_require_grad(mode):
    x, w = torch.randn(3, 4, requires_grad=True), torch.nn.Parameter(torch.randn(4))
    lowered = pallascope.lower(lambda a, b: (a * b).t(), x, w)
    got = lowered.call(x, w, mode=mode)
    assert not got.requires_grad and not compare(got, (x * w).t().detach())
    broken = load_module(lowered.source.replace("tensor = tensor.detach()", "pass"), "edges")
    with pytest.raises(Exception, match="require"):
        broken.call([x, w], mode)


@modes
def test_results_may_be_written_to_with_autograd(mode):
    """A view that is made without autograd may not be written to with it: results are none."""
    x, w = torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)
    for result in pallascope.lower(lambda t: (t.sin(), t.cos().t(), t.exp()[1:, ::2]), x).call(x, mode=mode):
        before = result.clone()
        result.mul_(w[: result.shape[0], : result.shape[1]])
        assert result.requires_grad and torch.equal(result.detach(), before * w.detach()[: result.shape[0], : result.shape[1]])


@modes
def test_negated_and_conjugated_views(mode):
    imaginary = torch.randn(8, dtype=torch.complex64).conj().imag
    assert imaginary.is_neg() and imaginary.stride() == (2,)
    dense = torch._neg_view(torch.randn(6, 6))
    for x in (imaginary, imaginary[3:], torch.randn(4, 5, dtype=torch.complex128).conj().imag.t(), dense, dense.t()):
        assert x.is_neg()
        lowered = pallascope.lower(lambda t: t + 1, x)
        assert not (difference := compare(lowered.call(x, mode=mode), x + 1)), difference


@modes
def test_inference_tensors(mode):
    with torch.inference_mode():
        x = torch.randn(5)
        want = x.sin()
    lowered = pallascope.lower(torch.sin, torch.randn(5))
    assert torch.equal(lowered.call(torch.ones(5), mode=mode), lowered.call(torch.ones(5), mode=mode))
    torch.testing.assert_close(lowered.call(x, mode=mode), want.clone())
    with torch.inference_mode():
        torch.testing.assert_close(lowered.call(x, mode=mode), want)


@modes
def test_parameters_of_a_module(mode):
    model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.LayerNorm(6))
    x = torch.randn(6, 6)
    lowered = pallascope.lower(model, x)
    torch.testing.assert_close(lowered.call(x, mode=mode), model(x).detach())
    with torch.no_grad():
        model[0].weight.mul_(3)  # parameters are arguments, not constants
    torch.testing.assert_close(lowered.call(x, mode=mode), model(x).detach())


LAYOUTS = layouts(lambda n: plain(torch.float32, n))


@modes
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_dlpack_refuses_or_copies(layout, mode):
    """Expanded, strided, offset, transposed, size-1, rank-0 and empty arguments, in every dtype that dlpack has."""
    index = list(LAYOUTS).index(layout)
    dtypes = {DTYPES[index % len(DTYPES)], torch.bool, torch.bfloat16}
    args = tuple(layouts(lambda n, d=d: plain(d, n))[layout] for d in sorted(dtypes, key=str))
    assert args[0].stride() == LAYOUTS[layout].stride()

    def f(*tensors):
        return [t.clone() for t in tensors] + [torch.cat([t.reshape(-1), t.reshape(-1)]) for t in tensors]

    assert not (difference := run(f, args, (mode,))), difference


@modes
def test_memory_that_is_not_aligned(mode):
    """JAX takes over only memory at a multiple of 64 bytes; each offset within a line is right."""
    storage = torch.arange(64.0)
    lowered = pallascope.lower(lambda t: t * 2, storage[:8])
    for offset in range(17):
        x = storage[offset : offset + 8]
        assert torch.equal(lowered.call(x, mode=mode), x * 2)


@modes
def test_jax_gets_only_what_it_takes_over(mode, monkeypatch):
    """Each tensor that goes to JAX is dense, detached and aligned: nothing is left to its silent copies."""
    given = []
    original = jax.dlpack.from_dlpack

    def from_dlpack(tensor):
        given.append(tensor)
        return original(tensor)

    monkeypatch.setattr(jax.dlpack, "from_dlpack", from_dlpack)
    for x in LAYOUTS.values():
        if x.numel():
            assert not (difference := run(lambda t: t + 1, (x,), (mode,))), difference
    assert len(given) == sum(x.numel() > 0 for x in LAYOUTS.values())
    assert all(t.data_ptr() % 64 == 0 and t.is_contiguous() and not t.requires_grad for t in given)


def test_strides_of_a_torch_result_are_made_right():
    module = module_of(torch.sin, torch.randn(4))
    x = torch.arange(6.0).reshape(2, 3)
    assert module._restride(x, (3, 1)) is x
    for strides in ((1, 2), (6, 2), (5, 1)):
        made = module._restride(x, strides)
        assert made.stride() == strides and torch.equal(made, x)
    expanded = module._restride(x[:1].expand(4, 3).clone(), (0, 1))
    assert expanded.stride() == (0, 1) and torch.equal(expanded, x[:1].expand(4, 3))
    one = module._restride(x[:1], (77, 1))
    assert one.stride() == (77, 1) and one.data_ptr() == x.data_ptr()


def test_aligned_memory_is_not_copied():
    x = torch.arange(32.0)
    module = module_of(lambda t: t * 2, x)
    with jax.enable_x64(True):
        array = module._to_jax(x, (32,), (1,))
        moved = module._to_jax(x[1:], (31,), (1,))
    assert x.data_ptr() % 64 == 0 and array.unsafe_buffer_pointer() == x.data_ptr()
    assert moved.unsafe_buffer_pointer() not in (x.data_ptr(), x[1:].data_ptr())


@modes
def test_nothing_of_size_zero_is_launched(mode, monkeypatch):
    x, full = torch.empty(0, 5), torch.randn(3)

    def f(t, u):
        return t.sin() + 1, t.sum(1), torch.cat([t, t], 1), t.sum(), t.t(), u[:0] * 2

    lowered = pallascope.lower(f, x, full)
    launched = []
    original = lowered.module().pl.pallas_call

    def pallas_call(kernel, **kwargs):
        launched.append(kwargs["out_shape"])
        return original(kernel, **kwargs)

    monkeypatch.setattr(lowered.module().pl, "pallas_call", pallas_call)
    got = lowered.call(x, full, mode=mode)
    assert not (difference := compare(got, f(x, full))), difference
    assert len(launched) == 1, "only the sum over nothing makes an element"
    assert all(0 not in shape.shape for shapes in launched for shape in shapes)


@modes
def test_a_call_without_arguments(mode):
    check(lambda: (torch.arange(5), torch.zeros(0), torch.ones(())))
    lowered = pallascope.lower(lambda: torch.arange(6).reshape(2, 3).t())
    assert lowered.call(mode=mode).stride() == (1, 3)


# ------------------------------------------------------------------------------------------------- stated layouts


@modes
@pytest.mark.parametrize(
    "argument, came",
    [
        (lambda: torch.randn(4, 4).t(), "torch.float32 sizes (4, 4) strides (1, 4)"),
        (lambda: torch.randn(4, 8)[:, ::2], "torch.float32 sizes (4, 4) strides (8, 2)"),
        (lambda: torch.randn(4).expand(4, 4), "torch.float32 sizes (4, 4) strides (0, 1)"),
        (lambda: torch.randn(4, 4, dtype=torch.float64), "torch.float64 sizes (4, 4) strides (4, 1)"),
        (lambda: torch.ones(4, 4, dtype=torch.int32), "torch.int32 sizes (4, 4) strides (4, 1)"),
        (lambda: torch.randn(4, 5), "torch.float32 sizes (4, 5) strides (5, 1)"),
        (lambda: torch.randn(16), "torch.float32 sizes (16,) strides (1,)"),
        (lambda: torch.randn(0, 4), "torch.float32 sizes (0, 4) strides (4, 1)"),
    ],
)
def test_another_layout_is_an_error(argument, came, mode):
    good = torch.randn(4, 4)
    lowered = pallascope.lower(lambda first, second: first + second.t(), good, good)
    expected = "second: the kernel was generated for torch.float32 sizes (4, 4) strides (4, 1)"
    with pytest.raises(AssertionError) as caught:
        lowered.module().call([good, argument()], mode)
    assert expected in str(caught.value) and f"{came} came" in str(caught.value)
    # Without the rule the answer is wrong, or the failure is somebody else's.
    broken = load_module(lowered.source.replace("    if not same:", "    if False:"), "edges")
    if argument().shape == good.shape and argument().dtype == good.dtype:
        try:
            got = broken.call([good, x := argument()], mode)[0]
        except RuntimeError as error:
            assert "out of bounds" in str(error)  # as_strided beyond the end of an expanded tensor
        else:
            assert compare(got, good + x.t())


def test_one_tensor_given_twice_is_two_arguments():
    x, y = torch.randn(3, 3), torch.randn(3, 3)
    lowered = pallascope.lower(lambda a, b, c: (a * b, b - c.t()), x, x, x)
    assert not compare(lowered.call(x, y, x + 1), (x * y, y - (x + 1).t()))
    x.requires_grad_()
    assert not compare(pallascope.lower(torch.sub, x, x).call(x, y), (x - y).detach())


def test_a_kernel_names_itself():
    x = torch.randn(3, 5)
    module = module_of(lambda a, b: a * b, x, x)
    name = next(n for n in vars(module) if n.endswith("_main"))
    with pytest.raises(AssertionError, match=rf"in_ptr1 of {name.removesuffix('_main')}: .*strides \(5, 1\), but .* strides \(1, 3\) came"):
        getattr(module, name)(x, torch.randn(5, 3).t(), torch.empty(3, 5))


def test_strides_of_extent_one_do_not_matter():
    x = torch.randn(1, 5)
    lowered = pallascope.lower(lambda t: t + 1, x)
    odd = torch.as_strided(torch.arange(5.0), (1, 5), (77, 1))
    assert torch.equal(lowered.call(odd), odd + 1)
    with pytest.raises(TypeError, match="1 tensors are needed, 2 came"):
        lowered.module().call([x, x])
    with pytest.raises(ValueError, match="steady"):
        lowered.module().call([x], "fast")


@modes
@pytest.mark.parametrize("make", [
    lambda x: x.t() * 2, lambda x: x.permute(1, 0).contiguous().t() + 1, lambda x: x.t().sin().clone(),
    lambda x: torch.empty_like(x.t()).copy_(x.t()), lambda x: x.sum(0, keepdim=True).expand(4, 6) * 1,
    lambda x: x.view(1, 4, 3, 2).permute(0, 3, 1, 2) * 2, lambda x: x.unsqueeze(0).transpose(0, 1).cos(),
    lambda x: (x.view(2, 2, 6).transpose(0, 2) + 1), lambda x: x.t().reshape(3, 8), lambda x: x.sin().expand(2, 4, 6),
    lambda x: torch.softmax(x.t(), 0), lambda x: x.view(1, 4, 3, 2).contiguous(memory_format=torch.channels_last) + 1,
    lambda x: x.t() @ x, lambda x: F.layer_norm(x.t(), (4,)), lambda x: x.t().to(torch.float64),
])  # fmt: skip
def test_strides_of_results(make, mode):
    assert not (difference := run(make, (torch.randn(4, 6),), (mode,))), difference
