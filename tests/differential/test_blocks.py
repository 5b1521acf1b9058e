"""What blocks of models and steps of optimisers are made of, beside single operators."""

from __future__ import annotations

import pytest
import torch
from differential import Case, assert_agree, compare, like, pallascope

R = torch.randn


def compiled(function, *args, **options):
    torch._dynamo.reset()
    return torch.compile(function, backend="pallascope", fullgraph=True, dynamic=False, **options)(*args)


# ------------------------------------------------------------------------------------- numbers read from data


def numbers(x: torch.Tensor, i: torch.Tensor) -> tuple:
    top = x.max().item()
    first = i[0].item()
    torch._check(i.max().item() <= 16)
    return (
        x * top + first,
        top,
        first * 2 - 1,
        first // 2 + first % 3,
        first / 4 - top / 3,
        float(first) + top,
        torch.full((2, 3), top),
        torch.full((2,), first),
        torch.full_like(i, first),
        x.new_full((2,), top),
        torch.tensor(top),
        x.clamp(max=top / 2),
        x.clamp(0, top),
        torch.pow(x, first),
        x > top / 2,
        x.masked_fill(x > 0.5, top),
        torch.where(x > 0.5, x, top),
        i * first,
        i + top,
        i.to(torch.int8) * first,
        x.half() * top,
        x.bfloat16() + first,
        x[0] * first,
    )


def test_numbers_read_from_data_are_tensors():
    args = (torch.rand(4), torch.tensor([2, 3]))
    pallascope.reset_log()
    got = compiled(numbers, *args)
    want = numbers(*args)
    assert compare(got, want) == ""
    assert [type(v) for v in got] == [type(v) for v in want]
    assert [entry["torch"] for entry in pallascope.compile_log()] == [[]]
    with pytest.raises(RuntimeError, match="<= 16"):
        compiled(numbers, torch.rand(4), torch.tensor([2, 17]))


def test_numbers_of_the_forward_reach_the_backward():
    def f(x, i):
        return (x * i.max().item()).sin()

    x = R(5, requires_grad=True)
    i = torch.tensor([2, 3])
    (want,) = torch.autograd.grad(f(x, i).sum(), x)
    (got,) = torch.autograd.grad(compiled(f, x, i).sum(), x)
    assert compare(got, want) == ""


def test_a_number_that_the_trace_takes_for_granted_is_asserted():
    def f(x, i):
        first = i[0].item()
        torch._check(first == 2)
        torch._check_tensor_all(i > 0)
        return x[:first] * first

    x = R(5)
    function = torch.compile(f, backend="pallascope", fullgraph=True, dynamic=False)
    assert compare(function(x, torch.tensor([2, 3])), f(x, torch.tensor([2, 3]))) == ""
    for wrong in ([3, 3], [2, -1]):
        with pytest.raises(RuntimeError, match="assert"):
            function(x, torch.tensor(wrong))


@pytest.mark.parametrize(
    "function, node",
    [
        (lambda x: x[x > 0].sum(), "index"),
        (lambda x: torch.zeros(x.argmax().item()) + 1, "zeros"),
        (lambda x: torch.add(x, x, alpha=x.max().item()), "add"),
    ],
    ids=["selection", "size", "factor"],
)
def test_a_number_that_the_trace_needs_is_refused_with_its_node_and_line(function, node):
    with pytest.raises(pallascope.PallascopeError) as caught:
        compiled(function, R(5))
    assert caught.value.kind == "symbolic_size" and f"'{node}" in caught.value.message
    assert "test_blocks.py" in caught.value.where and "mask" in caught.value.remedy


# ------------------------------------------------------------------------------------------- lists of tensors


def adam(p, q, g, h, m, n, v, w):
    params, grads, first, second = [p, q], [g, h], [m, n], [v, w]
    torch._foreach_mul_(params, 1 - 0.01)
    torch._foreach_lerp_(first, grads, 0.1)
    torch._foreach_mul_(second, 0.999)
    torch._foreach_addcmul_(second, grads, grads, 0.001)
    steps = torch._foreach_sqrt(second)
    torch._foreach_div_(steps, [0.3, 0.2])
    torch._foreach_add_(steps, 1e-8)
    torch._foreach_addcdiv_(params, first, steps, [-0.01, -0.02])
    return torch._foreach_norm(params)


def each(a, b, c, d):
    torch._foreach_add_([a, b], [c, d], alpha=0.5)
    torch._foreach_sub_([a, b], 1.0)
    torch._foreach_maximum_([a, b], 0.1)
    torch._foreach_minimum_([a, b], [c.abs() + 1, d.abs() + 1])
    torch._foreach_clamp_max_([b], 3.0)
    torch._foreach_copy_([c], [a])
    torch._foreach_mul_([a, b], torch.tensor(2.0))
    kept = torch._foreach_pow([a, b], [2.0, 3.0]), torch._foreach_pow(2.0, [a, b])
    mixed = torch._foreach_lerp([a, b], [c, d], [c, d])
    torch._foreach_zero_([d])
    norms = torch._foreach_norm([a, b], 1), torch._foreach_norm([a, b], float("inf"))
    return kept, mixed, norms, torch._foreach_clamp_min([a, b], [b[0, :1], a])


def test_operators_on_lists_are_operators_on_their_elements():
    few, many = R(5), R(5, 4)
    pairs = [Case("adam", adam, (few, many, R(5), R(5, 4), R(5), R(5, 4), R(5).abs(), R(5, 4).abs()))]
    pairs += [
        Case(f"each {dtype}", each, tuple(t.to(dtype) for t in (R(4), R(4, 4), R(4), R(4, 4))))
        for dtype in (torch.float32, torch.float64, torch.bfloat16)
    ]
    assert_agree(pairs, left=())
    for case in pairs[:2]:
        mine, theirs = [tuple(like(t) for t in case.args) for _ in range(2)]
        got, want = compiled(case.function, *mine), case.function(*theirs)
        assert compare(got, want) == "" and compare(mine, theirs) == ""


# ------------------------------------------------------------------------------------- operators seen in blocks


def test_windows():
    names = ("hann_window", "hamming_window", "blackman_window", "bartlett_window")

    def windows(x):
        made = []
        for name in names:
            for count in (0, 1, 2, 7, 16):
                for periodic in (True, False):
                    for dtype in (torch.float32, torch.float64):
                        made.append(getattr(torch, name)(count, periodic=periodic, dtype=dtype))
        return made + [torch.hamming_window(9, True, 0.6, 0.3), x.unfold(-1, 16, 4) * torch.hann_window(16)]

    assert_agree([Case("windows", windows, (R(2, 40),))], left=())


def test_unpooling():
    def f(x, y):
        values, places = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
        deep, where = torch.nn.functional.max_pool3d(y, 2, return_indices=True)
        return (
            torch.nn.functional.max_unpool2d(values * 2, places, 2),
            torch.nn.functional.max_unpool2d(values, places * 0 + 3, 2, output_size=(7, 6)),
            torch.nn.functional.max_unpool3d(deep, where, 2),
        )

    assert_agree([Case("planes", f, (R(2, 3, 6, 6), R(2, 4, 4, 4)))], left=())


def test_a_scaled_product_added_in_place():
    """Traced as `prims.fma`."""

    def f(*args):
        for second, grad in zip(args[::2], args[1::2], strict=True):
            second.mul_(0.999).addcmul_(grad, grad, value=0.001)

    args = [R(4, 8).abs().to(d) for d in (torch.float32, torch.float64, torch.bfloat16) for _ in range(2)]
    mine, theirs = [[like(t) for t in args] for _ in range(2)]
    pallascope.reset_log()
    compiled(f, *mine)
    f(*theirs)
    assert compare(mine, theirs) == ""
    assert pallascope.compile_log()[-1]["torch"] == []


def test_random_slopes_that_are_not_drawn_outside_of_training():
    x = R(4, 6, requires_grad=True)
    layer = torch.nn.RReLU().eval()
    (want,) = torch.autograd.grad(layer(x).pow(2).sum(), x)
    (got,) = torch.autograd.grad(compiled(layer, x).pow(2).sum(), x)
    assert compare(got, want) == ""


def test_what_checks_its_argument_is_called_and_raises():
    def f(a, b):
        return torch.linalg.solve(a, b) + torch.linalg.cholesky(a @ a.mT + torch.eye(3)).sum()

    a, b = R(3, 3), R(3, 1)
    function = torch.compile(f, backend="pallascope", fullgraph=True, dynamic=False)
    assert compare(function(a, b), f(a, b), {"rtol": 1e-3, "atol": 1e-4}) == ""
    with pytest.raises(torch.linalg.LinAlgError):
        function(a * 0, b)
    torch._dynamo.reset()
    a.requires_grad_()
    (want,) = torch.autograd.grad(f(a, b).sum(), a)
    (got,) = torch.autograd.grad(compiled(f, a, b).sum(), a)
    assert compare(got, want, {"rtol": 1e-3, "atol": 1e-3}) == ""
