"""Pooling against eager: values, positions, ties, NaN, paddings, ceil mode, layouts, and the gradients."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from differential import Case, plain
from kernels import assert_kernels

f32, f64, bf16, f16 = torch.float32, torch.float64, torch.bfloat16, torch.float16


def image(*sizes, dtype=f32, seed=0):
    return plain(dtype, *sizes, seed=seed)


def tied(*sizes, dtype=f32, seed=0):
    """Few distinct values, so that windows have ties; NaN, infinities and all-negative windows among them."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-2, 2, sizes, generator=generator).to(dtype)
    if dtype.is_floating_point:
        some = torch.rand(sizes, generator=generator)
        x[some < 0.05] = float("nan")
        x[(some > 0.05) & (some < 0.15)] = float("-inf")
        x[some > 0.97] = float("inf")
    return x


AVG = {
    "plain": {"kernel_size": 2},
    "overlap": {"kernel_size": 3, "stride": 2},
    "same": {"kernel_size": 3, "stride": 1, "padding": 1},
    "not counted": {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
    "ceil": {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    "ceil padded": {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    "ceil not counted": {"kernel_size": 2, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
    "gaps": {"kernel_size": 2, "stride": 3},
    "one": {"kernel_size": 1},
    "large": {"kernel_size": 6, "stride": 1, "padding": 2},
}  # fmt: skip
MAX = {
    "plain": {"kernel_size": 2},
    "overlap": {"kernel_size": 3, "stride": 2},
    "padded": {"kernel_size": 3, "stride": 2, "padding": 1},
    "dilated": {"kernel_size": 2, "stride": 1, "dilation": 2, "padding": 1},
    "dilated far": {"kernel_size": 3, "stride": 2, "dilation": 3, "padding": 1, "ceil_mode": True},
    "ceil": {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    "gaps": {"kernel_size": 2, "stride": 3},
    "large": {"kernel_size": 7, "stride": 1, "padding": 3},
}  # fmt: skip


def test_average_of_images():
    cases = [Case(f"avg {n}", lambda x, a=a: F.avg_pool2d(x, **a), (image(2, 3, 9, 8),)) for n, a in AVG.items()]
    cases += [Case(f"square {n}", lambda x, a=AVG[n]: F.avg_pool2d(x, **a), (image(8, 8, 8),)) for n in ("ceil padded", "large")]
    cases += [
        Case("pairs", lambda x: F.avg_pool2d(x, (3, 2), (2, 1), (1, 0)), (image(1, 2, 7, 7),)),
        Case("override", lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5), (image(1, 2, 7, 7),)),
        Case("line", lambda x: F.avg_pool2d(x, (1, 40), 1), (image(1, 2, 3, 44),)),
        Case("longs", lambda x: F.avg_pool2d(x, 3, 2, 1), (image(1, 2, 7, 7, dtype=torch.int64),)),
        Case("longs over", lambda x: F.avg_pool2d(x, 3, 2, divisor_override=-4), (image(1, 2, 7, 7, dtype=torch.int64),)),
        Case("bf16", lambda x: F.avg_pool2d(x, 3, 2, 1), (image(1, 2, 7, 7, dtype=bf16),)),
        Case("f16", lambda x: F.avg_pool2d(x, 6, 1, 2), (image(1, 2, 7, 7, dtype=f16),)),
        Case("f64", lambda x: F.avg_pool2d(x, 3, 2, 1), (image(1, 2, 7, 7, dtype=f64),)),
        Case("nan", lambda x: F.avg_pool2d(x, 3, 2, 1), (tied(1, 2, 9, 9),)),
        Case("channels last", lambda x: F.avg_pool2d(x, 3, 2, 1), (image(2, 3, 8, 6).to(memory_format=torch.channels_last),)),
        Case("transposed", lambda x: F.avg_pool2d(x, 3, 2, 1), (image(2, 6, 6, 6).transpose(1, 3),)),
        Case("sliced", lambda x: F.avg_pool2d(x, 2), (image(2, 3, 8, 16)[..., ::2],)),
        Case("no batch of no channel", lambda x: F.avg_pool2d(x, 2), (image(2, 3, 4, 4)[:0],)),
    ]
    assert_kernels(cases)


def test_average_of_lines_and_volumes():
    cases = [Case(f"1d {n}", lambda x, a=a: F.avg_pool1d(x, **a), (image(2, 3, 11),)) for n, a in AVG.items()]
    cases += [Case(f"3d {n}", lambda x, a=AVG[n]: F.avg_pool3d(x, **a), (image(1, 2, 5, 6, 7),)) for n in ("plain", "ceil not counted")]
    cases += [
        Case("1d no batch", lambda x: F.avg_pool1d(x, 3), (image(3, 11),)),
        Case("1d long", lambda x: F.avg_pool1d(x, 40, 3), (image(2, 3, 60),)),
        Case("3d override", lambda x: F.avg_pool3d(x, 3, 2, 1, divisor_override=7), (image(2, 5, 5, 5),)),
        Case("3d large", lambda x: F.avg_pool3d(x, 4, 1), (image(1, 2, 6, 5, 5),)),
        Case("lp1", lambda x: F.lp_pool1d(x, 2, 3), (image(2, 3, 11),)),
        Case("lp2", lambda x: F.lp_pool2d(x, 2, 3, 2), (image(2, 3, 9, 9),)),
        Case("mean of all", lambda x: (x.mean((2, 3)), x.mean((2, 3), keepdim=True)), (image(2, 3, 9, 9),)),
    ]
    assert_kernels(cases)


def test_maximum_of_images():
    cases = [Case(f"max {n}", lambda x, a=a: F.max_pool2d(x, return_indices=True, **a), (tied(2, 3, 9, 8),)) for n, a in MAX.items()]
    for dtype in (f16, torch.int32, torch.uint8):
        x = tied(2, 3, 9, 8, dtype=dtype) if dtype != torch.uint8 else plain(dtype, 2, 3, 9, 8) % 3
        cases += [Case(f"{dtype} {n}", lambda x, a=MAX[n]: F.max_pool2d(x, return_indices=True, **a), (x,)) for n in ("padded", "large")]
    assert_kernels(cases)


def test_maximum_of_lines_and_volumes():
    cases = [Case(f"1d {n}", lambda x, a=MAX[n]: F.max_pool1d(x, return_indices=True, **a), (tied(2, 3, 17),)) for n in ("padded", "dilated far", "large")]
    cases += [Case(f"3d {n}", lambda x, a=MAX[n]: F.max_pool3d(x, return_indices=True, **a), (tied(1, 2, 7, 8, 9),)) for n in ("dilated", "padded")]
    cases += [
        Case("value only", lambda x: F.max_pool2d(x, 3, 2, 1), (tied(8, 8, 8),)),
        Case("f64", lambda x: F.max_pool2d(x, 2, return_indices=True), (tied(2, 8, 8, dtype=f64),)),
        Case("all -inf", lambda x: F.max_pool2d(x - float("inf"), 3, 2, 1, return_indices=True), (image(1, 2, 7, 7),)),
        Case("all -inf large", lambda x: F.max_pool2d(x - float("inf"), 7, 2, 3, return_indices=True), (image(1, 2, 9, 9),)),
        Case("long line", lambda x: F.max_pool1d(x, 40, 3, 20, return_indices=True), (tied(1, 2, 90),)),
        Case("whole", lambda x: F.max_pool2d(x, (9, 8), return_indices=True), (tied(2, 3, 9, 8),)),
        Case("tiles", lambda x: F.max_pool2d(x, 6, return_indices=True), (tied(2, 3, 18, 12),)),
        Case("pairs", lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 0), return_indices=True), (tied(1, 2, 7, 7),)),
        Case("lowest", lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True), (torch.full((1, 4, 4), -(2**63)),)),
        Case("channels last", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
             (tied(2, 3, 8, 6).to(memory_format=torch.channels_last),)),
        Case("transposed", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), (tied(2, 6, 6, 6).transpose(1, 3),)),
        Case("sliced", lambda x: F.max_pool2d(x, 2, return_indices=True), (tied(2, 3, 8, 16)[..., ::2],)),
        Case("no batch", lambda x: F.max_pool2d(x, 2), (image(2, 3, 4, 4)[:0],)),
    ]
    assert_kernels(cases)


ADAPTIVE = {"divides": 4, "one": 1, "less": 5, "more": 11, "same": 8}


def test_adaptive():
    cases = [Case(f"avg2 {n}", lambda x, o=o: F.adaptive_avg_pool2d(x, o), (image(2, 3, 8, 8),)) for n, o in ADAPTIVE.items()]
    cases += [Case(f"max2 {n}", lambda x, o=o: F.adaptive_max_pool2d(x, o, return_indices=True), (tied(2, 3, 8, 8),))
              for n, o in ADAPTIVE.items()]
    cases += [
        Case("avg1", lambda x: F.adaptive_avg_pool1d(x, 5), (image(2, 3, 8),)),
        Case("max1", lambda x: F.adaptive_max_pool1d(x, 3, return_indices=True), (tied(2, 3, 8),)),
        Case("avg3", lambda x: F.adaptive_avg_pool3d(x, (3, 2, 4)), (image(1, 2, 5, 4, 7),)),
        Case("max3", lambda x: F.adaptive_max_pool3d(x, (3, 2, 4), return_indices=True), (tied(1, 2, 5, 4, 7),)),
        Case("none", lambda x: F.adaptive_avg_pool2d(x, (None, 3)), (image(2, 7, 8),)),
        Case("mixed", lambda x: F.adaptive_max_pool2d(x, (4, 3), return_indices=True), (tied(2, 8, 8),)),
        Case("long", lambda x: F.adaptive_avg_pool1d(x, 2), (image(2, 3, 77),)),
        Case("long max", lambda x: F.adaptive_max_pool1d(x, 2, return_indices=True), (tied(2, 3, 77),)),
        Case("bf16", lambda x: F.adaptive_avg_pool2d(x, 3), (image(2, 3, 7, 7, dtype=bf16),)),
        Case("channels last", lambda x: F.adaptive_avg_pool2d(x, 3), (image(2, 3, 7, 7).to(memory_format=torch.channels_last),)),
        Case("channels last one", lambda x: F.adaptive_avg_pool2d(x, 1), (image(2, 3, 7, 7).to(memory_format=torch.channels_last),)),
        Case("max channels last", lambda x: F.adaptive_max_pool2d(x, 3, return_indices=True),
             (tied(2, 3, 7, 7).to(memory_format=torch.channels_last),)),
        Case("transposed", lambda x: F.adaptive_avg_pool2d(x, 4), (image(2, 6, 6, 6).transpose(1, 3),)),
    ]
    assert_kernels(cases)


# -------------------------------------------------------------------------------------------------- gradients

aten = torch.ops.aten
WINDOWS = {
    "plain": (2, 2, 0, 1), "overlap": (3, 2, 1, 1), "same": (3, 1, 1, 1), "gaps": (2, 3, 0, 1), "dilated": (2, 2, 1, 2),
    "pairs": ([3, 2], [2, 1], [1, 0], 1), "large": (6, 1, 2, 1),
}  # fmt: skip


def test_gradients_of_averages():
    cases = []
    for name, (k, s, p, d) in WINDOWS.items():
        for ceil, counted in ((False, True), (True, False)) if name in ("overlap", "gaps") else ((True, True),):
            x = image(2, 2, 9, 8)
            g = F.avg_pool2d(x, k, s, p, ceil, counted).cos()
            cases.append(Case(f"{name} {ceil} {counted}", lambda g, x, a=(k, s, p, ceil, counted): aten.avg_pool2d_backward(
                g, x, *[[v] if type(v) is int else v for v in a], None), (g, x)))
    x = image(1, 2, 5, 6, 7)
    cases += [
        Case("override", lambda g, x: aten.avg_pool2d_backward(g, x, [3], [2], [1], False, True, 5), (image(2, 4, 4), image(2, 7, 7))),
        Case("3d", lambda g, x: aten.avg_pool3d_backward(g, x, [3], [2], [1], False, False, None), (F.avg_pool3d(x, 3, 2, 1), x)),
        Case("bf16", lambda g, x: aten.avg_pool2d_backward(g, x, [3], [2], [1], False, True, None),
             (image(2, 4, 4, dtype=bf16), image(2, 7, 7, dtype=bf16))),
        Case("channels last", lambda g, x: aten.avg_pool2d_backward(g, x, [3], [2], [1], False, True, None),
             tuple(image(2, 3, n, n).to(memory_format=torch.channels_last) for n in (4, 7))),
    ]
    for name, o in ADAPTIVE.items():
        cases.append(Case(f"adaptive {name}", aten._adaptive_avg_pool2d_backward, (image(2, 3, o, o), image(2, 3, 8, 8))))
    cases.append(Case("adaptive 3d", aten._adaptive_avg_pool3d_backward, (image(2, 3, 2, 4), image(2, 5, 4, 7))))
    assert_kernels(cases)


def test_gradients_of_maxima():
    cases = []
    for name, (k, s, p, d) in WINDOWS.items():
        x = tied(2, 2, 9, 8)
        out, at = F.max_pool2d(x, k, s, p, d, True, return_indices=True)
        lists = [[v] if type(v) is int else v for v in (k, s, p, d)]
        cases.append(Case(name, lambda g, x, i, a=lists: aten.max_pool2d_with_indices_backward(g, x, *a, True, i), (torch.randn(out.shape), x, at)))
    x = tied(1, 2, 7, 8, 9)
    out, at = F.max_pool3d(x, 3, 2, 1, return_indices=True)
    cases.append(Case("3d", lambda g, x, i: aten.max_pool3d_with_indices_backward(g, x, [3], [2], [1], [1], False, i), (torch.randn(out.shape), x, at)))
    for name, o in ADAPTIVE.items():
        x = tied(2, 3, 8, 8)
        out, at = F.adaptive_max_pool2d(x, o, return_indices=True)
        cases.append(Case(f"adaptive {name}", aten.adaptive_max_pool2d_backward, (torch.randn(out.shape), x, at)))
    assert_kernels(cases)
