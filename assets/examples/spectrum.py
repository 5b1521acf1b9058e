"""Operators on complex numbers, which PyTorch runs: the JAX program is cut there.

    pallascope -c "trace assets/examples/spectrum.py:f f32[64,128]; ls nodes torch; why n0"
"""
import torch


def f(x):
    power = torch.fft.rfft(x).abs().square()
    return power / power.sum(-1, keepdim=True)
