"""Losses against eager: as torch.export leaves them, and forward and backward as torch.compile does. All are kernels."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from differential import Case, assert_agree, compare, leaves, pallascope

f32, f64, bf16, f16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
REDUCTIONS = ("none", "mean", "sum")


def by_dtype(*dtypes):
    return pytest.mark.parametrize("dtype", dtypes, ids=lambda d: str(d).removeprefix("torch."))


def normal(dtype, *sizes, seed=0):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed), dtype=f64).to(dtype)


def uniform(dtype, *sizes, seed=0):
    return torch.rand(sizes, generator=torch.Generator().manual_seed(seed), dtype=f64).to(dtype)


def signs(dtype, *sizes):
    return torch.where(normal(f64, *sizes, seed=5) > 0, 1, -1).to(dtype)


PAIRS = {
    "mse": F.mse_loss, "l1": F.l1_loss, "smooth_l1": lambda x, y, **k: F.smooth_l1_loss(x, y, beta=0.7, **k),
    "smooth_l1_0": lambda x, y, **k: F.smooth_l1_loss(x, y, beta=0.0, **k), "huber": lambda x, y, **k: F.huber_loss(x, y, delta=0.6, **k),
    "soft_margin": lambda x, y, **k: F.soft_margin_loss(x, y.detach().sign(), **k), "kl_log": lambda x, y, **k: F.kl_div(x, y, log_target=True, **k),
    "kl": lambda x, y, **k: F.kl_div(x, y.abs(), **k), "bce_logits": lambda x, y, **k: F.binary_cross_entropy_with_logits(x, y.abs(), **k),
    "bce_logits_weights": lambda x, y, **k: F.binary_cross_entropy_with_logits(x, y.abs(), y[0].detach().abs(), pos_weight=y[1].detach().abs(), **k),
    "bce": lambda x, y, **k: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), **k),
    "bce_weight": lambda x, y, **k: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), y.detach().abs(), **k),
    "poisson": lambda x, y, **k: F.poisson_nll_loss(x, y.abs() * 3, full=True, **k),
    "poisson_plain": lambda x, y, **k: F.poisson_nll_loss(x.abs(), y.abs() * 3, log_input=False, **k),
    "hinge": lambda x, y, **k: F.hinge_embedding_loss(x, torch.where(y > 0, 1, -1).to(x.dtype), margin=0.8, **k),
    "ranking": lambda x, y, **k: F.margin_ranking_loss(x, y, torch.where(y > 0, 1, -1).to(x.dtype), margin=0.3, **k),
    "triplet": lambda x, y, **k: F.triplet_margin_loss(x, y, x.flip(0), **k),
    "triplet_swap": lambda x, y, **k: F.triplet_margin_loss(x, y, x.flip(0), margin=0.5, p=1.0, swap=True, **k),
    "cosine": lambda x, y, **k: F.cosine_embedding_loss(x, y, torch.where(y[:, 0] > 0, 1, -1), margin=0.1, **k),
}  # fmt: skip


@by_dtype(f32, bf16, f16)
def test_pairs(dtype):
    x, y = normal(dtype, 6, 7), normal(dtype, 6, 7, seed=1)
    wide = {"atol": 1e-2, "rtol": 2e-2} if dtype in (f16, bf16) else {}
    cases = [
        # The sums of 16-bit composites are rounded at other places of a tree of additions.
        Case(f"{name} {r}", lambda x, y, fn=fn, r=r: fn(x, y, reduction=r), (x, y), wide if name in ("triplet", "triplet_swap", "cosine") else {})
        for name, fn in PAIRS.items()
        for r in REDUCTIONS
    ]
    cases += [
        Case("pairwise", F.pairwise_distance, (x, y), wide),
        Case("pairwise_3", lambda x, y: F.pairwise_distance(x, y, p=3.0, keepdim=True), (x, y), wide),
        Case("similarity", F.cosine_similarity, (x, y), wide),
        Case("similarity_0", lambda x, y: F.cosine_similarity(x, y, dim=0), (x, y[:1]), wide),
    ]
    assert_agree(cases, left=())


def label_cases(dtype):
    x, probabilities = normal(dtype, 6, 5), normal(dtype, 6, 5, seed=2).softmax(1)
    image, labels = normal(dtype, 2, 5, 3, 4), torch.randint(0, 5, (2, 3, 4), generator=torch.Generator().manual_seed(3))
    t, weight = torch.tensor([0, 4, 2, 2, 1, 3]), uniform(dtype, 5, seed=4)
    some = torch.tensor([0, -100, 2, -100, 1, 3])
    image_some = torch.where(labels == 2, -100, labels)
    for r in REDUCTIONS:
        for name, target in (("", t), (" ignored", some), (" all ignored", torch.full_like(t, -100))):
            yield Case(f"nll {r}{name}", lambda x, t, r=r: F.nll_loss(x, t, reduction=r), (x, target))
            yield Case(f"ce {r}{name}", lambda x, t, r=r: F.cross_entropy(x, t, reduction=r), (x, target))
            yield Case(f"nll weight {r}{name}", lambda x, t, w, r=r: F.nll_loss(x, t, w, reduction=r), (x, target, weight))
            yield Case(f"ce weight {r}{name}", lambda x, t, w, r=r: F.cross_entropy(x, t, w, reduction=r), (x, target, weight))
            if dtype in (f32, f64):
                yield Case(f"smooth {r}{name}", lambda x, t, r=r: F.cross_entropy(x, t, reduction=r, label_smoothing=0.2), (x, target))
                yield Case(
                    f"smooth weight {r}{name}",
                    lambda x, t, w, r=r: F.cross_entropy(x, t, w, reduction=r, label_smoothing=0.2), (x, target, weight),
                )  # fmt: skip
        yield Case(f"index 2 {r}", lambda x, t, r=r: F.cross_entropy(x, t, reduction=r, ignore_index=2), (x, t))
        yield Case(f"image {r}", lambda x, t, r=r: F.cross_entropy(x, t, reduction=r), (image, labels))
        yield Case(f"image nll {r}", lambda x, t, w, r=r: F.nll_loss(x, t, w, reduction=r), (image, image_some, weight))
        yield Case(f"row {r}", lambda x, t, r=r: F.cross_entropy(x[0], t[1], reduction=r), (x, t))
        yield Case(f"probabilities {r}", lambda x, p, r=r: F.cross_entropy(x, p, reduction=r), (x, probabilities))
        yield Case(
            f"probabilities weight {r}",
            lambda x, p, w, r=r: F.cross_entropy(x, p, w, reduction=r, label_smoothing=0.1), (x, probabilities, weight),
        )  # fmt: skip


@by_dtype(f32, bf16)
def test_labels(dtype):
    cases = list(label_cases(dtype))
    if dtype == bf16:
        for c in cases:
            c.tolerance = {"atol": 2e-2, "rtol": 2e-2}
    assert_agree(cases, left=())


def test_a_label_out_of_range_raises():
    x = normal(f32, 6, 5)
    lowered = pallascope.lower(F.nll_loss, x, torch.tensor([0, 4, 2, 2, 1, 3]))
    for bad in (5, -1):
        with pytest.raises(IndexError, match="out of range"):
            lowered.call(x, torch.tensor([0, 4, 2, bad, 1, 3]))


def test_a_probability_out_of_range_raises():
    x, y = uniform(f32, 6), uniform(f32, 6, seed=1)
    lowered = pallascope.lower(F.binary_cross_entropy, x, y)
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        lowered.call(x + 1, y)


@by_dtype(f32, bf16)
def test_training(dtype):
    """torch.compile with gradients: the forward and backward nodes of autograd."""
    labels = torch.tensor([0, 4, 2, -100, 1, 3])
    weight = uniform(dtype, 7, seed=4)
    image_labels = torch.randint(0, 3, (2, 7), generator=torch.Generator().manual_seed(3))

    def f(x, y):
        found = [fn(x, y, reduction=r) for name, fn in PAIRS.items() for r in ("mean", "sum") if "triplet" not in name]
        found += [fn(x, y, reduction="none").mean() for name, fn in PAIRS.items() if "triplet" not in name]
        for r in REDUCTIONS:
            found.append(F.cross_entropy(x, labels, weight, reduction=r).sum())
            found.append(F.nll_loss(y, labels, reduction=r).sum())
            found.append(F.cross_entropy(x.reshape(2, 3, 7), image_labels, reduction=r).sum())
        found.append(F.cross_entropy(x, y.softmax(1)))
        found.append(F.cross_entropy(x, labels, label_smoothing=0.1))
        return torch.stack(found)

    results = []
    pallascope.reset_log()
    for fn in (f, torch.compile(f, backend="pallascope", fullgraph=True)):
        torch._dynamo.reset()
        args = [normal(dtype, 6, 7).requires_grad_(), normal(dtype, 6, 7, seed=1).requires_grad_()]
        out = fn(*args)
        (out.float() * torch.linspace(0.5, 1.5, out.numel())).sum().backward()
        results.append([out.detach(), *[a.grad for a in args]])
    left = {op for entry in pallascope.compile_log() for op in entry["torch"]}
    assert not left, left
    tolerance = {"atol": 1e-4, "rtol": 1e-4} if dtype == f32 else {"atol": 1.0, "rtol": 3e-2}
    assert compare(results[1], results[0], tolerance) == ""
    assert len(leaves(results)) == 6
