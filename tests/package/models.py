"""Small models for the tests of the package."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    """Nested modules, a buffer, a lifted constant, a split."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 16)])
        self.register_buffer("scale", torch.full((8,), 0.5))

    def forward(self, x):
        x = self.norm(x) * self.scale
        a, b = self.layers[1](F.gelu(self.layers[0](x))).chunk(2, -1)
        return a * b.sigmoid()


class Mutating(nn.Module):
    """In-place writes to an input, through a view of it, and to a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        self.count.add_(1)
        x[:, 0].mul_(2)
        y = x.t()
        y.add_(1)
        return x.sum(0) + self.count


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 6)

    def forward(self, ids):
        return self.embed(ids.view(-1).to(torch.int64)).sum(0)


def dropout(x):
    return F.dropout(x, 0.5, training=True) * 2


def no_gradient(x):
    with torch.no_grad():
        y = x * 2
    return y + x


MODELS = {
    "block": (Block, lambda: (torch.randn(4, 8),)),
    "mutating": (Mutating, lambda: (torch.randn(4, 3),)),
    "convolution": (Convolution, lambda: (torch.randn(2, 3, 6, 6),)),
    "tokens": (Tokens, lambda: (torch.tensor([[1, 2, 3], [10, 0, 5]]),)),
}
