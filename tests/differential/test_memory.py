"""Memory: results that view an argument, whatever its layout; as_strided, which counts by memory that may lie otherwise
here; views of reshapes that eager copies; writes whose order eager does not promise."""

from __future__ import annotations

import pytest
import torch

from differential import MODES, compare, like, pallascope, run  # noqa: F401  (differential puts the package on the path)

NOT_DENSE = {
    "columns": lambda: torch.arange(48.0).reshape(4, 12)[:, ::2],
    "rows": lambda: torch.arange(48.0).reshape(8, 6)[1::2],
    "transposed": lambda: torch.arange(48.0).reshape(12, 4)[1:7].t(),
    "expanded": lambda: torch.arange(6.0).expand(4, 6),
    "overlapping": lambda: torch.arange(20.0).as_strided((4, 6), (2, 1), 3),
    "dense": lambda: torch.arange(24.0).reshape(4, 6),
}


def views(x):
    return (x.t(), x[1], x[:, 1:4:2], x.view(4, 2, 3), x[None], x.unfold(1, 3, 2), x.diagonal(), x.expand(2, 4, 6), x.select(1, 2), x.as_strided((2, 2), (1, 2)), x)


@pytest.mark.parametrize("name", NOT_DENSE)
@pytest.mark.parametrize("upto", [None, 0, 4])
def test_results_that_view_an_argument_share_its_memory(name, upto):
    x = NOT_DENSE[name]()
    options = {} if upto is None else {"upto": upto}
    lowered = pallascope.lower(views, like(x), **options)
    for mode in MODES:
        mine = like(x)
        got, want = lowered.call(mine, mode=mode), views(mine)
        assert not (difference := compare(got, want)), difference
        for k, (g, w) in enumerate(zip(got, want)):
            assert g.data_ptr() == w.data_ptr() and g.untyped_storage().data_ptr() == mine.untyped_storage().data_ptr(), k


def copies(x):
    return x.to(x.dtype, copy=True), x.flip(0), x.contiguous().clone(), x.t().reshape(-1), x.float() if x.dtype != torch.float32 else x * 1


@pytest.mark.parametrize("name", NOT_DENSE)
def test_results_that_eager_copies_share_nothing(name):
    x = NOT_DENSE[name]()
    eager = copies(x)
    got = pallascope.lower(copies, like(x)).call(mine := like(x))
    for g, w in zip(got, eager):
        shares = w.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        assert (g.untyped_storage().data_ptr() == mine.untyped_storage().data_ptr()) == shares


def strided(x):
    flipped, doubled = torch.flip(x, [1]), x * 2
    early = torch.as_strided(x, (2, 2), (1, 2), 4)
    results = [torch.as_strided(flipped, (2, 3), (1, 2), 1), torch.as_strided(flipped[1], (2, 2), (1, 3), 0), torch.as_strided(doubled.t()[1], (2,), (1,), 1),
               torch.as_strided(doubled[1:], (2, 2), (6, 1), 0), torch.as_strided(x.t()[1], (2,), (1,), 3), torch.as_strided(flipped.t(), (3,), (2,))]  # fmt: skip
    x[None, :, 0::3] += 1
    return (*results, early, x * 1, torch.as_strided(x[1:], (3,), (2,), 4))


@pytest.mark.parametrize("name", ["columns", "rows", "transposed", "dense"])
@pytest.mark.parametrize("upto", [None, 0, 3, 9])
def test_as_strided_counts_by_eagers_memory(name, upto):
    options = {} if upto is None else {"upto": upto}
    assert not (difference := run(strided, (NOT_DENSE[name](),), **options)), difference


def scattered(x, y):
    turned = x.t()
    turned[0] *= 2
    wide = torch.broadcast_tensors(x, y)[0]
    wide[1:].mul_(3)
    x.unfold(1, 2, 2)[0] += 1
    return turned + 0, wide * 1


@pytest.mark.parametrize("upto", [None, 0, 3, 6])
def test_writes_through_strides_after_writes_through_other_views(upto):
    options = {} if upto is None else {"upto": upto}
    for name in ("columns", "transposed", "dense"):
        assert not (difference := run(scattered, (NOT_DENSE[name](), torch.ones(())), **options)), difference


def test_ravel_copies_what_a_reshape_would_view():
    assert not (difference := run(lambda x, y: (x.ravel(), x.flatten(), x.reshape(-1), y.ravel(), y.t().ravel()), (torch.ones(1).expand(3), torch.ones(2, 3)))), difference


def test_results_have_eagers_strides_after_writes_to_views():
    def f(x):
        made = torch.remainder(x, 3)
        made[..., :, 1, ::3] = 1
        return made.mT, made, made.permute(2, 0, 1)

    assert not (difference := run(f, (torch.as_strided(torch.arange(30.0), (1, 4, 3), (30, 1, 5)),))), difference


def test_an_empty_diagonal_may_start_outside():
    assert not (difference := run(lambda x, y: (x.diagonal(1), x.diagonal(-1), y.diagonal(3), y.diagonal(-2) * 1), (torch.ones(1, 0), torch.ones(2, 3)))), difference


@pytest.mark.parametrize("dtype", [torch.int32, torch.int8, torch.uint8, torch.int64, torch.float32], ids=str)
def test_scans_in_place_keep_the_dtype(dtype):
    def f(x):
        x.cumsum_(0)
        y = (x * 2).cumprod_(1)
        return x[0] * 2, y

    assert not (difference := run(f, (torch.arange(1, 13).reshape(3, 4).to(dtype),))), difference


@pytest.mark.parametrize("write", [lambda x: x[:1].zero_(), lambda x: x.unfold(0, 1, 3).mul_(2), lambda x: x[0].fill_(1)], ids=["slice", "unfold", "select"])
def test_a_write_through_a_view_of_overlapping_memory_is_refused(write):
    with pytest.raises(pallascope.PallascopeError, match="one place in memory"):
        pallascope.lower(lambda x: (write(x), x * 1)[1], torch.zeros(1).expand(4))


def given_back(x, y):
    """PyTorch gives its argument back: a flip of one element is read in place here."""
    back, other = torch.positive(torch.flip(x, [0])), torch.resolve_neg(torch.flip(y, [0, 1]))
    x.lt_(back + 1)
    y.copy_(torch.positive(torch.flip(x, [1])))
    return back, other


@pytest.mark.parametrize("upto", [None, 0, 2, 3])
def test_results_of_torch_calls_outlive_writes_to_arguments(upto):
    options = {} if upto is None else {"upto": upto}
    for x in (torch.tensor([[5]]), torch.arange(3).reshape(1, 3)):
        assert not (difference := run(given_back, (x, x + 7), **options)), difference
