"""Softmax over rows: two reductions and two pointwise steps that share one kernel.

    pallascope -c "trace assets/examples/softmax.py:f f32[8,16]; ls decisions kind=fuse; code; check"
"""


def f(x):
    return x.softmax(-1)
