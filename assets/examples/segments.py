"""Sums by segment: a scatter that adds rows, a running total over it, and a reader that picks rows of the total.

    pallascope -c "trace assets/examples/segments.py:f f32[12,16] i64[12]; code; code --from loops; check"
"""

import torch


def f(x, segment):
    totals = torch.zeros(4, 16).index_add(0, segment, x)
    return totals.cumsum(0), totals.amax(1)
