"""Figures and verdicts of one comparison."""

import json
import math

import pytest
import torch

from pallascope.compare import compare, tolerance_for, ulp_distance

NAN, INF = float("nan"), float("inf")


def test_equal_tensors_pass():
    x = torch.randn(3, 4)
    row = compare(x, x.clone(), x.double())
    assert row["verdict"] == "passed" and row["reasons"] == []
    assert (row["max_abs"], row["max_rel"], row["max_ulp"], row["mismatched"]) == (0.0, 0.0, 0.0, 0)
    assert row["first"] is None and row["worst"] is None and row["as_close_as_eager"] is True
    assert row["rmse"] == row["rmse_eager"] == 0.0 and row["strides_equal"]
    assert (row["dtype"], row["sizes"], row["strides"]) == ("f32", [3, 4], [4, 1])


def test_first_and_worst():
    eager = torch.zeros(3, 4)
    ours = eager.clone()
    ours[1, 2], ours[2, 3] = 0.5, -2.0
    row = compare(ours, eager)
    assert row["verdict"] == "failed" and row["mismatched"] == 2
    assert row["first"] == {"index": [1, 2], "ours": 0.5, "eager": 0.0}
    assert row["worst"] == {"index": [2, 3], "ours": -2.0, "eager": 0.0}
    assert row["max_abs"] == 2.0 and row["max_rel"] == 0.0  # relative to 0 means nothing
    assert "2 of 12 elements" in row["reasons"][0]


def test_the_worst_within_the_tolerance_is_named_too():
    eager = torch.ones(4)
    ours = eager.clone()
    ours[2] += 1e-6
    row = compare(ours, eager)
    assert row["verdict"] == "passed" and row["first"] is None and row["worst"]["index"] == [2]


@pytest.mark.parametrize(
    "ours, eager, verdict",
    [
        ([NAN], [NAN], "passed"),
        ([NAN], [1.0], "failed"),
        ([1.0], [NAN], "failed"),
        ([INF], [INF], "passed"),
        ([INF], [-INF], "failed"),
        ([INF], [3e38], "failed"),
        ([3e38], [INF], "failed"),
        ([0.0], [-0.0], "passed"),
        ([-0.0], [0.0], "passed"),
        ([NAN], [INF], "failed"),
    ],
)
def test_special_values(ours, eager, verdict):
    row = compare(torch.tensor(ours), torch.tensor(eager))
    assert row["verdict"] == verdict
    assert row["nan"] == sum(map(math.isnan, ours)) and row["nan_eager"] == sum(map(math.isnan, eager))
    assert row["inf"] == sum(map(math.isinf, ours)) and row["inf_eager"] == sum(map(math.isinf, eager))
    json.dumps(row, allow_nan=False)
    if verdict == "failed":
        assert row["first"]["index"] == [0]


def test_a_nan_is_worse_than_any_difference():
    row = compare(torch.tensor([5.0, NAN, 9.0]), torch.zeros(3))
    assert row["worst"]["index"] == [1] and row["worst"]["ours"] == "nan" and row["max_abs"] == 9.0


def test_agrees_with_torch_testing():
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        eager = torch.randn(50, generator=generator, dtype=torch.float64).to(dtype)
        for scale in (1e-8, 1e-6, 1e-5, 1e-4, 1e-2, 0.1):
            ours = (
                eager.double() * (1 + scale * torch.randn(50, generator=generator, dtype=torch.float64))
            ).to(dtype)
            try:
                torch.testing.assert_close(ours, eager)
                expected = "passed"
            except AssertionError:
                expected = "failed"
            assert compare(ours, eager)["verdict"] == expected, (dtype, scale)


def test_given_tolerances():
    ours, eager = torch.tensor([1.01]), torch.tensor([1.0])
    assert compare(ours, eager)["verdict"] == "failed"
    assert compare(ours, eager, tolerance={"rtol": 0.1})["verdict"] == "passed"
    assert compare(ours, eager, tolerance={"atol": 0.1, "rtol": None})["tolerance"] == {
        "rtol": 1.3e-6,
        "atol": 0.1,
    }
    assert tolerance_for(torch.int32) == (0.0, 0.0)
    assert tolerance_for(torch.float8_e5m2) == (0.0, 0.0)


def test_ulp_distance():
    one = torch.tensor([1.0])
    after = torch.nextafter(one, torch.tensor([2.0]))
    assert ulp_distance(one, after).item() == 1
    assert ulp_distance(torch.tensor([0.0]), torch.tensor([-0.0])).item() == 0
    tiny = torch.tensor([1e-45])
    assert ulp_distance(tiny, -tiny).item() == 2
    assert ulp_distance(torch.tensor([-1.0]), -after).item() == 1
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        x = torch.tensor([1.5], dtype=dtype)
        assert ulp_distance(x, x + torch.finfo(dtype).eps).item() == 1
    big = torch.tensor([1.7e308], dtype=torch.float64)
    assert ulp_distance(big, -big).item() > 1e18
    assert compare(after, one)["max_ulp"] == 1.0
    assert compare(torch.tensor([1]), torch.tensor([2]))["max_ulp"] is None


def test_flushed_subnormals_are_not_wrong():
    eager = torch.tensor([1e-40, 1.0, -1e-42, 1e-40])
    ours = torch.tensor([0.0, 1.0, -0.0, 1e-40])
    row = compare(ours, eager, tolerance={"atol": 0.0, "rtol": 0.0})
    assert row["verdict"] == "passed" and row["flushed"] == 2 and row["mismatched"] == 0
    ours[0] = 1.0
    row = compare(ours, eager, tolerance={"atol": 0.0, "rtol": 0.0})
    assert row["verdict"] == "failed" and row["first"]["index"] == [0]


def test_what_a_flushed_operand_explains_is_not_wrong():
    eager, flushed = torch.tensor([0.0, 2.0, 3.0]), torch.tensor([NAN, 2.0, -INF])
    row = compare(torch.tensor([NAN, 2.0, -INF]), eager, flushed=flushed)
    assert row["verdict"] == "passed" and row["flushed"] == 2
    row = compare(torch.tensor([NAN, NAN, -INF]), eager, flushed=flushed)
    assert row["verdict"] == "failed" and row["first"]["index"] == [1] == row["worst"]["index"]


def test_distance_to_float64():
    exact = torch.linspace(0.1, 3, 1000, dtype=torch.float64).sin()
    eager = exact.float()
    row = compare(eager + 3e-6, eager, exact, tolerance={"atol": 1e-4})
    assert (
        row["verdict"] == "passed"
        and row["as_close_as_eager"] is False
        and row["rmse"] > 10 * row["rmse_eager"]
    )
    row = compare(eager, eager + 3e-6, exact, tolerance={"atol": 1e-4})
    assert row["as_close_as_eager"] is True
    row = compare(eager, eager)
    assert row["rmse"] is None and row["as_close_as_eager"] is None
    row = compare(torch.tensor([INF]), torch.tensor([INF]), torch.tensor([1e39], dtype=torch.float64))
    json.dumps(row, allow_nan=False)


def test_dtype_and_shape():
    row = compare(torch.zeros(3), torch.zeros(3, dtype=torch.float64))
    assert (
        row["verdict"] == "failed"
        and "dtype is f32, eager's is f64" in row["reasons"][0]
        and row["mismatched"] == 0
    )
    row = compare(torch.zeros(3), torch.zeros(4))
    assert row["verdict"] == "failed" and "sizes are [3]" in row["reasons"][0]
    assert compare(None, None)["verdict"] == "passed"
    assert compare(None, torch.zeros(1))["verdict"] == "failed"
    assert compare(torch.zeros(2), torch.zeros(2, dtype=torch.complex64))["verdict"] == "failed"


def test_strides_are_told_and_not_judged():
    x = torch.randn(3, 4)
    row = compare(x.t().contiguous().t(), x)
    assert row["verdict"] == "passed" and row["strides_equal"] is False
    assert row["strides"] == [1, 3] and row["expected_strides"] == [4, 1]
    one = torch.zeros(1, 4)
    assert compare(one.as_strided((1, 4), (77, 1)), one)["strides_equal"]


@pytest.mark.parametrize(
    "dtype",
    [
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint16,
        torch.uint32,
        torch.uint64,
    ],
)
def test_integers_have_to_be_equal(dtype):
    eager = torch.tensor([0, 1, 1]).to(dtype)
    ours = torch.tensor([0, 1, 0]).to(dtype)
    assert compare(eager, eager.clone())["verdict"] == "passed"
    row = compare(ours, eager)
    assert row["verdict"] == "failed" and row["first"]["index"] == [2] and row["max_abs"] == 1.0


def test_large_integers_differ_exactly():
    a, b = torch.tensor([2**62 + 1]), torch.tensor([2**62])
    row = compare(a, b)
    assert row["verdict"] == "failed" and row["first"] == {"index": [0], "ours": 2**62 + 1, "eager": 2**62}
    assert row["max_abs"] == 1.0 and row["worst"] == row["first"]


def test_complex_and_float8():
    z = torch.tensor([1 + 2j, complex(NAN, 0)])
    assert compare(z, z.clone())["verdict"] == "passed"
    row = compare(z + torch.tensor([1j, 0]), z)
    assert row["verdict"] == "failed" and row["first"]["ours"] == "(1+3j)"
    e = torch.tensor([1.0, 2.0]).to(torch.float8_e5m2)
    assert compare(e, e.clone())["verdict"] == "passed"
    assert compare(e, torch.tensor([1.0, 3.0]).to(torch.float8_e5m2))["mismatched"] == 1


def test_empty_and_scalar():
    assert (
        compare(torch.zeros(0, 3), torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.float64))["verdict"]
        == "passed"
    )
    row = compare(torch.tensor(1.0), torch.tensor(2.0))
    assert row["first"] == {"index": [], "ours": 1.0, "eager": 2.0}


def test_several_chunks(monkeypatch):
    import sys

    eager = torch.arange(100.0).reshape(10, 10)
    ours = eager.clone()
    ours[3, 3] += 1
    ours[9, 8] += 5
    whole = compare(ours, eager, eager.double(), detail=True)
    monkeypatch.setattr(sys.modules["pallascope.compare"], "_CHUNK", 7)
    for chunk in (7, 25):  # parts of a row, several rows
        monkeypatch.setattr(sys.modules["pallascope.picture"], "_CHUNK", chunk)
        assert compare(ours, eager, eager.double(), detail=True) == whole
    assert whole["first"]["index"] == [3, 3] and whole["worst"]["index"] == [9, 8]


def test_detail_is_there_or_null():
    row = compare(torch.zeros(2, 3), torch.ones(2, 3), detail=True)
    assert row["picture"]["cells"] == [1.0] * 6 and row["histogram"]["counts"] == [6]
    row = compare(torch.zeros(2, 3).double(), torch.ones(2, 3), detail=True)
    assert row["verdict"] == "failed" and row["picture"]["cells"] == [1.0] * 6
    for ours in (torch.zeros(2, 4), torch.zeros(2, 3, dtype=torch.complex64), None):
        row = compare(ours, torch.zeros(2, 3), detail=True)
        assert row["picture"] is None and row["histogram"] is None
    assert "picture" not in compare(torch.zeros(2), torch.zeros(2))
