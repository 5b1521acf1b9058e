"""Layouts of what is written, what is returned, and arguments that share memory."""

from __future__ import annotations

import torch

from . import case, ramp

# ----------------------------------------------------------------------------------------------- layouts of inputs


@case("transposed input", lambda: (ramp(5, 4).t(), ramp(2, 3, 4).permute(2, 0, 1)))
def _(x, y):
    x.mul_(2)
    y[1].add_(1)
    return x, y * 1


@case("sliced input with an offset", lambda: (ramp(8, 9)[2:6, 1:7:2], ramp(20)[5:11]))
def _(x, y):
    x.mul_(2)
    x[0] = 1
    y[1:].neg_()
    return x + 1, y


@case("channels last input", lambda: (ramp(2, 3, 4, 4).contiguous(memory_format=torch.channels_last),))
def _(x):
    x.mul_(2)
    x[:, 1].add_(1)
    return x, x + 1, x.relu_()


@case("size-one axes of odd strides", lambda: (torch.as_strided(ramp(40), (1, 8), (3, 5)),))
def _(x):
    x.add_(1)
    return (x * 2).sum(0), x


@case("expanded input that is read", lambda: (ramp(4, 1).expand(4, 6), ramp(4, 6)))
def _(x, y):
    y.add_(x)
    return y * 1, x + 1, x


@case("16-bit and integer arguments", lambda: (ramp(3, 4, dtype=torch.bfloat16), ramp(3, 4, dtype=torch.float16), ramp(3, 4, dtype=torch.int8), torch.zeros(3, 4, dtype=torch.bool)))
def _(a, b, c, d):
    a.add_(b)
    b.mul_(c)
    c.add_(100).mul_(3)
    d.logical_or_(c)
    d[0] ^= True
    return a + 1, b + 1, c + 1, d


@case("promotion is cast back", lambda: (ramp(3, 4, dtype=torch.float16), ramp(3, 4), ramp(3, 4, dtype=torch.int32)))
def _(h, f, i):
    h.add_(f)
    h.mul_(f)
    h.sub_(i)
    f.div_(h.abs() + 1)
    i.mul_(i)
    return h + 1, f + 1, i + 1


# ------------------------------------------------------------------------------------------------ what is returned


@case("an argument is returned", lambda: (ramp(3, 4), ramp(3)))
def _(x, y):
    return x, y, x + 1, x


@case("a changed argument is returned", lambda: (ramp(3, 4), ramp(3)))
def _(x, y):
    x.mul_(2)
    return x, y.add_(1), x, x[1]


@case("views of arguments are returned", lambda: (ramp(4, 6), ramp(4, 6)))
def _(x, y):
    x.add_(1)
    return x.t(), x[1:3], x.view(-1), y[::2], y.t()[1:], y.unsqueeze(0), y.expand(2, 4, 6), x.diagonal(), x.detach()


@case("the same result twice", lambda: (ramp(3, 4),))
def _(x):
    y = x.sin()
    return y, y, [y]


@case("a result and its view", lambda: (ramp(3, 4),))
def _(x):
    y = x.sin()
    v = y.t()
    v[0].mul_(2)
    return y, v, y[1], y.view(-1)[2:5]


@case("views of an intermediate only", lambda: (ramp(3, 4),))
def _(x):
    y = x.sin()
    return y[1:], y.t(), y[0]


@case("a changed intermediate", lambda: (ramp(3, 4),))
def _(x):
    y = x.sin()
    z = y[:, 1:3]
    z.zero_()
    return z, y.sum(), z.t()


@case("nothing but a mutation", lambda: (ramp(3, 4),))
def _(x):
    x[1:].mul_(3)


@case("a no-op gives its argument", lambda: (ramp(3, 4),))
def _(x):
    return x.contiguous(), x.to(torch.float32), x.reshape(3, 4), x.view(3, 4), x.expand(3, 4), x.float(), x + 0


@case("metadata changes in place", lambda: (ramp(3, 4), ramp(1, 3), ramp(3), ramp(3, 4), ramp(2, 3, 4)))
def _(a, b, c, d, e):
    a = a * 1
    b = b + 0
    c = c + 0
    d = d + 0
    e = e + 0
    a.t_()
    a[0].add_(1)
    b.squeeze_(0)
    c.unsqueeze_(1).mul_(2)
    d.transpose_(0, 1)
    e.swapaxes_(0, 2)[0].zero_()
    return a, b, c, d * 2, e


@case("a shape changed under a second name", lambda: (ramp(1, 3), ramp(1, 3), ramp(2, 1, 3), ramp(1, 3)))
def _(a, b, c, d):
    """`to` of the same dtype and its kin give back the very tensor, so that both names have the new shape."""
    a, b, c, d = a + 1, b + 1, c + 1, d + 1
    a2, b2, c2, d2, d3 = a.to(torch.float32), b.type_as(b), torch.real(c), d.float(), d.contiguous()
    row = a[0]
    a2.squeeze_().mul_(2)
    b.unsqueeze_(0)
    b2[0, 0].zero_()
    c2.squeeze_(1).t_()
    c.t()[0].add_(5)
    d3.squeeze_()
    d2.to(torch.float32).unsqueeze_(1).neg_()
    return a, a2 + 1, row, b * 2, b2, c, c2, d, d2, d3.sum(0), torch.cat([a, d[:, 0]])


@case("detach_ and requires_grad_", lambda: (ramp(3, 4),))
def _(x):
    y = x * 2
    y.detach_()
    y.add_(1)
    return y.detach().mul_(2), y


# ------------------------------------------------------------------------------------------- aliased arguments


def overlapping() -> tuple[torch.Tensor, ...]:
    base = ramp(12)
    return base[:8], base[4:]


def base_and_view() -> tuple[torch.Tensor, ...]:
    base = ramp(4, 5)
    return base, base[1], base.t()


def disjoint() -> tuple[torch.Tensor, ...]:
    base = ramp(4, 6)
    return base[:, :3], base[:, 3:]


def twice() -> tuple[torch.Tensor, ...]:
    x = ramp(3, 4)
    return x, x


@case("aliased: overlapping slices", overlapping)
def _(x, y):
    x.mul_(2)
    y.add_(1)
    return x + 1, y + 1


@case("aliased: base and views", base_and_view)
def _(x, row, columns):
    row.mul_(2)
    columns[0].add_(1)
    x[2] = 0
    return x + 1, row + 1, columns + 1


@case("aliased: disjoint halves", disjoint)
def _(x, y):
    x.copy_(y)
    y.zero_()
    return x * 1, y + 1


@case("aliased: one tensor twice", twice)
def _(x, y):
    x.add_(1)
    y.mul_(2)
    return x + y


@case("aliased: read only", base_and_view)
def _(x, row, columns):
    return x + row, columns.sum(), row


@case("aliased: returned", twice)
def _(x, y):
    x.add_(1)
    return y, x, y * 2


@case("a write through a view of another dtype", lambda: (ramp(4, 4), ramp(3, 4)))
def _(x, y):
    x.view(torch.int32).bitwise_and_(0x7FFFFFFF)
    y.view(torch.int16)[0, 0] = 3
    return x + 1, y + 1
