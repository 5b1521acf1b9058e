"""Checks of a module beside eager, with modules that are wrong on purpose."""

import json
import re

import pytest
import torch

import pallascope
from conftest import fake_source
from models import MODELS, Mutating
from pallascope import PallascopeError
from pallascope.check import check_graph, neutral_jax, summarise
from pallascope.execute import load_module, run_mode, time_mode
from pallascope.inputs import random_inputs


def prepared(function, *args, change=""):
    """(graph, module, random inputs); `change` are lines put before the end of the module's call."""
    program = pallascope.trace(function, *args)
    graph = program.graph()
    source = fake_source(graph).replace("    return run.outputs\n", change + "    return run.outputs\n")
    return graph, load_module(source, "test"), random_inputs(graph, 0, program.tensors)[0]


@pytest.mark.parametrize("name", MODELS)
def test_a_right_module_passes(name):
    cls, make = MODELS[name]
    graph, module, inputs = prepared(cls().eval(), *make())
    result, values = check_graph(graph, module, inputs, detail=True)
    assert result["verdict"] == "passed" and result["float64"] is None
    assert set(result["seconds_by_mode"]) == {"debug", "steady"}
    for row in result["outputs"]:
        assert row["verdict"] == "passed" and set(row["modes"]) == {"debug", "steady"}
        assert row["modes"]["steady"]["as_close_as_eager"]
    assert len(values["outputs"]["steady"]) == 1
    json.dumps(result, allow_nan=False)


def test_rows_of_mutated_arguments():
    graph, module, inputs = prepared(Mutating(), torch.randn(4, 3))
    before = [t.clone() for t in inputs]
    result, _ = check_graph(graph, module, inputs)
    assert [(r["kind"], r["name"]) for r in result["outputs"]] == [
        ("output", graph["outputs"][0]["value"]),
        ("argument", "b_count"),
        ("argument", "x"),
    ]
    assert all(torch.equal(a, b) for a, b in zip(inputs, before))


def test_a_wrong_output_in_one_mode():
    graph, module, inputs = prepared(
        lambda x: x.sin(),
        torch.randn(4, 5),
        change="    if mode == 'debug':\n        run.outputs[0][2, 3] += 1\n",
    )
    result, _ = check_graph(graph, module, inputs)
    (row,) = result["outputs"]
    assert result["verdict"] == row["verdict"] == "failed" and row["worst_mode"] == "debug"
    assert row["modes"]["debug"]["first"]["index"] == [2, 3] and row["modes"]["steady"]["verdict"] == "passed"
    result, _ = check_graph(graph, module, inputs, modes=["steady"])
    assert result["verdict"] == "passed"
    result, _ = check_graph(graph, module, inputs, tolerance={"atol": 2.0})
    assert result["verdict"] == "passed"


def test_a_mutation_that_was_forgotten_and_one_too_many():
    graph, module, inputs = prepared(lambda x, y: x.add_(1) + y, torch.randn(3), torch.randn(3))
    module.call = lambda args, mode="steady": module.run_graph(module.GRAPH, args).outputs
    result, _ = check_graph(graph, module, inputs)
    assert [r["verdict"] for r in result["outputs"]] == ["passed", "failed"]
    assert result["outputs"][1]["name"] == "x"

    graph, module, inputs = prepared(
        lambda x, y: x + y, torch.randn(3), torch.randn(3), change="    args[1].zero_()\n"
    )
    result, _ = check_graph(graph, module, inputs)
    assert [(r["kind"], r["verdict"]) for r in result["outputs"]] == [
        ("output", "passed"),
        ("argument", "failed"),
    ]
    assert "the kernels changed it" in result["outputs"][1]["modes"]["debug"]["reasons"][-1]


def test_wrong_dtypes_counts_and_nones():
    graph, module, inputs = prepared(lambda x: x * 2, torch.randn(3))
    module.call = lambda args, mode="steady": [args[0].double() * 2]
    assert check_graph(graph, module, inputs)[0]["verdict"] == "failed"
    module.call = lambda args, mode="steady": [None]
    assert check_graph(graph, module, inputs)[0]["verdict"] == "failed"
    module.call = lambda args, mode="steady": []
    with pytest.raises(PallascopeError, match="gave 0 outputs"):
        check_graph(graph, module, inputs)


def test_aliases_are_told():
    graph, module, inputs = prepared(lambda x: (x.t(), x + 1), torch.randn(2, 3))
    module.call = lambda args, mode="steady": [args[0].t().clone(), args[0] + 1]
    rows = check_graph(graph, module, inputs)[0]["outputs"]
    figures = rows[0]["modes"]["steady"]
    assert (
        figures["expected_aliases"] == ["x"] and figures["aliases"] == [] and rows[0]["verdict"] == "passed"
    )
    assert rows[1]["modes"]["steady"]["expected_aliases"] == []


def test_what_flushing_explains_passes():
    graph, module, _ = prepared(lambda x, y: x / y, torch.ones(3), torch.ones(3))
    module.call = lambda args, mode="steady": [torch.tensor([float("nan"), 2.0, 0.0])]
    inputs = [torch.tensor([0.0, 4.0, 0.0]), torch.tensor([1e-40, 2.0, 1.0])]
    torch.set_flush_denormal(False)
    result, _ = check_graph(graph, module, inputs)
    assert result["verdict"] == "passed" and result["outputs"][0]["modes"]["steady"]["flushed"] == 1
    inputs[1][0] = 1.0
    assert check_graph(graph, module, inputs)[0]["verdict"] == "failed"


def test_random_operators_draw_the_same_numbers():
    graph, module, inputs = prepared(torch.nn.Dropout(0.5).train(), torch.randn(50))
    result, _ = check_graph(graph, module, inputs, seed=3)
    assert result["verdict"] == "passed" and "random" in result["notes"][0]


def test_why_there_is_no_float64():
    graph, module, inputs = prepared(lambda x: x.view(torch.int32) + 1, torch.randn(3))
    result, _ = check_graph(graph, module, inputs)
    assert result["verdict"] == "passed" and "reads the bits" in result["float64"]
    assert result["outputs"][0]["modes"]["debug"]["rmse"] is None


# A module as it is generated, with launches: `_main` functions that _call_debug calls one after the other.
LAUNCHING = """
import torch

INPUTS, OUTPUTS = [{}], None


def reference(args):
    return None


def sin_main(x, out):
    out.copy_(x.sin())


def library_mm_main(a, b, out):
    out.copy_(a @ b)


def _call_debug(x):
    t_buf1 = torch.empty(4, 4)
    sin_main(x, t_buf1)
    r_buf2 = torch.ops.aten.cumsum.default(t_buf1, 0)
    t_buf3 = torch.empty(4, 4)
    library_mm_main(r_buf2, t_buf1, t_buf3)
    t_buf4 = torch.empty(4, 4)
    sin_main(t_buf3, t_buf4)
    r_buf5 = torch.ops.aten.cumsum.default(t_buf4, 0)
    return [r_buf5]


def call(args, mode="steady"):
    return _call_debug(*args)
"""


def launching(change=("", "")):
    """(graph, module, inputs, steps of it); `change` replaces text of the module."""

    def f(x):
        a = x.sin()
        return ((a.cumsum(0) @ a).sin()).cumsum(0)

    program = pallascope.trace(f, torch.randn(4, 4))
    graph = program.graph()
    assert LAUNCHING.count(change[0])

    def step(buffer, node, name=None, call=None):
        value = {
            "buffer": f"b{buffer}",
            "variable": f"{'t' if name else 'r'}_buf{buffer}",
            "node": "n0",
            "node_name": node,
            "output": 0,
            "value": node,
            "sizes": [4, 4],
            "strides": [4, 1],
            "offset": 0,
        }
        kernel = f"k{buffer}" if name == "sin" else None
        return {"kernel": kernel, "call": call, "name": name, "torch": not name, "values": [value]}

    steps = [
        step(1, "sin", "sin"),
        step(2, "cumsum", call="aten.cumsum.default"),
        step(3, "matmul", "library_mm", "aten.mm.default"),
        step(4, "sin_1", "sin"),
        step(5, "cumsum_1", call="aten.cumsum.default"),
    ]
    module = load_module(LAUNCHING.replace(*change), "test")
    return graph, module, random_inputs(graph, 0, program.tensors)[0], steps


def test_buffers_are_compared_in_execution_order():
    graph, module, inputs, steps = launching()
    before = dict(vars(module))
    told = []
    result, _ = check_graph(
        graph, module, inputs, buffers=steps, launches=3, detail=True, progress=lambda *a: told.append(a)
    )
    assert dict(vars(module)) == before, "the hooks are gone"
    assert result["verdict"] == "passed" and result["first_divergence"] is None
    assert [(r["buffer"], r["node_name"], r["kernel"], r["call"]) for r in result["buffers"]] == [
        ("b1", "sin", "k1", None),
        ("b2", "cumsum", None, "aten.cumsum.default"),
        ("b3", "matmul", None, "aten.mm.default"),
        ("b4", "sin_1", "k4", None),
        ("b5", "cumsum_1", None, "aten.cumsum.default"),
    ]
    row = result["buffers"][0]
    assert row["verdict"] == "passed" and row["elements"] == 16 and row["rmse"] is not None
    assert "picture" not in row and "picture" in result["outputs"][0]["modes"]["debug"]
    texts = [t for t, _ in told]
    assert "running eager PyTorch" in texts and "compiling and running kernel 1 of 3, debug" in texts
    assert "comparing output 1 of 1" in texts
    fractions = [f for _, f in told]
    assert fractions == sorted(fractions) and 0 <= fractions[0] and fractions[-1] <= 1
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize(
    "change, first, failed",
    [
        (("out.copy_(x.sin())", "out.copy_(x.cos())"), "b1", 5),
        (("cumsum.default(t_buf1, 0)", "cumsum.default(t_buf1, 1)"), "b2", 4),
        (("out.copy_(a @ b)", "out.copy_(b @ a)"), "b3", 3),
        (("    return [r_buf5]", "    r_buf5 = r_buf5 + 1\n    return [r_buf5]"), "b5", 1),
    ],
)
def test_the_first_divergence_is_where_the_module_is_broken(change, first, failed):
    graph, module, inputs, steps = launching(change)
    result, _ = check_graph(graph, module, inputs, buffers=steps, detail=True)
    assert result["verdict"] == "failed" and result["first_divergence"]["buffer"] == first
    bad = [r for r in result["buffers"] if r["verdict"] == "failed"]
    assert len(bad) == failed and bad[0] == result["first_divergence"]
    assert bad[0]["picture"]["rows"] == 4 and bad[0]["histogram"]["counts"]
    assert all("picture" not in r for r in bad[1:])
    assert bad[0]["first"]["ours"] != bad[0]["first"]["eager"]


def test_outputs_alone_make_the_verdict():
    graph, module, inputs, steps = launching()
    steps[0]["values"][0].update(strides=[1, 4])  # sin as if it were written transposed
    result, _ = check_graph(graph, module, inputs, buffers=steps)
    assert result["verdict"] == "passed" and result["first_divergence"]["buffer"] == "b1"


def test_buffers_of_another_module_are_refused():
    graph, module, inputs, steps = launching()
    before = dict(vars(module))
    for wrong in (steps[1:], steps[:2], [*steps, steps[0]]):
        with pytest.raises(PallascopeError, match="of another module"):
            check_graph(graph, module, inputs, buffers=wrong)
        assert dict(vars(module)) == before
    steps[0]["values"][0]["variable"] = "t_buf77"
    with pytest.raises(PallascopeError, match="no variable 't_buf77'"):
        check_graph(graph, module, inputs, buffers=steps)
    with pytest.raises(PallascopeError, match="debug mode alone"):
        check_graph(graph, module, inputs, buffers=steps, modes=["steady"])


def test_an_interrupt_within_a_launch_takes_the_hooks_away():
    graph, module, inputs, steps = launching(("out.copy_(a @ b)", "raise KeyboardInterrupt"))
    before = dict(vars(module))
    with pytest.raises(KeyboardInterrupt):
        check_graph(graph, module, inputs, buffers=steps, launches=3)
    assert dict(vars(module)) == before


def test_a_real_module(real_core):
    told, inputs = [], [torch.randn(4, 8), torch.randn(8, 5)]
    lowered = pallascope.lower(lambda x, w: ((x.sin() @ w).relu() + 1).softmax(-1), *inputs)
    nodes = [n["name"] for n in lowered.graph["nodes"]]
    body = lowered.source.split("def _call_debug(")[1].split("\ndef ")[0]
    launched = re.findall(r"(t_buf\d+) = torch.empty\(\((\d+), (\d+)\).*\n    (\w+)_main\(", body)
    steps = []
    for (variable, rows, columns, name), node in zip(launched, (nodes[0], nodes[1], nodes[-1]), strict=True):
        value = {"buffer": variable, "variable": variable, "node": "n", "node_name": node, "output": 0}
        value.update(value=node, sizes=[int(rows), int(columns)], strides=[int(columns), 1], offset=0)
        steps.append({"kernel": None, "call": None, "name": name, "torch": False, "values": [value]})
    result, _ = check_graph(
        lowered.graph,
        lowered.module(),
        inputs,
        launches=3,
        buffers=steps,
        progress=lambda *a: told.append(a),
    )
    assert result["verdict"] == "passed" and [r["verdict"] for r in result["buffers"]] == ["passed"] * 3
    texts = [t for t, _ in told]
    assert "compiling and running kernel 1 of 3, debug" in texts
    assert "tracing kernel 1 of 3, steady" in texts and "compiling and running the program, steady" in texts
    assert [f for _, f in told] == sorted(f for _, f in told)
    # The exponential of the last kernel, broken.
    module = load_module(lowered.source.replace("jnp.exp(", "jnp.sin("), "test")
    result, _ = check_graph(lowered.graph, module, inputs, buffers=steps)
    assert [r["verdict"] for r in result["buffers"]] == ["passed", "passed", "failed"]
    assert result["verdict"] == "failed" and result["first_divergence"]["node_name"] == nodes[-1]


def test_errors_name_the_mode_and_show_the_line():
    graph, module, inputs = prepared(
        lambda x: x.sin(), torch.randn(3), change="    raise ValueError('in a kernel')\n"
    )
    with pytest.raises(PallascopeError, match="ValueError in mode debug: in a kernel") as caught:
        check_graph(graph, module, inputs)
    assert caught.value.where.startswith("<pallascope test ")
    import traceback

    text = "".join(traceback.format_exception(caught.value))
    assert "    raise ValueError('in a kernel')" in text
    with pytest.raises(PallascopeError, match="no mode 'fast'"):
        check_graph(graph, module, inputs, modes=["fast"])


def test_modules_have_names_of_their_own():
    _, a, inputs = prepared(lambda x: x.sin(), torch.randn(3))
    _, b, _ = prepared(lambda x: x.cos(), torch.randn(3))
    assert a.__file__ != b.__file__ and torch.equal(run_mode(a, inputs)[0], inputs[0].sin())
    with pytest.raises(PallascopeError, match="takes 1 tensors, got 2"):
        run_mode(a, inputs * 2)
    with pytest.raises(PallascopeError, match="lacks INPUTS"):
        load_module("x = 1")
    with pytest.raises(SyntaxError):
        load_module("def f(:")
    times = time_mode(a, inputs, budget=0.0)
    assert times["calls"] == 4 and 0 < times["best"] <= times["median"]


def test_a_check_does_not_depend_on_jax_settings():
    import jax

    with jax.disable_jit(True), jax.debug_nans(True), jax.default_matmul_precision("bfloat16"):
        with neutral_jax():
            assert not jax.config.jax_disable_jit and not jax.config.jax_debug_nans
            assert jax.config.jax_default_matmul_precision is None
        assert jax.config.jax_disable_jit


def test_summaries():
    row = summarise(torch.tensor([[1.0, float("inf")], [float("nan"), -3.0]]), "y")
    assert row == {
        "name": "y",
        "dtype": "f32",
        "sizes": [2, 2],
        "strides": [2, 1],
        "min": -3.0,
        "max": 1.0,
        "mean": -1.0,
        "nan": 1,
        "inf": 1,
        "first": [1.0, "inf", "nan", -3.0],
    }
    assert summarise(torch.tensor([True, False]), "b")["max"] == 1
    assert summarise(torch.zeros(0), "e")["min"] is None
    assert summarise(torch.tensor([1j]), "c")["first"] == ["1j"]
    assert summarise(None, "n") == {"name": "n", "dtype": None}
    json.dumps(summarise(torch.tensor([2**40]), "i"))
