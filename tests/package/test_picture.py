"""Pictures and histograms of where two tensors differ."""

import json

import numpy as np
import pytest
import torch

from pallascope.difference import difference
from pallascope.picture import axes_text, look, matrix_of

NAN, INF = float("nan"), float("inf")


def brute(ours, eager):
    """The cells of a picture, an element at a time."""
    of_rows, of_cols = matrix_of(list(ours.shape))
    rows, cols = min(of_rows, 64), min(of_cols, 96)
    cells = np.zeros((rows, cols))
    apart = (ours.double() - eager.double()).abs().reshape(of_rows, of_cols).numpy()
    for r in range(rows):
        for c in range(cols):
            part = apart[r * of_rows // rows : (r + 1) * of_rows // rows]
            cells[r, c] = part[:, c * of_cols // cols : (c + 1) * of_cols // cols].max()
    return cells.reshape(-1).tolist()


@pytest.mark.parametrize(
    "sizes", [(1,), (97,), (64, 96), (65, 97), (200, 3), (3, 1000), (2, 3, 5, 7), (129, 1), (1, 1)]
)
def test_each_cell_is_the_largest_of_its_elements(sizes, monkeypatch):
    generator = torch.Generator().manual_seed(sum(sizes))
    ours, eager = (torch.randn(sizes, generator=generator) for _ in range(2))
    picture, histogram = look(ours, eager)
    assert picture["cells"] == brute(ours, eager)
    assert (picture["rows"], picture["cols"]) == (min(picture["of_rows"], 64), min(picture["of_cols"], 96))
    assert picture["of_rows"] * picture["of_cols"] == ours.numel() and picture["nan"] == []
    assert histogram["zero"] + sum(histogram["counts"]) == ours.numel()
    import sys

    for chunk in (5, 70, 400):
        monkeypatch.setattr(sys.modules["pallascope.picture"], "_CHUNK", chunk)
        assert look(ours, eager) == (picture, histogram)


def test_equal_tensors():
    x = torch.tensor([[1.0, -0.0, INF], [NAN, -INF, 3.0]])
    y = x.clone()
    y[0, 1] = 0.0
    picture, histogram = look(x, y)
    assert picture["cells"] == [0.0] * 6 and picture["nan"] == [] and picture["both_nan"] == [3]
    assert histogram == {"zero": 5, "nan": 0, "both_nan": 1, "first_exponent": None, "counts": []}


def test_one_wrong_element_is_in_its_cell():
    eager = torch.zeros(4, 50, 300)
    ours = eager.clone()
    ours[2, 31, 250] = -0.5  # row 131 of 200 is in cell 42 of 64, column 250 of 300 in cell 80 of 96
    picture, histogram = look(ours, eager)
    assert {k: v for k, v in enumerate(picture["cells"]) if v} == {42 * 96 + 80: 0.5}
    assert (picture["of_rows"], picture["of_cols"]) == (200, 300)
    assert picture["axes"] == "rows: axes 0-1 (4x50), columns: axis 2 (300)"
    assert histogram == {"zero": 59999, "nan": 0, "both_nan": 0, "first_exponent": -1, "counts": [1]}


@pytest.mark.parametrize("wrong", [(NAN, 1.0), (1.0, NAN), (INF, 1.0), (INF, -INF), (NAN, INF), (1.0, -INF)])
def test_a_mismatch_that_is_no_number(wrong):
    ours, eager = torch.zeros(2, 200), torch.zeros(2, 200)
    ours[1, 100], eager[1, 100] = wrong
    ours[1, 101] = 1e-3  # in the same cell
    picture, histogram = look(ours, eager)
    cell = 96 + (101 * 96 - 1) // 200
    assert picture["nan"] == [cell] and picture["both_nan"] == []
    assert sum(v > 0 for v in picture["cells"]) == 1 and histogram["nan"] == 1 and histogram["zero"] == 398
    json.dumps((picture, histogram), allow_nan=False)


def test_integers_are_exact():
    big = 2**62
    ours = torch.tensor([big + 1, -(2**63), 5, 7])
    eager = torch.tensor([big, 2**63 - 1, 5, 4])
    picture, histogram = look(ours, eager)
    assert picture["cells"] == [1.0, 2.0**64, 0.0, 3.0]
    assert histogram["zero"] == 1 and histogram["first_exponent"] == 0 and sum(histogram["counts"]) == 3
    u = torch.tensor([2**64 - 1, 0, 2**63], dtype=torch.uint64)
    v = torch.tensor([0, 2**64 - 1, 2**63 - 1], dtype=torch.uint64)
    assert difference(u, v).tolist() == [2.0**64, 2.0**64, 1.0]
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int32, torch.uint16, torch.uint32):
        a, b = torch.tensor([0, 1, 1]).to(dtype), torch.tensor([1, 1, 0]).to(dtype)
        assert look(a, b)[0]["cells"] == [1.0, 0.0, 1.0]


def test_decades_begin_at_powers_of_ten():
    values = [1e-7, 9.999999e-8, 1e-5, 1.0, 10.0, 999.9999, 1000.0, 5e-324, 1.7e308]
    ours = torch.tensor([values], dtype=torch.float64)
    _, histogram = look(ours, torch.zeros_like(ours))
    first = histogram["first_exponent"]
    found = {first + k: n for k, n in enumerate(histogram["counts"]) if n}
    assert found == {-324: 1, -8: 1, -7: 1, -5: 1, 0: 1, 1: 1, 2: 1, 3: 1, 308: 1}
    for k in range(-320, 309):
        _, histogram = look(torch.tensor([float(f"1e{k}")], dtype=torch.float64), torch.zeros(1).double())
        assert histogram["first_exponent"] == k
    # Two finite numbers further apart than any float64.
    big = torch.tensor([1.7e308], dtype=torch.float64)
    picture, histogram = look(big, -big)
    assert picture["nan"] == [] and picture["cells"][0] > 1.7e308 and histogram["counts"] == [1]


def test_other_dtypes():
    z = torch.tensor([1 + 2j, complex(NAN, 0), complex(0, INF)])
    assert look(z, z.clone())[0]["cells"] == [0.0] * 3 and look(z, z.clone())[0]["both_nan"] == [1]
    assert look(z[:1] + (3 + 4j), z[:1])[0]["cells"] == [5.0]
    e = torch.tensor([1.0, 2.0])
    for dtype in (torch.float8_e5m2, torch.float8_e4m3fn, torch.float16, torch.bfloat16):
        assert look(e.to(dtype), torch.tensor([1.0, 4.0]).to(dtype))[0]["cells"] == [0.0, 2.0]


def test_rank_zero_and_empty():
    picture, histogram = look(torch.tensor(1.5), torch.tensor(1.0))
    assert (picture["rows"], picture["cols"], picture["cells"]) == (1, 1, [0.5])
    assert picture["axes"] == "one number" and histogram["counts"] == [1]
    for sizes in ((0,), (0, 3), (3, 0), (2, 0, 4)):
        picture, histogram = look(torch.zeros(sizes), torch.zeros(sizes))
        assert (picture["rows"], picture["cols"], picture["cells"]) == (0, 0, [])
        assert histogram == {"zero": 0, "nan": 0, "both_nan": 0, "first_exponent": None, "counts": []}
    assert axes_text([7]) == "columns: axis 0 (7)"
    assert axes_text([4, 7]) == "rows: axis 0 (4), columns: axis 1 (7)"


def test_strides_do_not_matter():
    ours, eager = torch.randn(20, 30), torch.randn(20, 30)
    expected = look(ours, eager)
    assert look(ours.t().contiguous().t(), eager) == expected
    row = torch.randn(30)
    assert look(row.expand(20, 30), eager) == look(row.expand(20, 30).contiguous(), eager)
