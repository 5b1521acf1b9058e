"""The rules at the edge between PyTorch and JAX. Each was a silent wrong answer once: where it is deterministic, a
mutation test takes the rule out of the generated source and finds the answer wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import pytest
import torch
import torch.nn.functional as F

import pallascope
from differential import DTYPES, MODES, compare, layouts, like, plain, run, values
from pallascope.execute import load_module

modes = pytest.mark.parametrize("mode", MODES)


def module_of(function, *args, **replacements):
    """The generated module, with some text replaced; the text must be there."""
    source = pallascope.lower(function, *args).source
    for old, new in replacements.get("replace", ()):
        assert old in source, old
        source = source.replace(old, new)
    return load_module(source, "edges")


def check(function, *args):
    assert not (difference := run(function, args)), difference


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


# --------------------------------------------------------------------------------------------- order of memory


@modes
def test_writing_to_an_input_after_the_call(mode):
    """A JAX call returns before it has read its inputs; `call` does not."""
    x = torch.ones(1 << 21)
    lowered = pallascope.lower(lambda t: t * 3 + 1, x)
    lowered.call(x, mode=mode)
    for k in range(25):
        x.fill_(float(k))
        got = lowered.call(x, mode=mode)
        x.fill_(-1.0)
        assert bool((got == 3 * k + 1).all()), k


@modes
def test_every_program_is_waited_for(mode, monkeypatch):
    """`block_until_ready` sees the results of each program before torch reads or writes anything."""
    x = torch.randn(64, 64)

    def f(t):
        a = torch.linalg.matrix_exp(t.sin() / 64)  # torch's own: it cuts the program
        return (a.cos() @ t).tanh(), torch.linalg.matrix_exp(a / 64)

    lowered = pallascope.lower(f, x)
    assert lowered.log["torch"], "the case needs a torch call between two programs"
    module = lowered.module()
    running, waited = [], []
    for name in [n for n in vars(module) if n.endswith("_jit")]:

        def wrapped(*args, original=getattr(module, name)):
            assert len(running) == len(waited), "the program before this one was not waited for"
            results = original(*args)
            running.append(results)
            return results

        monkeypatch.setattr(module, name, wrapped)
    original = jax.block_until_ready

    def block(results):
        waited.append(results)
        return original(results)

    monkeypatch.setattr(jax, "block_until_ready", block)
    got = lowered.call(x, mode=mode)
    assert len(running) == len(waited) >= 2
    assert all(a is b for a, b in zip(running, waited))
    assert not compare(got, f(x))


# ------------------------------------------------------------------------------------------- aliasing of results


def storages(tensors):
    return [t.untyped_storage().data_ptr() for t in tensors]


@modes
def test_results_share_no_memory_that_eager_does_not_share(mode):
    def f(x):
        y = x * 2
        return y, x * 2, x.clone(), y.clone(), x.flip(0), torch.ones(4), torch.ones(4), x + 0, x[:1].flip(0), x.flip(0)[3:]

    x = torch.randn(4)
    lowered = pallascope.lower(f, x)
    for _ in range(2):
        got = lowered.call(x, mode=mode)
        assert len({*storages(got), *storages([x])}) == len(got) + 1
        want = f(x)
        for k, t in enumerate(got):  # each is written to, and no other changes
            t.fill_(100.0 + k)
            want[k].fill_(100.0 + k)
            assert not (difference := compare(got, want)), (k, difference)
        assert x.max() < 100


@modes
def test_results_that_eager_aliases_share_memory(mode):
    def f(x):
        y = x.sin()
        return y, y.t(), y[1:], y.reshape(-1), y

    x = torch.randn(4, 4)
    got = pallascope.lower(f, x).call(x, mode=mode)
    assert len(set(storages(got))) == 1
    got[2].zero_()
    assert got[0][1:].abs().sum() == 0 and got[1][:, 1:].abs().sum() == 0 and got[3][4:].abs().sum() == 0


@modes
def test_a_view_of_an_input_is_a_view(mode):
    def f(x):
        return x, x.t(), x[1:], x.view(-1), x.detach(), x[:, 2], x.expand(2, 4, 4), x.diagonal()

    x = torch.randn(4, 4)
    got = pallascope.lower(f, x).call(x, mode=mode)
    assert set(storages(got)) == set(storages([x]))
    assert not (difference := compare(got, f(x))), difference
    assert [t.storage_offset() for t in got] == [t.storage_offset() for t in f(x)]
    got[2].fill_(7.0)
    assert bool((x[1:] == 7).all()) and not compare(got, f(x))
    part = torch.randn(10, 10)[2:6, 3:7]  # a view that does not start its storage, and is strided
    got = pallascope.lower(f2 := lambda t: (t.t(), t[1], t[1:, ::2], t.diagonal(1)), part).call(part, mode=mode)
    assert not compare(got, f2(part)) and [t.data_ptr() for t in got] == [t.data_ptr() for t in f2(part)]


@modes
def test_a_constant_is_new_at_each_call(mode):
    lowered = pallascope.lower(lambda x: (torch.ones(1000), x + 1), torch.randn(3))
    first = lowered.call(torch.zeros(3), mode=mode)
    first[0].fill_(9.0)
    second = lowered.call(torch.zeros(3), mode=mode)
    assert bool((second[0] == 1).all()) and bool((first[0] == 9).all())
    assert first[0].data_ptr() != second[0].data_ptr()


@modes
def test_results_of_two_calls_share_no_memory(mode):
    x = torch.randn(100)
    lowered = pallascope.lower(lambda t: (t.sin(), t.sum()), x)
    kept = [lowered.call(x + k, mode=mode) for k in range(5)]
    assert len({t.data_ptr() for pair in kept for t in pair}) == 10
    for k, pair in enumerate(kept):
        torch.testing.assert_close(pair[0], (x + k).sin())


def test_memory_that_jax_forwards_is_copied():
    """`_to_torch` copies an array over an argument's memory, or over that of an earlier result."""
    x = torch.arange(32.0)
    module = module_of(lambda t: t * 2, x)
    with jax.enable_x64(True):
        array = module._to_jax(x, (32,), (1,))
        taken = {x.data_ptr()}
        first = module._to_torch(array, taken)
        made = jnp.arange(4.0) + 1
        second, third = module._to_torch(made, taken), module._to_torch(made, taken)
    assert first.data_ptr() != x.data_ptr() and torch.equal(first, x)
    assert second.data_ptr() != third.data_ptr() and torch.equal(second, third)


# ------------------------------------------------------------------------------------------------------ mutation


def scaled_in_place(x, y):
    x.mul_(2)
    x[1:] += y[1:]
    return x.sum(0)


def both_written(x, y):
    x.copy_(y)
    y.add_(1)
    return x * 2


def returned_argument(x, y):
    x.add_(y)
    return x, x.t(), x[1], x * 1


def written_through_views(x, y):
    x.t()[0].copy_(y[0])
    x.view(-1)[::3].zero_()
    x.diagonal().fill_(5.0)
    return x + y


def kept_before(x, y):
    before = x.clone()
    x.zero_()
    return before + y, x


def swapped(x, y):
    t = x.clone()
    x.copy_(y)
    y.copy_(t)
    return x - y


@modes
@pytest.mark.parametrize(
    "function, layout",
    [
        (f, layout)
        for f in (scaled_in_place, both_written, returned_argument, written_through_views, kept_before, swapped)
        for layout in ("contiguous", "transposed", "step", "offset")
        if f is not written_through_views or layout in ("contiguous", "offset")  # view(-1) is an error of the others
    ],
    ids=lambda v: v if isinstance(v, str) else v.__name__,
)
def test_arguments_are_changed_as_eager_changes_them(function, layout, mode):
    make = {
        "contiguous": lambda: torch.randn(4, 4), "transposed": lambda: torch.randn(4, 4).t(),
        "step": lambda: torch.randn(8, 8)[::2, 1::2], "offset": lambda: torch.randn(20)[3:19].view(4, 4),
    }[layout]  # fmt: skip
    args = make(), make()
    assert not (difference := run(function, args, (mode,))), difference


@modes
def test_a_changed_argument_is_returned_itself(mode):
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    lowered = pallascope.lower(returned_argument, like(x), y)
    got = lowered.call(x, y, mode=mode)
    assert [t.data_ptr() == x.data_ptr() for t in got[:2]] == [True, True]
    assert got[2].data_ptr() == x[1].data_ptr()
    assert got[3].untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    version = x._version
    lowered.call(x, y, mode=mode)
    assert x._version > version, "autograd sees the write"


@modes
def test_an_argument_is_read_before_it_is_written(mode):
    """A graph whose new value of x is y itself, and that changes y first."""
    program = pallascope.trace(lambda x, y: (x + 1, y * 2), torch.zeros(3), torch.zeros(3))
    graph = program.data["graphs"][0]
    product = graph["outputs"][1]["value"]
    graph["outputs"] = [{"kind": "mutation", "value": product, "target": "y"}, {"kind": "mutation", "value": "y", "target": "x"}]
    x, y = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0])
    pallascope.lower(pallascope.Program(program.data)).module().call([x, y], mode)
    assert x.tolist() == [4.0, 5.0, 6.0] and y.tolist() == [8.0, 10.0, 12.0]


@modes
def test_a_failed_check_changes_no_argument(mode):
    def f(x, i):
        x.add_(1)
        return x[i]

    x = torch.zeros(4)
    lowered = pallascope.lower(f, x.clone(), torch.tensor([0]))
    with pytest.raises(IndexError):
        lowered.call(x, torch.tensor([9]), mode=mode)
    assert x.sum() == 0


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


# --------------------------------------------------------------------------------------------- the module itself


def test_rank_zero_becomes_one_by_one_at_the_call():
    x = torch.tensor(3.0)
    lowered = pallascope.lower(lambda t: t.sin() + 1, x)
    module, shapes = lowered.module(), []
    original = module.pl.pallas_call

    def pallas_call(kernel, **kwargs):
        def run_it(*operands):
            shapes.extend([o.shape for o in operands] + [s.shape for s in kwargs["out_shape"]])
            return original(kernel, **kwargs)(*operands)

        return run_it

    module.pl = type("pl", (), {"pallas_call": staticmethod(pallas_call)})
    got = lowered.call(x)
    assert got.shape == () and torch.isclose(got, x.sin() + 1)
    assert shapes == [(1, 1), (1, 1)]


def test_interpret_follows_the_platform(monkeypatch):
    source = pallascope.lower(torch.sin, torch.randn(4)).source
    assert "interpret=INTERPRET" in source and "interpret=True" not in source
    assert load_module(source, "edges").INTERPRET is True
    for platform, expected in (("gpu", False), ("tpu", False), ("cpu", True)):
        monkeypatch.setattr(jax, "default_backend", lambda p=platform: p)
        assert load_module(source, "edges").INTERPRET is expected


def test_torch_is_imported_at_module_scope_and_every_dtype_is_mapped():
    source = pallascope.lower(torch.sin, torch.randn(4)).source
    head = source[: source.index("\ndef ")]
    assert "\nimport torch\n" in head and source.count("import torch") == 1
    table = load_module(source, "edges").TORCH_TO_JAX
    assert set(table) == set(DTYPES) and len(table) == 10
    for dtype, other in table.items():
        name = str(dtype).removeprefix("torch.")
        assert jnp.dtype(other).name == name


PLAIN = """
import runpy, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('pallascope', '_pallascope_core'):
            raise ImportError('not installed here: ' + name)
sys.meta_path.insert(0, Refuse())
sys.argv = [sys.argv[1]]
runpy.run_path(sys.argv[0], run_name='__main__')
"""


def mixed(x, w, i, n):
    h = torch.softmax((x @ w).t(), -1)
    n.add_(2)
    return h[i] * 2, n // 3, x.sum() > 0, torch.linalg.matrix_exp(h @ h.t())


def run_file(path):
    done = subprocess.run([sys.executable, "-c", PLAIN, str(path)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "JAX_PLATFORMS": "cpu"}, cwd=path.parent)  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_a_saved_module_runs_on_its_own(tmp_path):
    """Under plain Python, where nothing of Pallascope can be imported: 0 and agreement, and 1 if a kernel is wrong."""
    args = torch.randn(4, 5), torch.randn(5, 6), torch.tensor([1, 5, 0]), torch.tensor([1, 7, 300])
    lowered = pallascope.lower(mixed, *args)
    assert lowered.log["torch"] and lowered.log["library"], "kernels, a product and a torch call"
    (tmp_path / "good.py").write_text(lowered.source)
    code, out, error = run_file(tmp_path / "good.py")
    assert code == 0, error
    assert "debug: agrees with PyTorch on" in out and "steady: agrees with PyTorch on" in out
    broken = lowered.source.replace("* 2.0", "* 2.5")
    assert broken != lowered.source
    (tmp_path / "broken.py").write_text(broken)
    code, out, error = run_file(tmp_path / "broken.py")
    assert code == 1 and "debug: output 0 differs" in out and "steady: differs from PyTorch" in out, error


# ------------------------------------------------------------------------------------------------- illegal values


def embedded(i, w):
    return F.embedding(i, w).sin()


def indexed(i, w):
    return w[i] + 1


def gathered(i, w):
    return w.gather(0, i[:, None].expand(3, 4)) * 2


def selected(i, w):
    return w.index_select(0, i) - 1


@modes
@pytest.mark.parametrize("function", [embedded, indexed, gathered, selected], ids=lambda f: f.__name__)
def test_an_index_out_of_range_raises(function, mode):
    w = torch.arange(20.0).reshape(5, 4)
    good = torch.tensor([0, 4, 2])
    lowered = pallascope.lower(function, good, w)
    assert not compare(lowered.call(good, w, mode=mode), function(good, w))
    for bad in (5, -6, 2**40, -(2**62)):
        with pytest.raises(IndexError) as caught:
            lowered.call(torch.tensor([0, bad, 2]), w, mode=mode)
        message = str(caught.value)
        assert "index out of range in" in message and f"{__file__}:{function.__code__.co_firstlineno + 1}" in message
        assert any(n["name"] in message for n in lowered.graph["nodes"])
    negative = torch.tensor([-1, -5, 2])
    if function is indexed:
        assert not compare(lowered.call(negative, w, mode=mode), function(negative, w))
    else:
        with pytest.raises(IndexError):
            lowered.call(negative, w, mode=mode)
    assert not compare(lowered.call(good, w, mode=mode), function(good, w)), "the process goes on"


@modes
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_index_dtypes(dtype, mode):
    w = torch.arange(20.0).reshape(5, 4)
    i = torch.tensor([[0, 4], [2, -1]], dtype=dtype)
    assert not (difference := run(lambda i, w: (w[i], w[:, i % 4], w[i, i % 4], F.embedding(i.abs(), w)), (i, w), (mode,))), difference


@modes
@pytest.mark.parametrize("divide", [torch.floor_divide, torch.remainder, torch.fmod,
                                    lambda a, b: torch.div(a, b, rounding_mode="trunc")])  # fmt: skip
def test_integer_division_by_zero_raises(divide, mode):
    a, b = torch.tensor([7, -7, 0]), torch.tensor([2, 3, -4])
    lowered = pallascope.lower(divide, a, b)
    assert not compare(lowered.call(a, b, mode=mode), divide(a, b))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        lowered.call(a, torch.tensor([2, 0, 1]), mode=mode)


@modes
def test_quotients_are_rounded_as_eager_rounds_them(mode):
    """XLA divides by what it broadcasts through the reciprocal: 49 / 49 is below 1 then."""
    x = torch.arange(1.0, 200.0)

    def f(x, y):
        return (x / 49).trunc(), torch.div(x[:, None], y, rounding_mode="trunc"), x / 3 == y / 3, (x[:, None] / y), torch.ones(49).mean()

    y = x.flip(0).clone()
    lowered = pallascope.lower(f, x, y)
    want = f(x, y)
    assert not (difference := compare(lowered.call(x, y, mode=mode), want, {"rtol": 0, "atol": 0})), difference
    broken = load_module(lowered.source.replace("return lax.optimization_barrier(jnp.broadcast_to(value, shape))", "return value"), "edges")
    assert compare(broken.call([x, y], mode), want, {"rtol": 0, "atol": 0})


@modes
def test_special_values_pass_through(mode):
    for dtype in DTYPES:
        x = values(dtype, 40)
        got = pallascope.lower(lambda t: (t.clone(), t.reshape(5, 8).t().contiguous()), x).call(x, mode=mode)
        view = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
        assert torch.equal(got[0].view(view), x.view(view)), dtype  # to the bit: -0.0 and NaN included
        assert torch.equal(got[1].view(view), x.reshape(5, 8).t().contiguous().view(view)), dtype
