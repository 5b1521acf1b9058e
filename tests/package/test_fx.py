"""FX graphs as the trace format."""

import json
import math
import os

import pytest
import torch
import torch.nn.functional as F

import pallascope
from models import Block, no_gradient
from pallascope import PallascopeError, fx, reference, tracing


def graph_of(function, *args):
    return pallascope.trace(function, *args).graph()


def node(graph, target):
    return next(n for n in graph["nodes"] if n["target"] == target)


def test_golden_of_a_small_function():
    def f(x, y):
        return torch.add(x, y, alpha=2).sum(1, keepdim=True)

    program = pallascope.trace(f, torch.randn(3, 4), torch.randn(4), name="f")
    assert program.data["format"] == "pallascope.trace" and program.data["version"] == 1
    assert program.data["producer"] == f"torch {torch.__version__}"
    graph = json.loads(program.to_json())["graphs"][0]
    for n in graph["nodes"]:
        frame = n.pop("stack")[-1]
        assert frame["file"] == __file__ and frame["function"] == "f"
        assert frame["code"] == "return torch.add(x, y, alpha=2).sum(1, keepdim=True)"
    assert graph == {
        "name": "f",
        "kind": "export",
        "inputs": [
            {
                "kind": "user_input",
                "name": "x",
                "target": "x",
                "tensor": {"dtype": "f32", "sizes": [3, 4], "strides": [4, 1], "offset": 0},
            },
            {
                "kind": "user_input",
                "name": "y",
                "target": "y",
                "tensor": {"dtype": "f32", "sizes": [4], "strides": [1], "offset": 0},
            },
        ],
        "nodes": [
            {
                "name": "add",
                "target": "aten.add.Tensor",
                "args": [{"value": "x"}, {"value": "y"}],
                "kwargs": {"alpha": 2},
                "outputs": [
                    {
                        "name": "add",
                        "tensor": {"dtype": "f32", "sizes": [3, 4], "strides": [4, 1], "offset": 0},
                    }
                ],
                "list_output": False,
            },
            {
                "name": "sum_1",
                "target": "aten.sum.dim_IntList",
                "args": [{"value": "add"}, [1], True],
                "kwargs": {},
                "outputs": [
                    {
                        "name": "sum_1",
                        "tensor": {"dtype": "f32", "sizes": [3, 1], "strides": [1, 1], "offset": 0},
                    }
                ],
                "list_output": False,
            },
        ],
        "outputs": [{"kind": "user_output", "value": "sum_1"}],
    }


def test_argument_kinds():
    def f(x):
        y = x.masked_fill(x > 0, float("-inf")).clamp(max=float("inf"))
        y = F.gelu(y, approximate="tanh").to(torch.float64, memory_format=torch.contiguous_format)
        z = torch.full((2, 3), float("nan"), dtype=torch.float16, device="cpu")
        return y * 0.5, z, torch.ones_like(x, memory_format=torch.preserve_format)

    graph = graph_of(f, torch.randn(2, 3))
    assert {"float": "-inf"} in node(graph, "aten.masked_fill.Scalar")["args"]
    clamp = node(graph, "aten.clamp.default")
    assert clamp["args"][1] is None and clamp["args"][2] == {"float": "inf"}
    assert node(graph, "aten.gelu.default")["kwargs"] == {"approximate": {"str": "tanh"}}
    text = json.dumps(graph)
    for part in (
        '{"dtype": "f64"}',
        '{"memory_format": "contiguous_format"}',
        '{"float": "nan"}',
        '{"dtype": "f16"}',
        '{"device": "cpu"}',
        '{"memory_format": "preserve_format"}',
    ):
        assert part in text, part
    assert 0.5 in node(graph, "aten.mul.Tensor")["args"]
    json.dumps(graph, allow_nan=False)


def test_floats_keep_a_point_and_integers_do_not():
    graph = graph_of(lambda x: (x * 2.0) * 2, torch.randn(3))
    text = json.dumps([n["args"][1] for n in graph["nodes"]])
    assert text == "[2.0, 2]"


def test_an_output_takes_the_name_of_its_getitem():
    def f(x):
        return x.split(2)[1]

    graph = graph_of(f, torch.randn(6, 2))
    split = node(graph, "aten.split.Tensor")
    assert split["list_output"] is True
    assert [o["tensor"]["offset"] for o in split["outputs"]] == [0, 4, 8]
    assert graph["outputs"][0]["value"] == split["outputs"][1]["name"]
    assert len({o["name"] for o in split["outputs"]}) == 3
    assert "getitem" not in {n["target"] for n in graph["nodes"]}


def test_an_output_that_nothing_takes_is_named_by_its_place():
    gm = torch.fx.Graph()
    x = gm.placeholder("x")
    x.meta["val"] = torch.empty(6)
    split = gm.call_function(torch.ops.aten.split.Tensor, (x, 2))
    split.meta["val"] = [torch.empty(6)[0:2], torch.empty(6)[2:4], torch.empty(6)[4:6]]
    import operator

    item = gm.call_function(operator.getitem, (split, -1))
    item.meta["val"] = split.meta["val"][2]
    gm.output((item,))
    graph = fx.convert(torch.fx.GraphModule(torch.nn.Module(), gm), "g", "inference").graph
    assert [o["name"] for o in graph["nodes"][0]["outputs"]] == [
        f"{split.name}.0",
        f"{split.name}.1",
        item.name,
    ]
    assert graph["outputs"] == [{"kind": "user_output", "value": item.name}]


def test_none_in_a_list_of_outputs():
    import operator

    gm = torch.fx.Graph()
    names = ["g", "x", "w"]
    g, x, w = (gm.placeholder(n) for n in names)
    for p, shape in zip((g, x, w), ((1, 2, 4, 4), (1, 3, 4, 4), (2, 3, 1, 1))):
        p.meta["val"] = torch.empty(shape)
    back = gm.call_function(
        torch.ops.aten.convolution_backward.default,
        (g, x, w, [0], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [False, True, False]),
    )
    back.meta["val"] = (None, torch.empty(2, 3, 1, 1), None)
    item = gm.call_function(operator.getitem, (back, 1))
    none = gm.call_function(operator.getitem, (back, 0))
    gm.output((item, none))
    graph = fx.convert(torch.fx.GraphModule(torch.nn.Module(), gm), "g", "backward").graph
    assert [o["tensor"] is None for o in graph["nodes"][0]["outputs"]] == [True, False, True]
    assert graph["outputs"][1] == {"kind": "user_output", "value": None}


def test_modules_stacks_and_sources():
    graph = (program := pallascope.trace(Block().eval(), torch.randn(4, 8))).graph()
    linear = [n for n in graph["nodes"] if n["target"] == "aten.linear.default"]
    assert [n["module"] for n in linear] == ["layers.0", "layers.1"]
    assert {n["module_type"] for n in linear} == {"Linear"}
    frame = fx.user_frame(linear[0]["stack"])
    assert os.path.basename(frame["file"]) == "models.py" and "self.layers" in frame["code"]
    assert any(fx.is_torch_file(f["file"]) for f in linear[0]["stack"])
    assert frame["file"] in program.data["sources"]
    assert "class Block" in program.data["sources"][frame["file"]]
    assert not any(fx.is_torch_file(f) for f in program.data["sources"])
    assert not any("pallascope" + os.sep + "tracing" in json.dumps(n["stack"]) for n in graph["nodes"])


@pytest.mark.parametrize(
    "text, path",
    [
        ("L['self'].h.0.c1", "h.0.c1"),
        ("L['self']._modules['h']._modules['0']", "h.0"),
        ("G['model'].layers[3].mlp", "layers.3.mlp"),
        ("a.c1@1", "a.c1"),
        ("L['f'].__closure__[0].cell_contents.norm", "norm"),
        ("L__self__", ""),
        ("", ""),
    ],
)
def test_module_paths(text, path):
    assert fx.module_path(text) == path


def test_stack_with_marks_and_without_code():
    text = (
        '  File "m.py", line 3, in f\n    return a + b\n           ~~^~~\n'
        '  File "<string>", line 1, in <lambda>\n  File "n.py", line 9, in g\n    x.sin()\n'
    )
    assert fx.parse_stack(text) == [
        {"file": "m.py", "line": 3, "function": "f", "code": "return a + b"},
        {"file": "<string>", "line": 1, "function": "<lambda>", "code": ""},
        {"file": "n.py", "line": 9, "function": "g", "code": "x.sin()"},
    ]
    assert fx.parse_stack(None) == []


def test_the_gradient_mode_is_folded():
    graph = graph_of(no_gradient, torch.randn(3))
    assert [n["target"] for n in graph["nodes"]] == ["aten.mul.Tensor", "aten.add.Tensor"]
    names = [o["name"] for n in graph["nodes"] for o in n["outputs"]]
    assert len(set(names)) == 2 and graph["nodes"][1]["args"][0] == {"value": names[0]}


def test_numbers_and_none_in_and_out():
    def f(x, n, flag=None):
        return {"a": x * n, "n": n, "none": flag}

    program = pallascope.trace(f, torch.randn(3), 4)
    graph, conversion = program.graph(), program.conversions[0]
    assert len(graph["inputs"]) == 1
    assert [o["value"] for o in graph["outputs"]] == ["mul", None, None]
    assert conversion.constant_outputs == {1: 4}
    x = torch.randn(3)
    tensors = conversion.arguments([x, 4])
    assert len(tensors) == 1 and tensors[0] is x
    with pytest.raises(PallascopeError, match="was 4 when it was traced and is now 5"):
        conversion.arguments([x, 5])
    with pytest.raises(PallascopeError, match="is a tensor and got int"):
        conversion.arguments([3, 4])
    with pytest.raises(PallascopeError, match="takes 2 arguments and got 1"):
        conversion.arguments([x])


def test_constants_come_beside_the_graph():
    def f(x):
        return x + torch.tensor([1.0, 2.0])

    program = pallascope.trace(f, torch.randn(2))
    constant = next(i for i in program.graph()["inputs"] if i["kind"] == "constant")
    assert torch.equal(program.tensors[constant["target"]], torch.tensor([1.0, 2.0]))


def test_symbolic_sizes_are_refused_with_node_and_line():
    def f(x):
        return x.nonzero() + 1

    with pytest.raises(PallascopeError) as caught:
        pallascope.trace(f, torch.randn(4))
    assert caught.value.kind == "symbolic_size"
    assert "nonzero" in caught.value.message and "return x.nonzero() + 1" in caught.value.where
    assert "mask" in caught.value.remedy and "item" in caught.value.remedy


def test_exported_dynamic_shapes_are_refused():
    class M(torch.nn.Module):
        def forward(self, x):
            return x.sin()

    exported = torch.export.export(
        M(), (torch.randn(4, 3),), dynamic_shapes={"x": {0: torch.export.Dim("n")}}
    )
    with pytest.raises(PallascopeError) as caught:
        tracing.from_exported(exported)
    assert caught.value.kind == "symbolic_size" and "x.sin()" in caught.value.where


def test_higher_order_operators_are_refused():
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    with pytest.raises(PallascopeError) as caught:
        pallascope.trace(f, torch.randn(4))
    assert caught.value.kind == "unsupported" and "'cond'" in caught.value.message
    assert "torch.cond" in caught.value.where


def test_what_the_format_lacks_is_refused():
    with pytest.raises(PallascopeError) as caught:
        pallascope.trace(lambda x: x * 2j, torch.randn(4))
    assert caught.value.kind == "unsupported" and "complex" in caught.value.message
    with pytest.raises(PallascopeError) as caught:
        pallascope.trace(lambda x: x.to_sparse().to_dense() if False else x.to_sparse(), torch.eye(3))
    assert caught.value.kind in ("unsupported", "symbolic_size", "host_error")


def test_names_of_inlined_nodes_stay_unique():
    def f(x):
        a = x.sin()
        with torch.no_grad():
            b = x.sin().sin()
        with torch.no_grad():
            c = b.sin()
        return a + b + c

    graph = graph_of(f, torch.randn(3))
    names = [o["name"] for n in graph["nodes"] for o in n["outputs"]]
    assert len(names) == len(set(names)) == 6
    assert reference.run_graph(graph, [x := torch.randn(3)]).outputs[0].equal(f(x))


def test_uncommon_floats_survive_the_text():
    graph = graph_of(lambda x: x * 1e-40 + 1e300, torch.randn(3, dtype=torch.float64))
    values = [json.loads(json.dumps(n["args"][1])) for n in graph["nodes"]]
    assert values == [1e-40, 1e300] and all(math.isfinite(v) for v in values)
