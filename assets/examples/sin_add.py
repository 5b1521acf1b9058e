"""The function that started it: two pointwise operators, one kernel.

    pallascope -c "trace assets/examples/sin_add.py:f f32[4] f32[4]; code; check"
"""


def f(x, y):
    return x.sin() + y
