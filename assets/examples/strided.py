"""Where bytes go: one element of eight is read, and a softmax over columns leaves no axis to tile a row on.

    pallascope -c "trace assets/examples/strided.py:f f32[2048,2048]; why d13; index k0"
"""


def f(x):
    thin = x[:, ::8].sin()
    shares = x.softmax(0)
    return thin.sum(0), shares * 2
