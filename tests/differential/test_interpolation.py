"""Interpolation, sampling and sliding blocks against eager; none is left to PyTorch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from differential import Case, plain
from kernels import assert_kernels

f32, f64, bf16, f16, u8 = torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.uint8
aten = torch.ops.aten
SIZES = {"double": {"scale_factor": 2}, "third": {"size": 3}, "factor": {"scale_factor": 1.7},
         "recomputed": {"scale_factor": 1.7, "recompute_scale_factor": True}, "same": {"scale_factor": 1}}


def image(*sizes, dtype=f32, seed=0):
    return plain(dtype, *sizes, seed=seed)


def resized(name, x, modes, sizes=SIZES, **more):
    return [Case(f"{name} {m} {n}", lambda x, m=m, a=a: F.interpolate(x, mode=m, **a, **more), (x,)) for m in modes for n, a in sizes.items()]


def test_nearest():
    modes = ("nearest", "nearest-exact")
    cases = resized("line", image(2, 3, 10), modes, {"small": {"scale_factor": 0.37}}) + resized("image", image(2, 3, 6, 6), modes)
    some = {"pair": {"size": (3, 11)}, "half": {"scale_factor": 0.5}}
    cases += resized("volume", image(1, 2, 4, 4, 4), modes, {"odd": {"size": (3, 5, 4)}})
    for dtype in (f64, u8):
        cases += resized(str(dtype), image(1, 2, 6, 7, dtype=dtype), modes, {"pair": {"size": (3, 11)}})
    cases += resized("channels last", image(2, 3, 6, 4).to(memory_format=torch.channels_last), modes, some)
    cases += resized("transposed", image(2, 6, 6, 6).transpose(1, 3), ("nearest",), some)
    cases += [Case(f"many {o}", lambda x, o=o: F.interpolate(x, size=o), (torch.arange(57.0).reshape(1, 1, 57),)) for o in (100, 31, 224)]
    cases.append(Case("none", lambda x: F.interpolate(x, scale_factor=2), (image(0, 3, 4, 4),)))
    assert_kernels(cases)


@pytest.mark.parametrize("align", [False, True])
def test_linear(align):
    pair = {"pair": {"size": (3, 11)}}
    cases = resized("line", image(2, 3, 10), ("linear",), pair | {"pair": {"size": 17}}, align_corners=align)
    cases += resized("image", image(2, 3, 6, 6), ("bilinear",), align_corners=align)
    cases += resized("image", image(2, 3, 6, 6), ("bicubic",), {"factor": SIZES["factor"]}, align_corners=align)
    cases += resized("volume", image(1, 2, 4, 4, 4), ("trilinear",), {"odd": {"size": (3, 5, 4)}}, align_corners=align)
    for dtype, modes in ((f64, ("bilinear",)), (f16, ("bicubic",)), (bf16, ("bilinear",))):
        cases += resized(str(dtype), image(1, 2, 6, 7, dtype=dtype), modes, pair, align_corners=align)
    cases += resized("channels last", image(2, 3, 6, 4).to(memory_format=torch.channels_last), ("bilinear",), pair, align_corners=align)
    cases += resized("transposed", image(2, 6, 6, 6).transpose(1, 3), ("bilinear",), pair, align_corners=align)
    # A weight of another rounding shows where the numbers are large and the source is long.
    cases.append(Case("long", lambda x: F.interpolate(x, size=1000, mode="linear", align_corners=align), (image(1, 1, 777) * 1e4,)))
    assert_kernels(cases)


def test_overloads_without_lists():
    x = image(1, 2, 5, 6)
    cases = [
        Case("nearest", lambda x: aten.upsample_nearest2d(x, [7, 9], 1.4, 1.5), (x,)),
        Case("nearest none", lambda x: aten.upsample_nearest2d(x, [7, 9]), (x,)),
        Case("exact", lambda x: aten._upsample_nearest_exact2d(x, [7, 9], 1.4, None), (x,)),
        Case("bilinear", lambda x: aten.upsample_bilinear2d(x, [7, 9], False, 1.5, 1.5), (x,)),
        Case("bilinear corners", lambda x: aten.upsample_bilinear2d(x, [7, 9], True), (x,)),
        Case("bicubic", lambda x: aten.upsample_bicubic2d(x, [7, 9], False, 1.5, None), (x,)),
        Case("linear", lambda x: aten.upsample_linear1d(x[0], [9], False, 1.6), (x,)),
    ]
    assert_kernels(cases)


def test_compiled():
    """torch.compile takes interpolation apart before a backend sees it."""
    import pallascope

    table = [{"scale_factor": 2}, {"size": (5, 9), "mode": "bilinear"}, {"scale_factor": 2, "mode": "bicubic"}, {"size": (5, 9), "mode": "nearest-exact"}]
    torch._dynamo.reset()
    pallascope.reset_log()
    fn = lambda x: [F.interpolate(x, **a) for a in table]
    x = image(2, 3, 4, 6)
    with torch.no_grad():
        got = torch.compile(fn, backend="pallascope", fullgraph=True)(x)
    torch.testing.assert_close(got, fn(x))
    assert not pallascope.compile_log()[0]["torch"]


def test_gradients():
    cases = []
    for n, o in {"double": (12, 8), "odd": (3, 9), "same": (6, 4)}.items():
        g, sizes = image(2, 3, *o), [2, 3, 6, 4]
        cases += [
            Case(f"nearest {n}", lambda g, o=o: aten.upsample_nearest2d_backward(g, o, sizes), (g,)),
            Case(f"exact {n}", lambda g, o=o: aten._upsample_nearest_exact2d_backward(g, o, sizes), (g,)),
            Case(f"bilinear {n}", lambda g, o=o: aten.upsample_bilinear2d_backward(g, o, sizes, False), (g,)),
            Case(f"corners {n}", lambda g, o=o: aten.upsample_bilinear2d_backward(g, o, sizes, True), (g,)),
            Case(f"linear {n}", lambda g, o=o: aten.upsample_linear1d_backward(g[0], o[1:], [3, o[0], 4], False), (g,)),
        ]
    assert_kernels(cases)


def test_blocks():
    cases = []
    table = {"plain": {"kernel_size": 2}, "overlap": {"kernel_size": 3, "padding": 1}, "stride": {"kernel_size": 3, "stride": 2, "padding": 1},
             "dilated": {"kernel_size": 2, "dilation": 2, "stride": 2}, "pairs": {"kernel_size": (3, 2), "stride": (1, 3), "padding": (0, 1)}}
    for n, a in table.items():
        for kind, x in {"image": image(2, 3, 6, 7), "square": image(6, 6, 6).transpose(0, 2)}.items():
            if (kind == "square") != (n in ("plain", "pairs")):
                continue
            cases.append(Case(f"unfold {kind} {n}", lambda x, a=a: F.unfold(x, **a), (x,)))
            cases.append(Case(f"fold {kind} {n}", lambda x, y, a=a: F.fold(x, y.shape[-2:], **a), (F.unfold(x, **a), x)))
    cases.append(Case("fold bf16", lambda x: F.fold(x, (6, 6), 3), (image(2, 18, 16, dtype=bf16),)))
    assert_kernels(cases)


def test_sampling():
    cases = []
    grid = torch.randn(2, 5, 4, 2, generator=torch.Generator().manual_seed(3)) * 1.3
    grid[0, 0, 0] = torch.tensor([1.0, -1.0])
    far = grid * 40
    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                for name, g in {"near": grid, "far": far}.items():
                    if (name == "far") == align:
                        continue
                    cases.append(Case(f"{mode} {padding} {align} {name}", lambda x, g, a=(mode, padding, align): F.grid_sample(x, g, *a),
                                      (image(2, 3, 6, 7), g), {"rtol": 1e-4, "atol": 1e-4} if name == "far" else {}))
    cases += [
        Case("square", lambda x, g: F.grid_sample(x, g, align_corners=False), (image(2, 2, 4, 4).transpose(2, 3), grid)),
        Case("f64", lambda x, g: F.grid_sample(x, g, align_corners=True), (image(2, 2, 4, 4, dtype=f64), grid.double())),
        Case("channels last", lambda x, g: F.grid_sample(x, g, align_corners=True), (image(2, 3, 4, 6).to(memory_format=torch.channels_last), grid)),
        Case("nan", lambda x, g: F.grid_sample(x, g, "bilinear", "border", True), (image(2, 2, 4, 4), torch.full((2, 1, 1, 2), float("nan")))),
        Case("one", lambda x, g: F.grid_sample(x, g, "bilinear", "reflection", True), (image(2, 2, 1, 1), grid)),
        Case("affine", lambda t: (F.affine_grid(t, (2, 3, 4, 5), align_corners=False), F.affine_grid(t, (2, 3, 4, 1), align_corners=True)), (image(2, 2, 3),)),
        Case("affine 3d", lambda t: (F.affine_grid(t, (2, 3, 2, 4, 5), align_corners=False), F.affine_grid(t, (2, 3, 2, 4, 5), align_corners=True)), (image(2, 3, 4),)),
    ]
    assert_kernels(cases)
