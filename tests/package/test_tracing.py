"""pallascope.trace and trace_file."""

import json
import sys
import textwrap

import pytest
import torch

import pallascope
from models import MODELS, Mutating
from pallascope import PallascopeError, reference, tracing
from pallascope.tracing import parse_spec


@pytest.mark.parametrize("name", MODELS)
def test_inputs_follow_the_signature(name):
    cls, make = MODELS[name]
    model = cls().eval()
    program = pallascope.trace(model, *make())
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    kinds = {
        i["target"]: i["kind"] for i in program.graph()["inputs"] if i["kind"] in ("parameter", "buffer")
    }
    assert set(kinds) == set(state)
    for target, kind in kinds.items():
        assert kind == ("parameter" if isinstance(state[target], torch.nn.Parameter) else "buffer")
        assert program.tensors[target].data_ptr() == state[target].data_ptr()
        assert not program.tensors[target].requires_grad
    assert program.name == cls.__name__


def test_in_place_operators_stay():
    targets = [n["target"] for n in pallascope.trace(Mutating(), torch.randn(4, 3)).graph()["nodes"]]
    assert {"aten.add_.Tensor", "aten.mul_.Tensor", "aten.t.default"} <= set(targets)


def test_mutation_outputs_of_a_functional_program():
    exported = torch.export.export(Mutating(), (torch.randn(4, 3),)).run_decompositions()
    program = tracing.from_exported(exported, "m")
    mutations = [o for o in program.graph()["outputs"] if o["kind"] == "mutation"]
    names = {i["name"]: i for i in program.graph()["inputs"]}
    assert {names[m["target"]]["target"] for m in mutations} == {"count", "x"}
    x = torch.randn(4, 3)
    model = Mutating()
    expected = model(mine := x.clone())
    run = reference.run_graph(
        program.graph(),
        [torch.zeros(3) if i["kind"] == "buffer" else x.clone() for i in program.graph()["inputs"]],
    )
    torch.testing.assert_close(run.outputs[0], expected)
    changed = {program.graph()["inputs"][i]["target"]: run.args[i] for i in run.mutated}
    torch.testing.assert_close(changed["x"], mine)
    torch.testing.assert_close(changed["count"], model.count)


def test_program_reads_its_own_text(tmp_path):
    program = pallascope.trace(torch.sin, torch.randn(3))
    program.save(tmp_path / "p.json")
    again = pallascope.load(tmp_path / "p.json")
    assert again.data == program.data and len(again) == 1
    with pytest.raises(PallascopeError, match="there is no graph 1"):
        program.graph(1)
    with pytest.raises(PallascopeError, match="no Pallascope trace"):
        pallascope.Program("{}")
    with pytest.raises(PallascopeError) as caught:
        pallascope.Program({**program.data, "version": 2})
    assert caught.value.kind == "schema_version"


def test_a_pt2_loads(tmp_path):
    exported = torch.export.export(Mutating(), (torch.randn(4, 3),))
    torch.export.save(exported, tmp_path / "m.pt2")
    program = pallascope.load(tmp_path / "m.pt2")
    assert program.name == "m" and "count" in program.tensors
    assert program.data["graphs"][0]["nodes"][0]["target"] == "aten.add_.Tensor"
    (tmp_path / "bad.pt2").write_bytes(b"no archive")
    with pytest.raises(PallascopeError) as caught:
        pallascope.load(tmp_path / "bad.pt2")
    assert caught.value.kind == "not_readable"


def test_what_cannot_be_exported_says_why():
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(PallascopeError) as caught:
        pallascope.trace(f, torch.randn(3))
    assert caught.value.kind == "host_error" and "'f'" in caught.value.message
    assert __file__ in caught.value.where
    with pytest.raises(PallascopeError, match="an? int cannot be traced"):
        pallascope.trace(3)


@pytest.mark.parametrize(
    "text, dtype, sizes",
    [
        ("f32[8,128]", torch.float32, (8, 128)),
        ("bool[]", torch.bool, ()),
        ("i64[4]", torch.int64, (4,)),
        ("bf16[ 2, 3 ]", torch.bfloat16, (2, 3)),
        ("float32[0]", torch.float32, (0,)),
    ],
)
def test_specs(text, dtype, sizes):
    assert parse_spec(text) == (dtype, sizes)


@pytest.mark.parametrize("text", ["f32", "f32[", "f32[a]", "f32[-1]", "f32[1.5]", "[3]", "f32[2,,3]"])
def test_wrong_specs(text):
    with pytest.raises(PallascopeError) as caught:
        parse_spec(text)
    assert caught.value.kind == "usage" and "f32[8,128]" in caught.value.remedy


def test_an_unknown_dtype_lists_the_right_ones():
    with pytest.raises(PallascopeError) as caught:
        parse_spec("f31[2]")
    assert caught.value.kind == "unknown_dtype" and "bf16" in caught.value.remedy


@pytest.fixture
def user_file(tmp_path):
    (tmp_path / "helper_of_user.py").write_text("def twice(x):\n    return x * 2\n")
    file = tmp_path / "user.py"
    file.write_text(
        textwrap.dedent("""
        import torch
        from helper_of_user import twice

        INPUTS = ["f32[2,3]"]

        def f(x):
            return twice(x) + 1

        def g(x, y):
            return x @ y

        class M(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(3, 4)
                self.drop = torch.nn.Dropout(0.5)
            def forward(self, x):
                return self.drop(self.linear(x))

        class Needs(torch.nn.Module):
            def __init__(self, size):
                super().__init__()

        instance = M()
        number = 3
    """)
    )
    return file


def test_trace_file(user_file):
    program = pallascope.trace_file(user_file, "g", ["f32[2,3]", "f32[3,5]"])
    assert program.name == "g" and program.graph()["nodes"][0]["target"] == "aten.matmul.default"
    frame = program.graph()["nodes"][0]["stack"][-1]
    assert frame["file"] == str(user_file) and frame["code"] == "return x @ y"
    assert program.data["sources"][str(user_file)] == user_file.read_text()
    assert str(user_file.parent) not in sys.path


def test_trace_file_without_specs_uses_inputs(user_file):
    assert pallascope.trace_file(user_file, "f").graph()["inputs"][0]["tensor"]["sizes"] == [2, 3]
    user_file.write_text(
        "import torch\ndef example_inputs():\n    return torch.ones(5, dtype=torch.int32)\n"
        "def f(x):\n    return x + 1\n"
    )
    assert pallascope.trace_file(user_file, "f").graph()["inputs"][0]["tensor"]["dtype"] == "i32"


def test_trace_file_with_a_module_class_and_an_instance(user_file):
    program = pallascope.trace_file(user_file, "M")
    assert [i["kind"] for i in program.graph()["inputs"]] == ["parameter", "parameter", "user_input"]
    assert not any("dropout" in n["target"] and n["args"][-1] is True for n in program.graph()["nodes"])
    assert pallascope.trace_file(user_file, "instance").name == "instance"


def test_an_edited_file_is_read_again(user_file):
    def targets():
        return [n["target"] for n in pallascope.trace_file(user_file, "f", ["f32[2]"]).graph()["nodes"]]

    assert "aten.add.Tensor" in targets()
    user_file.write_text(user_file.read_text().replace("twice(x) + 1", "twice(x) - 1"))
    assert "aten.sub.Tensor" in targets()


@pytest.mark.parametrize(
    "function, specs, kind, text",
    [
        ("nope", [], "not_found", "there is no 'nope'"),
        ("number", [], "usage", "is a int"),
        ("g", ["f32[2,3]"], "usage", "cannot be called with 1 inputs"),
        ("g", ["f32[2,3]", "f32[2,3]"], "host_error", "torch.export cannot trace 'g'"),
        ("Needs", [], "host_error", "Needs() raised TypeError"),
    ],
)
def test_mistakes_in_words(user_file, function, specs, kind, text):
    with pytest.raises(PallascopeError) as caught:
        pallascope.trace_file(user_file, function, specs)
    assert caught.value.kind == kind and text in caught.value.message


def test_a_missing_function_lists_those_there_are(user_file):
    with pytest.raises(PallascopeError) as caught:
        pallascope.trace_file(user_file, "nope")
    assert "f, g, M" in caught.value.remedy and "twice" not in caught.value.remedy


def test_files_that_cannot_be_imported(tmp_path):
    with pytest.raises(PallascopeError) as caught:
        pallascope.trace_file(tmp_path / "none.py", "f")
    assert caught.value.kind == "not_found"
    with pytest.raises(PallascopeError) as caught:
        pallascope.trace_file(tmp_path, "f")
    assert caught.value.kind == "not_readable"
    for text, error, line in (
        ("x = 1\ndef f(:\n", "SyntaxError", 2),
        ("\n\n1/0\n", "ZeroDivisionError", 3),
        ("import sys\nsys.exit(1)\n", "SystemExit", 2),
    ):
        (tmp_path / "bad.py").write_text(text)
        with pytest.raises(PallascopeError) as caught:
            pallascope.trace_file(tmp_path / "bad.py", "f")
        assert error in caught.value.message and caught.value.where == f"{tmp_path / 'bad.py'}:{line}"


def test_the_text_is_json(user_file):
    json.loads(pallascope.trace_file(user_file, "M").to_json())
