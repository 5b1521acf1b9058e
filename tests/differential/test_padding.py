"""Padding by reflection, repetition and wrapping, and its gradients, against eager; none is left to PyTorch."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from differential import Case
from kernels import assert_kernels

f32, bf16, i64 = torch.float32, torch.bfloat16, torch.int64
aten = torch.ops.aten


def own(*sizes, dtype=f32):
    return torch.arange(torch.Size(sizes).numel()).to(dtype).reshape(sizes)


LINES = {"left": (3, 0), "none": (0, 0), "cut": (-1, 2)}
IMAGES = {"both": (2, 1, 1, 3), "one": (0, 2, 1, 0), "cut": (1, -1, -2, 1)}


def test_modes():
    cases = []
    image, square = own(2, 3, 4, 5), own(4, 4, 4).transpose(0, 2)
    last = own(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for mode in ("reflect", "replicate", "circular"):
        cases += [Case(f"{mode} line {n}", lambda x, p=p, m=mode: F.pad(x, p, mode=m), (own(2, 5),)) for n, p in LINES.items()]
        for name, x in {"image": image, "square": square, "channels last": last}.items():
            pads = IMAGES if name == "image" else {"one": IMAGES["one"]}
            cases += [Case(f"{mode} {name} {n}", lambda x, p=p, m=mode: F.pad(x, p, mode=m).contiguous(), (x,)) for n, p in pads.items()]
        cases.append(Case(f"{mode} volume", lambda x, m=mode: F.pad(x, (1, 1, 0, 0, 1, 0), mode=m), (own(1, 2, 2, 3, 4),)))
        cases.append(Case(f"{mode} long", lambda x, m=mode: F.pad(x, (1, 2), mode=m), (own(3, 7, dtype=i64),)))
        cases.append(Case(f"{mode} short", lambda x, m=mode: F.pad(x, (2, 1), mode=m), (own(2, 3, dtype=bf16),)))
        cases.append(Case(f"{mode} no batch", lambda x, m=mode: F.pad(x, (1, 1), mode=m), (own(0, 2, 3),)))
    cases += [Case("one repeated", lambda x: F.pad(x, (3, 2), mode="replicate"), (own(2, 1),)),
              Case("all around", lambda x: F.pad(x, (5, 5), mode="circular"), (own(2, 5),))]
    assert_kernels(cases)


def test_constants():
    cases = [
        Case("image", lambda x: (F.pad(x, (1, 2, 0, 1), value=2.5), F.pad(x, (-1, 2, 1, -2)), F.pad(x, (0, 0))), (own(2, 3, 4, 5),)),
        Case("whole", lambda x: F.pad(x, (1, 1, 1, 1, 1, 1), value=-7), (own(2, 2, 2, dtype=i64),)),
        Case("big", lambda x: aten.constant_pad_nd(x, [1, 1], 2**62 + 1), (own(3, dtype=i64),)),
        Case("none left", lambda x: F.pad(x, (-2, -1)), (own(2, 3),)),
        Case("from nothing", lambda x: F.pad(x, (2, 1), value=1), (own(2, 0),)),
        Case("channels last", lambda x: F.pad(x, (1, 1, 1, 1)), (own(2, 3, 4, 4).to(memory_format=torch.channels_last),)),
        Case("infinite", lambda x: F.pad(x, (1, 0), value=float("-inf")), (own(3, 3).t(),)),
    ]
    assert_kernels(cases)


def test_gradients():
    cases = []
    for name, reflect, repeat in (("1d", aten.reflection_pad1d_backward, aten.replication_pad1d_backward),
                                  ("2d", aten.reflection_pad2d_backward, aten.replication_pad2d_backward),
                                  ("3d", aten.reflection_pad3d_backward, aten.replication_pad3d_backward)):
        n = int(name[0])
        pads, sizes = [2, 1, 1, 0, 0, 0][: 2 * n], (2, 3, *(3, 4, 5)[:n])
        padded = [*sizes[:2], *(sizes[2 + d] + pads[2 * (n - 1 - d)] + pads[2 * (n - 1 - d) + 1] for d in range(n))]
        for dtype in (f32, bf16) if n == 2 else (f32,):
            args = (own(*padded, dtype=f32).sin().to(dtype), own(*sizes, dtype=dtype))
            cases += [Case(f"reflect {name} {dtype}", lambda g, x, f=reflect, p=pads: f(g, x, p), args),
                      Case(f"repeat {name} {dtype}", lambda g, x, f=repeat, p=pads: f(g, x, p), args)]
    cases.append(Case("repeat far", lambda g, x: aten.replication_pad1d_backward(g, x, [30, 25]), (own(2, 57).sin(), own(2, 2))))
    assert_kernels(cases)
