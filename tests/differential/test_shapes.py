"""Views, rearrangements and tensors made from nothing, against eager; none of them is left to PyTorch."""

from __future__ import annotations

import pytest
import torch

from differential import Case, plain
from kernels import assert_kernels

f32, f64, bf16, f16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
i64, i32, i16, i8, u8, b8 = torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool


def own(*sizes, dtype=f32):
    """Data that encodes its own index."""
    count = torch.Size(sizes).numel()
    return torch.arange(count).to(dtype).reshape(sizes)


def layouts():
    return {
        "square": own(4, 4), "equal": own(3, 3, 3), "wide": own(3, 5), "one": own(1, 4), "empty": own(0, 3), "column": own(4, 1),
        "transposed": own(4, 4).t(), "sliced": own(4, 10)[:, 1::2], "permuted": own(2, 3, 4).permute(2, 0, 1),
        "expanded": own(1, 4).expand(3, 4), "channels last": own(2, 3, 4, 5).to(memory_format=torch.channels_last),
    }  # fmt: skip


def over(name, function, tensors):
    return [Case(f"{name} {k}", function, (t,)) for k, t in tensors.items()]


def test_roll_and_turns():
    table = layouts()
    # The traced meta of a roll of one dimension is contiguous where eager keeps channels last: a difference of torch's own.
    plain_layouts = {n: t for n, t in table.items() if n != "channels last"}
    cases = over("back", lambda x: x.roll(-1, -1), plain_layouts)
    few = {n: table[n] for n in ("square", "transposed", "sliced", "empty", "channels last")}
    cases += over("both", lambda x: torch.roll(x, (2, -1), (0, 1)), few) + over("flat", lambda x: x.roll(5), few)
    cases += over("far", lambda x: torch.roll(x, (-9, 7, 1), (1, 0, 1)), {n: table[n] for n in ("equal", "wide", "one")})
    for k in (0, 1, 2, 3, -1):
        cases += over(f"rot {k}", lambda x, k=k: torch.rot90(x, k), {n: table[n] for n in ("square", "permuted")})
    cases += [Case("rot dims", lambda x: torch.rot90(x, 1, (2, 0)), (own(2, 3, 4),)),
              Case("scalar", lambda x: x.roll(2), (torch.tensor(3.0),)),
              Case("lr", lambda x: (torch.fliplr(x), torch.flipud(x), x.flip(0, 1)), (own(3, 3),))]
    assert_kernels(cases)


def test_repetitions():
    table = {n: t for n, t in layouts().items() if n not in ("wide", "column", "expanded")}
    cases = over("tile", lambda x: x.tile(2, 3), table) + [Case("tile long", lambda x: x.tile((2, 1, 1, 2, 1)), (own(3, 3),))]
    cases += over("repeat", lambda x: x.repeat(*([1] * (x.dim() - 1)), 3), table)
    cases += over("interleave", lambda x: x.repeat_interleave(3, 0), table) + over("interleave flat", lambda x: x.repeat_interleave(2), table)
    cases += [
        Case("none", lambda x: (x.tile(0, 2), x.repeat_interleave(0, 1)), (own(2, 3),)),
        Case("counts", lambda x, n: torch.repeat_interleave(x, n, 1, output_size=7), (own(2, 4), torch.tensor([2, 0, 4, 1]))),
        Case("counts i32", lambda x, n: torch.repeat_interleave(x, n, 0, output_size=3), (own(3, 3), torch.tensor([0, 3, 0], dtype=i32))),
        Case("counts flat", lambda x, n: torch.repeat_interleave(x, n, output_size=8), (own(2, 2), torch.tensor([2, 1, 4, 1]))),
        Case("one count", lambda x, n: torch.repeat_interleave(x, n, 0, output_size=6), (own(2, 2), torch.tensor([3]))),
        Case("of counts", lambda n: torch.repeat_interleave(n, output_size=6), (torch.tensor([1, 0, 3, 2]),)),
        Case("kron", torch.kron, (own(2, 3), own(3, 2) + 1)),
        Case("kron ranks", torch.kron, (own(2), own(2, 2, 2, dtype=i64))),
    ]
    assert_kernels(cases)


def test_counts_that_do_not_add_up_raise():
    import pallascope

    lowered = pallascope.lower(lambda x, n: torch.repeat_interleave(x, n, 0, output_size=4), own(2, 2), torch.tensor([3, 1]))
    with pytest.raises((IndexError, RuntimeError)):
        lowered.call(own(2, 2), torch.tensor([3, 3]))
    with pytest.raises((IndexError, RuntimeError)):
        lowered.call(own(2, 2), torch.tensor([5, -1]))


def test_shuffles():
    cl = torch.channels_last
    cases = [
        Case("pixel", lambda x: torch.pixel_shuffle(x, 2), (own(2, 8, 3, 3),)),
        Case("pixel square", lambda x: torch.pixel_shuffle(x, 3), (own(9, 9, 9),)),
        Case("pixel cl", lambda x: torch.pixel_shuffle(x, 2), (own(2, 8, 3, 4).to(memory_format=cl),)),
        Case("pixel batch", lambda x: torch.pixel_shuffle(x, 2), (own(2, 2, 4, 3, 1),)),
        Case("unpixel", lambda x: torch.pixel_unshuffle(x, 2), (own(2, 3, 4, 6),)),
        Case("unpixel square", lambda x: torch.pixel_unshuffle(x, 2), (own(4, 4, 4, 4).transpose(1, 2),)),
        Case("channels", lambda x: torch.channel_shuffle(x, 2), (own(2, 6, 3, 3),)),
        Case("channels square", lambda x: torch.channel_shuffle(x, 3), (own(6, 6, 6, 6),)),
        Case("channels cl", lambda x: torch.channel_shuffle(x, 3).contiguous(), (own(2, 6, 3, 4).to(memory_format=cl),)),
        Case("channels rank 3", lambda x: torch.channel_shuffle(x, 2), (own(2, 4, 5),)),
        Case("empty", lambda x: torch.channel_shuffle(x, 2), (own(0, 4, 5),)),
    ]
    assert_kernels(cases)


def test_diagonals_and_blocks():
    cases = []
    for k in (-5, 0, 2):
        cases += [
            Case(f"diag {k}", lambda x, k=k: torch.diag(x, k), (own(4),)),
            Case(f"diag of {k}", lambda x, k=k: (torch.diag(x, k) if -3 < k < 5 else x + 0), (own(3, 5),)),
            Case(f"embed {k}", lambda x, k=k: torch.diag_embed(x, k), (own(2, 3),)),
            Case(f"flat {k}", lambda x, k=k: torch.diagflat(x, k), (own(2, 2),)),
            Case(f"tril {k}", lambda x, k=k: (x.tril(k), x.triu(k)), (own(2, 4, 4).transpose(1, 2),)),
            Case(f"indices {k}", lambda x, k=k: (torch.tril_indices(4, 6, k), torch.triu_indices(4, 6, k), torch.tril_indices(6, 3, k),
                                                torch.triu_indices(6, 3, k), x + 0), (own(2),)),
        ]
    cases += [
        Case("embed dims", lambda x: torch.diag_embed(x, 1, 0, 2), (own(2, 3),)),
        Case("embed swapped", lambda x: torch.diag_embed(x, -1, 2, 0), (own(2, 3),)),
        Case("diag transposed", lambda x: (torch.diag(x), torch.diagonal_copy(x, 1)), (own(4, 4).t(),)),
        Case("diag empty", lambda x: torch.diag(x), (own(0),)),
        Case("trace", torch.trace, (own(4, 6),)),
        Case("trace i", torch.trace, (own(4, 4, dtype=u8).t(),)),
        Case("trace bf16", torch.trace, (own(4, 4, dtype=bf16),)),
        Case("indices many", lambda x: (torch.tril_indices(90, 90), torch.triu_indices(91, 70, -3), x + 0), (own(2),)),
        Case("indices i32", lambda x: (torch.tril_indices(3, 3, dtype=i32), torch.triu_indices(0, 3), torch.tril_indices(2, 0), x + 0), (own(2),)),
        Case("blocks", lambda a, b, c, d: torch.block_diag(a, b, c, d), (own(2, 3), own(2), torch.tensor(7.0), own(2, 2, dtype=i64))),
        Case("blocks empty", lambda a, b: torch.block_diag(a, b), (own(2, 2), own(0, 3))),
        Case("product", lambda a, b, c: torch.cartesian_prod(a, b, c), (own(2), own(3) + 10, own(2) + 20)),
        Case("product of one", lambda a: torch.cartesian_prod(a), (own(3),)),
        Case("vander", lambda x: (torch.vander(x), torch.vander(x, 3, increasing=True), torch.vander(x, 0)), (own(4) + 1,)),
        Case("vander i", lambda x: torch.vander(x, 5), (own(4, dtype=i32),)),
    ]
    for dtype in (f32, i64, bf16):
        a, b = plain(dtype, 3, 4, 3), plain(dtype, 3, 4, 3, seed=1)
        cases += [
            Case(f"cross {dtype}", lambda a, b: (torch.linalg.cross(a, b), torch.linalg.cross(a, b, dim=0), torch.cross(a, b, dim=-1)), (a, b)),
            Case(f"cross broadcast {dtype}", lambda a, b: torch.linalg.cross(a, b[:1, :1]), (a, b)),
        ]
    assert_kernels(cases)


def test_pieces_and_grids():
    a, b, c = own(3, 4), own(3, 4).t().contiguous().t() + 100, own(3, 4)[:, :2]
    cases = [
        Case("h", lambda a, b, c: torch.hstack([a, b, c]), (a, b, c)),
        Case("v", lambda a, b: torch.vstack([a, b]), (a, b)),
        Case("d", lambda a, b: torch.dstack([a, b]), (a, b)),
        Case("columns", lambda a, b, c: torch.column_stack([a, b, c]), (a, b, c)),
        Case("of lines", lambda a, b: (torch.hstack([a, b]), torch.vstack([a, b]), torch.dstack([a, b]), torch.column_stack([a, b])), (own(3), own(3) + 9)),
        Case("of scalars", lambda a, b: (torch.hstack([a, b]), torch.vstack([a, b]), torch.dstack([a, b]), torch.column_stack([a, b])),
             (torch.tensor(1.0), torch.tensor(2.0))),
        Case("of cubes", lambda a: (torch.hstack([a, a]), torch.vstack([a, a]), torch.dstack([a, a])), (own(2, 2, 2),)),
        Case("promoted", lambda a, b: torch.hstack([a, b]), (own(3), own(3, dtype=i64))),
        Case("cat channels last", lambda a, b: torch.cat([a, b], 1),
             tuple(own(2, n, 3, 4).to(memory_format=torch.channels_last) for n in (3, 2))),
        Case("tensor_split", lambda x: [t * 2 for t in torch.tensor_split(x, 3, 1)], (own(3, 7),)),
        Case("tensor_split at", lambda x: [t + 1 for t in torch.tensor_split(x, (1, 3, 3, -1, 20, 2), 1)], (own(3, 7),)),
        Case("hsplit", lambda x: [*torch.hsplit(x, 2), *torch.hsplit(x, (1, 2)), *torch.vsplit(x, (1,))], (own(4, 4),)),
        Case("dsplit", lambda x: [*torch.dsplit(x, 2), *torch.dsplit(x, (1,)), *torch.vsplit(x, 2)], (own(2, 2, 4),)),
        Case("hsplit line", lambda x: torch.hsplit(x, 2), (own(6),)),
        Case("unsafe", lambda x: [*torch.unsafe_chunk(x, 3, 1), *torch.unsafe_split(x, 2), *x.chunk(2, 1)], (own(3, 7),)),
        Case("grid", lambda a, b, c: [*torch.meshgrid(a, b, c, indexing="xy"), *torch.meshgrid(a, b, c, indexing="ij")], (own(3), own(3) + 5, own(2))),
        Case("grid one", lambda a, b: [*torch.meshgrid(a, indexing="xy"), *torch.meshgrid(a, b, indexing="ij")], (own(3), torch.tensor(2.0))),
        Case("broadcast", lambda a, b: torch.broadcast_tensors(a, b), (own(3, 1), own(3))),
        Case("atleast", lambda a, b: [f(t) for f in (torch.atleast_1d, torch.atleast_2d, torch.atleast_3d) for t in (a, b)], (torch.tensor(3.0), own(3))),
        Case("atleast list", lambda a, b: [*torch.atleast_3d(a, b)], (own(2, 2).t(), own(3))),
        Case("turned", lambda x: (x.mT, x.mH, x.adjoint(), x.swapaxes(0, 2), x.movedim((0, 1), (2, 0))), (own(3, 3, 3),)),
        Case("matrix", lambda x: (x.H, x.T, x.t()), (own(3, 3),)),
        Case("squeezed", lambda x: (x.squeeze((0, 2)), x.squeeze(), x.squeeze(1), x[0].unsqueeze(-1), x.unflatten(3, (2, -1)), x.ravel()), (own(1, 3, 1, 4),)),
        Case("slices", lambda x: (x[:, -1], x.narrow(1, 1, 2), x.select(-1, -2), x[..., None, 1:], x.expand(2, -1, -1), x.flatten(0, 1)), (own(3, 4, 5)[:1].expand(1, 4, 5),)),
        Case("scalar", lambda x: (x.flatten(), x.ravel(), x.reshape(1, 1), x.squeeze(), x.view(1)), (torch.tensor(3.0),)),
        Case("windows", lambda x: (x.unfold(0, 3, 1), x.unfold(1, 2, 2), x.unfold(1, 4, 3)), (own(5, 7),)),
    ]
    assert_kernels(cases)


def test_copies_of_views():
    table = {"transposed": own(4, 4).t(), "sliced": own(4, 8)[:, ::2]}
    view = {
        "permute": lambda x: torch.permute_copy(x, (1, 0)), "t": torch.t_copy, "transpose": lambda x: torch.transpose_copy(x, 0, 1),
        "expand": lambda x: torch.expand_copy(x, (2, 4, 4)), "slice": lambda x: torch.slice_copy(x, 1, 1, 3), "select": lambda x: torch.select_copy(x, 0, -1),
        "diagonal": lambda x: torch.diagonal_copy(x), "unfold": lambda x: torch.unfold_copy(x, 1, 3, 1), "alias": torch.alias_copy,
        "detach": torch.detach_copy, "unbind": lambda x: torch.unbind_copy(x, 1), "split": lambda x: torch.split_copy(x, 3, 1),
        "sizes": lambda x: torch.split_with_sizes_copy(x, [1, 3]), "squeeze": lambda x: torch.squeeze_copy(x[None]),
        "unsqueeze": lambda x: torch.unsqueeze_copy(x, 1), "narrow": lambda x: torch.narrow_copy(x, 0, 1, 2),
    }  # fmt: skip
    cases = [Case(f"{n} {k}", f, (t,)) for n, f in view.items() for k, t in table.items()]
    cases.append(Case("view", lambda x: torch.view_copy(x, (2, 8)), (own(4, 4),)))
    assert_kernels(cases)


def test_strides_over_storage():
    strided = torch.as_strided
    base = own(40)
    cases = [
        Case("overlap", lambda x: strided(x, (4, 3), (2, 1)), (own(20),)),
        Case("offset", lambda x: strided(x, (2, 3), (5, 2), 3), (own(4, 5),)),
        Case("repeats", lambda x: strided(x, (2, 3, 2), (0, 1, 0)), (own(4),)),
        Case("of transposed", lambda x: strided(x, (3, 3), (1, 4)), (own(4, 4).t(),)),
        Case("of offset", lambda x: strided(x, (2, 2), (4, 1)), (base[8:24].reshape(4, 4),)),
        Case("of offset absolute", lambda x: strided(x, (2, 2), (4, 1), 9), (base[8:24].reshape(4, 4),)),
        Case("of sliced", lambda x: strided(x, (2, 2), (8, 2), 8), (own(4, 8)[:, ::2],)),
        Case("of made", lambda x: strided(x * 2, (3, 2), (3, 1), 1), (own(4, 4).t(),)),
        Case("of view of made", lambda x: strided((x * 2)[1:, 1:], (2, 2), (4, 1), 5), (own(4, 4),)),
        Case("of flipped", lambda x: strided(x.flip(0), (5,), (3,), 0), (own(4, 4),)),
        Case("of broadcast", lambda x: strided(x, (3, 2), (0, 1)), (own(4).expand(3, 4),)),
        Case("diagonal", lambda x: strided(x, (4,), (5,)), (own(4, 4),)),
        Case("channels last", lambda x: strided(x, (2, 3, 2), (12, 1, 3)), (own(2, 3, 2, 2).to(memory_format=torch.channels_last),)),
        Case("scalar", lambda x: strided(x, (), ()), (own(4),)),
        Case("empty", lambda x: strided(x, (0, 3), (3, 1)), (own(4),)),
        Case("copy", lambda x: torch.as_strided_copy(x, (4, 3), (2, 1), 2), (own(20),)),
    ]
    assert_kernels(cases)


def test_bytes_as_another_dtype():
    pairs = [(f32, i32), (i32, f32), (f32, i16), (i16, f32), (f32, i64), (i64, f32), (f64, i64), (f64, i8), (u8, f64), (bf16, i16), (i16, bf16),
             (f16, bf16), (bf16, f32), (i64, u8), (u8, i8), (b8, u8), (i8, i64), (f64, bf16), (f16, f64), (u8, i16), (i64, f64)]  # fmt: skip
    cases = []
    for a, b in pairs:
        x = (torch.arange(64) * 37 % 256).to(u8).view(a) if a != b8 else torch.arange(64) % 3 == 0
        cases += [Case(f"{a} as {b}", lambda x, b=b: x.view(b), (x.reshape(-1, 8 if x.numel() >= 8 else x.numel()),))]
        if a.itemsize == b.itemsize:
            cases.append(Case(f"{a} as {b} transposed", lambda x, b=b: x.view(b), (x[:16 // a.itemsize * a.itemsize].reshape(2, -1).t(),)))
    cases += [
        Case("scalar", lambda x: x.view(i32), (torch.tensor(1.5),)),
        Case("specials", lambda x: x.view(i32), (torch.tensor([0.0, -0.0, float("inf"), float("nan")]),)),
        Case("of made", lambda x: (x * 2).view(i16), (own(3, 4),)),
        Case("empty", lambda x: (x.view(i16), x.view(i64)), (own(0, 4),)),
        Case("strided rows", lambda x: x.view(i16), (own(4, 4)[::2],)),
    ]
    assert_kernels(cases)


def test_tensors_from_nothing():
    def several(x):
        made = []
        for dtype in (f32, f64, f16, bf16):
            made += [torch.arange(5, -3, -0.5, dtype=dtype), torch.arange(0.1, 3, 0.3, dtype=dtype), torch.linspace(-1, 1, 8, dtype=dtype),
                     torch.linspace(3, 3, 1, dtype=dtype), torch.linspace(0, 1, 0, dtype=dtype), torch.logspace(0, 2, 7, dtype=dtype)]
        for dtype in (i64, i32, u8):
            made += [torch.linspace(0, 10, 7, dtype=dtype), torch.linspace(3, 40, 14, dtype=dtype), torch.arange(7, 1, -2, dtype=dtype)]
        made += [torch.linspace(-10, 10, 9, dtype=i64), torch.logspace(-1, 1, 5, base=2.0), torch.arange(2.5), torch.arange(3, 3),
                 torch.arange(1, 6, 2.0, dtype=i32), torch.full((2, 2), 3), torch.full((), True), torch.eye(3, 2)]
        return [*made, x + 0]

    def like(x):
        cl = torch.channels_last
        return [torch.zeros_like(x), torch.ones_like(x, memory_format=torch.contiguous_format), torch.full_like(x, 2, memory_format=cl, dtype=i64),
                torch.empty_like(x).fill_(1), torch.empty_like(x, memory_format=cl).zero_(), x.new_empty((2, 3)).fill_(2), x.new_ones((2,), dtype=i32),
                x.new_zeros((2, 0)), x.new_full((2, 2), 7), torch.empty(3, 4).fill_(1.0), torch.empty_strided((2, 3), (1, 2)).fill_(2.0),
                x.new_empty_strided((3, 2), (1, 3)).zero_(), torch.empty_permuted((2, 3, 4), (1, 2, 0)).fill_(1)]  # fmt: skip

    assert_kernels([Case("several", several, (own(2),)), Case("like", like, (own(2, 3, 4, 5),)),
                    Case("like channels last", like, (own(2, 3, 4, 5).to(memory_format=torch.channels_last),))])
