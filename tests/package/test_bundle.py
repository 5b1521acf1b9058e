"""Bundles: written while a script runs, read on another machine."""

import json
import os
import shutil

import pytest
import torch

import pallascope
from models import Block
from pallascope import PallascopeError
from pallascope.bundle import Bundle, BundleWriter, write_bundle
from pallascope.reference import run_graph


def test_round_trip_keeps_strides_and_sharing(tmp_path):
    program = pallascope.trace(lambda x, y: x + y, torch.randn(3), torch.randn(3), name="add")
    base = torch.arange(8.0)
    inputs = [base[1:7:2], base[2:5]]
    write_bundle(str(tmp_path / "b"), program, [inputs])
    bundle = Bundle(tmp_path / "b")
    assert json.loads(bundle.program_text())["graphs"] == program.data["graphs"]
    assert bundle.torch_version == torch.__version__ and bundle.tolerance == {}
    a, b = bundle.inputs(0)
    assert torch.equal(a, inputs[0]) and a.stride() == (2,) and a.storage_offset() == 1
    assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    assert torch.equal(run_graph(program.graph(), [a, b]).outputs[0], inputs[0] + inputs[1])
    assert sorted(os.listdir(tmp_path / "b")) == ["bundle.json", "inputs", "program.json"]
    assert pallascope.load(tmp_path / "b").data["graphs"] == program.data["graphs"]


def test_a_zip_reads_as_well(tmp_path):
    program = pallascope.trace(torch.sin, torch.randn(3), name="sin")
    write_bundle(str(tmp_path / "b"), program, [[torch.ones(3)]])
    for root in (str(tmp_path / "b"), str(tmp_path)):  # with and without the folder's name in the members
        shutil.make_archive(str(tmp_path / "z"), "zip", root, None if root.endswith("b") else "b")
        assert torch.equal(Bundle(tmp_path / "z.zip").inputs(0)[0], torch.ones(3))
        assert pallascope.load(tmp_path / "z.zip").name == "sin"


def test_mistakes_in_words(tmp_path):
    with pytest.raises(PallascopeError) as caught:
        Bundle(tmp_path / "none")
    assert caught.value.kind == "not_found"
    (tmp_path / "text").write_text("no bundle")
    with pytest.raises(PallascopeError) as caught:
        Bundle(tmp_path / "text")
    assert caught.value.kind == "not_a_zip"
    (tmp_path / "empty").mkdir()
    with pytest.raises(PallascopeError) as caught:
        Bundle(tmp_path / "empty")
    assert caught.value.kind == "missing_member"
    about = tmp_path / "empty" / "bundle.json"
    for text, kind in (
        ("{", "malformed_json"),
        ("{}", "wrong_package"),
        ('{"format": "pallascope.bundle", "version": 9}', "schema_version"),
    ):
        about.write_text(text)
        with pytest.raises(PallascopeError) as caught:
            Bundle(tmp_path / "empty")
        assert caught.value.kind == kind
    write_bundle(str(tmp_path / "b"), pallascope.trace(torch.sin, torch.randn(3)))
    with pytest.raises(PallascopeError, match="no inputs for graph 0"):
        Bundle(tmp_path / "b").inputs(0)


def test_other_content_is_never_overwritten(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(PallascopeError) as caught:
        BundleWriter(str(tmp_path))
    assert caught.value.kind == "invalid_argument" and os.listdir(tmp_path) == ["thesis.tex"]
    with pytest.raises(PallascopeError):
        BundleWriter(str(tmp_path / "thesis.tex"))


def test_a_bundle_of_an_earlier_run_is_replaced(tmp_path):
    program = pallascope.trace(torch.sin, torch.randn(3))
    write_bundle(str(tmp_path / "b"), program, [[torch.ones(3)]])
    write_bundle(str(tmp_path / "b"), program)
    assert os.listdir(tmp_path / "b" / "inputs") == []
    assert json.loads((tmp_path / "b" / "bundle.json").read_text())["graphs"] == [{"inputs": None}]


def test_dump_of_a_training_step(tmp_path, fake_core):
    folder = str(tmp_path / "dump")
    torch.manual_seed(0)
    model = Block()
    compiled = torch.compile(
        model, backend="pallascope", options={"dump": folder, "tolerance": {"atol": 1e-3}}
    )
    x = torch.randn(4, 8, requires_grad=True)
    compiled(x).sum().backward()
    bundle = Bundle(folder)
    assert bundle.tolerance == {"atol": 1e-3}
    program = json.loads(bundle.program_text())
    assert [g["kind"] for g in program["graphs"]] == ["forward", "backward"] and program["name"] == "dump"
    assert any("class Block" in text for text in program["sources"].values())
    forward = program["graphs"][0]
    kinds = {i["target"]: i["kind"] for i in forward["inputs"]}
    assert (
        kinds["layers.0.weight"] == "parameter" and kinds["scale"] == "buffer" and kinds["x"] == "user_input"
    )
    state = {**dict(model.named_parameters()), **dict(model.named_buffers()), "x": x}
    for i, tensor in zip(forward["inputs"], bundle.inputs(0), strict=True):
        assert torch.equal(tensor, state[i["target"]]) and not tensor.requires_grad
    backward = run_graph(program["graphs"][1], bundle.inputs(1))
    grads = [o for o in backward.outputs if o is not None]
    assert any(torch.equal(g, x.grad) for g in grads)


def test_dump_saves_the_inputs_before_the_call_and_once(tmp_path, fake_core):
    def f(x):
        x.mul_(2)
        return x + 1

    compiled = torch.compile(f, backend="pallascope", options={"dump": str(tmp_path / "d")})
    x = torch.ones(3)
    compiled(x)
    compiled(x)
    assert x.tolist() == [4.0] * 3
    assert Bundle(tmp_path / "d").inputs(0)[0].tolist() == [1.0] * 3


def test_dump_of_graph_breaks_and_of_two_compiles(tmp_path, fake_core):
    def f(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    options = {"dump": str(tmp_path / "d")}
    torch.compile(f, backend="pallascope", options=options)(torch.randn(3))
    torch.compile(lambda x: x.exp(), backend="pallascope", options=options)(torch.randn(3))
    bundle = Bundle(tmp_path / "d")
    graphs = json.loads(bundle.program_text())["graphs"]
    assert [g["nodes"][0]["target"] for g in graphs] == [
        "aten.sin.default",
        "aten.cos.default",
        "aten.exp.default",
    ]
    assert len({g["name"] for g in graphs}) == 3
    for index, graph in enumerate(graphs):
        run_graph(graph, bundle.inputs(index))


def test_what_could_not_be_lowered_is_in_the_bundle(tmp_path, fake_core):
    with pytest.raises(PallascopeError, match="erfinv"):
        torch.compile(torch.erfinv, backend="pallascope", options={"dump": str(tmp_path / "d")})(
            torch.zeros(3)
        )
    bundle = Bundle(tmp_path / "d")
    assert json.loads(bundle.program_text())["graphs"][0]["nodes"][0]["target"] == "aten.erfinv.default"
    assert bundle.graphs == [{"inputs": None}]
