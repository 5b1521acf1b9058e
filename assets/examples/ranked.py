"""A library call, a scan, and a sum that cancels: it differs from eager, and is no worse.

    pallascope -c "trace assets/examples/ranked.py:f f32[64,128]; check --buffers"
"""


def f(x):
    ranked = x.sort(-1).values
    return (ranked.cumsum(-1) * x.sin()).sum(-1)
