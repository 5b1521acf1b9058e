"""Layer norm with weight and bias: the row statistics broadcast back over the rows.

    pallascope -c "trace assets/examples/layer_norm.py:f f32[8,16] f32[16] f32[16]; index k0; check"
"""
import torch.nn.functional as F


def f(x, weight, bias):
    return F.layer_norm(x, (x.shape[-1],), weight, bias)
