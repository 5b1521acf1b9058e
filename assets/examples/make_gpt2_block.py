"""Makes gpt2_block.pt2 beside this file: one GPT-2 block with random weights, as torch.export.save writes it.

    .venv/bin/python assets/examples/make_gpt2_block.py
"""
import pathlib

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """Causal self-attention, written out so that each step is a node of its own."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).split(width, -1)
        q, k, v = [t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v)]
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        kept = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        weights = scores.masked_fill(~kept, float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = MLP(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


def with_relative_paths(program, root):
    """Stack traces name files as seen from `root` (torch's from its own folder), so that the file says the same on
    every machine."""
    torch_root = str(pathlib.Path(torch.__file__).parent.parent) + "/"
    for node in program.graph.nodes:
        trace = node.meta.get("stack_trace")
        if trace:
            node.meta["stack_trace"] = trace.replace(torch_root, "").replace(f"{root}/", "")
    return program


if __name__ == "__main__":
    here = pathlib.Path(__file__).resolve().parent
    torch.manual_seed(0)
    program = torch.export.export(Block().eval(), (torch.randn(2, 16, 64),))
    torch.export.save(with_relative_paths(program, here.parent.parent), here / "gpt2_block.pt2")
