"""Memory at the edge between PyTorch and JAX: when it is written, who shares it, and arguments that are changed."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
import torch
from modules import module_of, modes

import pallascope
from differential import compare, like, run

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


def test_a_copy_keeps_elements_that_lie_on_each_other():
    """select_scatter and its kin copy a tensor with its strides: a write changes all elements at one place."""

    def f(x, s):
        windows, rows, steps = x.unfold(1, 2, 1), x[:1].expand(3, 4), x.as_strided((3, 3), (1, 1))
        dense = x.unfold(1, 2, 2)
        return (torch.diagonal_scatter(windows, s), torch.select_scatter(rows, x[0] * 2, 0, 1), torch.slice_scatter(steps, x[:2, :3] * 2, 0, 0, 2),
                torch.diagonal_scatter(dense, s[:, :2]), torch.select_scatter(dense, s.T, 2, 1))  # fmt: skip

    x, s = torch.arange(12.0).reshape(3, 4), -torch.ones(2, 3)
    lowered = pallascope.lower(f, x, s)
    for got, wanted in zip(lowered.call(x, s), f(x, s), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0)
        assert got.stride() == wanted.stride()
    left = lowered.log["torch"]
    assert sorted(left) == ["aten.diagonal_scatter.default", "aten.select_scatter.default", "aten.slice_scatter.default"], "the dense ones are kernels"


def test_a_write_to_no_element_leaves_the_memory_around_it():
    def f(x, y):
        x.permute([2, 1, 0]).zero_()
        x.add_(1)
        y[2:2].fill_(3)
        return torch.as_strided(x, (3, 3), (1, 1), 0) * 2, y + 1

    memory, y = torch.arange(35.0), torch.arange(4.0)
    x = torch.as_strided(memory, (0, 2, 2), (24, 6, 1))
    wanted = f(x, y)
    for got, expected in zip(pallascope.lower(f, x, y).call(x, y), wanted, strict=True):
        torch.testing.assert_close(got, expected, rtol=0, atol=0)
    assert torch.equal(memory, torch.arange(35.0))


@modes
def test_as_strided_sees_what_lies_between_the_elements_of_a_written_tensor(mode):
    """index_put and its like compute elements anew; the memory around them is still the argument's."""

    def f(x, i, y):
        x[i] = 2
        around = torch.as_strided(x.chunk(2, 1)[1], (5, 6, 4), (1, 1, 0), 17).clone()
        x.mul_(3)
        x[1:, 0] += 5
        y.add_(1)
        torch.as_strided(y, (3,), (2,), 1).mul_(10)
        y.sub_(3)
        return around, torch.as_strided(x, (26,), (1,), 1).clone(), torch.as_strided(y, (7,), (1,), 0).clone(), x + 0

    def arguments():
        x = torch.as_strided(torch.arange(30.0), (3, 3), (9, 3), 2)
        return x, torch.tensor([-1, 0]), torch.as_strided(torch.arange(9.0), (3,), (3,), 0)

    ours, eagers = arguments(), arguments()
    got, wanted = pallascope.lower(f, *arguments()).call(*ours, mode=mode), f(*eagers)
    for a, b in zip([*got, *ours], [*wanted, *eagers], strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_memory_behind_a_written_tensor_is_refused():
    def f(y):
        y.add_(1)
        return torch.as_strided(y, (5,), (1,), 0) * 2

    with pytest.raises(pallascope.PallascopeError, match="reaches element 4 of the storage of `.*`, which is written to and whose own last element is number 2"):
        pallascope.lower(f, torch.arange(9.0)[:3])
    with pytest.raises(pallascope.PallascopeError, match="which is written to and has no element of its own"):
        pallascope.lower(lambda x: torch.as_strided(x, (1, 1), (0, 1), 7).diagonal().add_(1), torch.as_strided(torch.zeros(39), (0, 4), (16, 2)))


def test_views_of_a_written_tensor_that_begins_within_its_storage():
    def f(x, y):
        diagonal = torch.einsum("ii->i", x)
        x.lt_(y)
        inner = torch.as_strided(x, (2,), (3,), 5)
        x.permute([1, 0]).add_(4)
        return diagonal * 2, inner + 1, torch.as_strided(x, (2, 2), (1, 2), 3) * 3

    def arguments():
        return torch.as_strided(torch.arange(12), (3, 3), (3, 1), 3), torch.tensor(7.5)

    ours, eagers = arguments(), arguments()
    got, wanted = pallascope.lower(f, *arguments()).call(*ours), f(*eagers)
    for a, b in zip([*got, *ours], [*wanted, *eagers], strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
