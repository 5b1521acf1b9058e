"""Writes through views, copies, and the order of reads and writes."""

from __future__ import annotations

import torch

from . import case, ramp

# ------------------------------------------------------------------------------------------- writes through views


@case("slice", lambda: (ramp(6, 5),))
def _(x):
    x[1:5:2].mul_(2)
    x[:, 1:3] += 10
    return x.sum(0)


@case("slice of an intermediate", lambda: (ramp(6, 5),))
def _(x):
    y = x * 1
    y[1:5:2].mul_(2)
    y[:, -2:] = y[:, :2]
    return y


@case("select and nested views", lambda: (ramp(3, 4, 5),))
def _(x):
    x[1].select(1, 2).fill_(100)
    x[0, :, 1:4][1:].neg_()
    x[2].t()[1] = 7
    return x + 1


@case("diagonal", lambda: (ramp(4, 4), ramp(3, 5, 5)))
def _(x, y):
    x.diagonal().add_(100)
    y.diagonal(1, 1, 2).mul_(2)
    return x + 1, y + 1


@case("transposes and permutes", lambda: (ramp(4, 4), ramp(2, 3, 4)))
def _(x, y):
    x.t()[0] = 5
    y.permute(2, 0, 1)[1].mul_(3)
    y.transpose(0, 2)[0].sub_(1)
    return x.t() * 1, y + 1


@case("views by reshape", lambda: (ramp(4, 6), ramp(4, 6)))
def _(x, y):
    x.view(2, 12)[1, ::3] = 3
    y.reshape(-1)[5:9] = 1
    y.flatten()[0] = 77
    y.unflatten(1, (2, 3))[:, 1].neg_()
    return x + 1, y + 1


@case("reshape that copies is no view", lambda: (ramp(4, 6),))
def _(x):
    x.t().reshape(-1)[0:5] = 99
    x.t().contiguous()[0] = 99
    return x + 1


@case("unbind, split, chunk", lambda: (ramp(4, 6), ramp(6, 4), ramp(6, 4)))
def _(x, y, z):
    a, b, c, d = x.unbind(0)
    b.add_(a)
    d.copy_(b)
    p, q = y.split([2, 4])
    q[:2] = p
    for k, piece in enumerate(z.chunk(3)):
        piece.mul_(k)
    return x + 1, y + 1, z + 1


@case("unsqueeze, squeeze, movedim", lambda: (ramp(4, 1, 6),))
def _(x):
    x.unsqueeze(0)[0, 1].fill_(1)
    x.squeeze(1)[2, 3:].fill_(2)
    x.movedim(0, 2)[:, 0, 3] = 4
    return x + 1


@case("as_strided", lambda: (ramp(4, 6), ramp(30)))
def _(x, y):
    x.as_strided((3, 2), (6, 2), 1).fill_(50)
    y.as_strided((5,), (5,), 2).mul_(2)
    return x + 1, y + 1


@case("unfold without overlap", lambda: (ramp(12),))
def _(x):
    x.unfold(0, 3, 3).mul_(10)
    return x + 1


@case("expanded views read", lambda: (ramp(1, 5), ramp(5)))
def _(x, y):
    e = x.expand(4, 5)
    x.add_(1)
    y.mul_(2)
    return e + y


@case("view of another dtype read after a write", lambda: (ramp(4, 4),))
def _(x):
    v = x.view(torch.int32)
    a = v + 0
    x.add_(1)
    return a, v + 1


@case("split view of size zero", lambda: (ramp(4, 5), ramp(0, 5), ramp(3)))
def _(x, y, z):
    x[2:2].fill_(9)
    x[:, 5:].mul_(2)
    y.add_(1)
    y[0:0] = 3
    z[torch.empty(0, dtype=torch.int64)] = 5.0
    return x + 1, y + 1, z + 1


@case("rank zero", lambda: (ramp(), ramp(3)))
def _(x, y):
    x.add_(2)
    y[1].mul_(x)
    y[0] = x
    return x * 1, y + 1


# ------------------------------------------------------------------------------------------------------- copy_


@case("copy_ casts and broadcasts", lambda: (ramp(3, 4, dtype=torch.int32), ramp(4), torch.zeros(3, 4, dtype=torch.bool), ramp(3, 1), ramp(3, 4, dtype=torch.bfloat16)))
def _(i, r, b, c, h):
    i.copy_(r * 3)
    b.copy_(c)
    h.copy_(r)
    h[:, 0].copy_(torch.tensor(3.3))
    h[1:].copy_(i[0])
    return i + 1, b.sum(), h + 1


@case("copy_ between views of one tensor", lambda: (ramp(4, 6), ramp(6, 6)))
def _(x, y):
    x[:, :3].copy_(x[:, 3:])
    x[0].copy_(x[3])
    y[:3].copy_(y[3:].flip(0))
    y.copy_(y.t().clone())
    return x + 1, y + 1


@case("overlapping shift of a clone", lambda: (ramp(10),))
def _(x):
    x[1:] = x[:-1].clone()
    x[:-2] += x[2:].clone()
    return x + 1


@case("copy_ keeps the target's layout", lambda: (ramp(4, 5).t(), ramp(5, 4)))
def _(x, y):
    x.copy_(y)
    return x, x + 1


@case("copy_ from itself", lambda: (ramp(3, 4),))
def _(x):
    x.copy_(x)
    x[:] = x
    x[1:2].copy_(x[1:2])
    return x + 1


@case("set by index of every kind", lambda: (ramp(4, 5, 3), ramp(5, 3)))
def _(x, y):
    x[0] = y
    x[..., 0] = 1
    x[1, 2:, 1] = torch.tensor(4)
    x[:, None, 2] = 6
    x[-1][-1][-1] = 100
    return x + 1


# ------------------------------------------------------------------------------------------- order of reads and writes


@case("write after read", lambda: (ramp(4, 5),))
def _(x):
    a = x * 2
    x.add_(100)
    b = x * 2
    x[0] = 0
    return a, b, x + 1


@case("read after a write through another view", lambda: (ramp(4, 5),))
def _(x):
    rows, columns = x[1:], x[:, 1:]
    rows.mul_(2)
    a = columns.sum()
    columns.sub_(1)
    b = rows.sum()
    rows[0].add_(columns[0, 0])
    return a, b, x.clone(), columns + rows[:, :1].sum()


@case("a view keeps up with its base", lambda: (ramp(4, 5),))
def _(x):
    y = x * 1
    v = y.t()
    w = v[1:3]
    y.add_(1)
    w.mul_(3)
    y.exp_()
    return v + 0, w + 0, y


@case("a loop of writes", lambda: (ramp(6, 4), ramp(4)))
def _(x, h):
    out = torch.zeros_like(x)
    h = h.clone()
    for t in range(6):
        h.mul_(0.5).add_(x[t]).tanh_()
        out[t] = h
    return out, h


@case("swap of rows", lambda: (ramp(4, 5),))
def _(x):
    t = x[0].clone()
    x[0] = x[1]
    x[1] = t
    return x + 1


@case("a value is read before and after", lambda: (ramp(5),))
def _(x):
    y = x.sin()
    z = y + 1
    y.mul_(2)
    return z + y, y


@case("the result of an in-place operator is its argument", lambda: (ramp(5),))
def _(x):
    y = x.add_(1)
    z = y.mul_(2)
    x.sub_(3)
    return y + z


@case("augmented assignment", lambda: (ramp(3, 4), ramp(3, 4)))
def _(x, y):
    x += y
    x *= 2
    x[0] -= y[1]
    x[1, 2] /= 4
    y //= 2
    return x + y
