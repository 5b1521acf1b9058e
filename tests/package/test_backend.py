"""torch.compile(backend="pallascope"), with eager kernels in place of the lowering."""

import subprocess
import sys
import warnings

import pytest
import torch
import torch.nn as nn

import pallascope
from conftest import BRIDGE
from models import MODELS, Block, Mutating, dropout
from pallascope import PallascopeError
from pallascope.layout import clone_all


def same(a, b):
    return torch.allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("grad", [False, True])
def test_models(name, grad, fake_core):
    torch.manual_seed(0)
    cls, make = MODELS[name]
    model, twin = cls().train(grad), cls().train(grad)
    twin.load_state_dict(model.state_dict())
    args = make()
    mine, theirs = clone_all(args), clone_all(args)
    compiled = torch.compile(model, backend="pallascope", fullgraph=True)
    with warnings.catch_warnings(), torch.set_grad_enabled(grad):
        warnings.simplefilter("error")
        ours, eager = compiled(*mine), twin(*theirs)
        ours, eager = compiled(*mine), twin(*theirs)
        if grad and eager.requires_grad:
            ours.pow(2).sum().backward()
            eager.pow(2).sum().backward()
    assert same(ours, eager)
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs))
    for (key, a), (_, b) in zip(model.state_dict().items(), twin.state_dict().items()):
        assert same(a, b), key
    for (key, a), (_, b) in zip(model.named_parameters(), twin.named_parameters()):
        assert (a.grad is None) == (b.grad is None) and (a.grad is None or same(a.grad, b.grad)), key
    kinds = [e["kind"] for e in pallascope.compile_log()]
    assert kinds == (
        ["forward", "backward"] if any(p.grad is not None for p in model.parameters()) else ["inference"]
    )


def test_the_log(fake_core):
    torch.compile(lambda x: x.sin() + 1, backend="pallascope")(torch.randn(3))
    (entry,) = pallascope.compile_log()
    assert entry["kind"] == "inference" and entry["graph"].startswith("inference ")
    assert (entry["nodes"], entry["kernels"], entry["library"], entry["torch"], entry["decisions"]) == (
        2,
        1,
        ["aten.mm.default"],
        [],
        7,
    )
    assert (entry["lower_ms"], entry["schedule_ms"], entry["codegen_ms"], entry["bytes_moved"]) == (
        0.5,
        0.25,
        0.125,
        64,
    )
    assert "def call(" in entry["source"]
    entry["kernels"] = 99
    assert pallascope.compile_log()[0]["kernels"] == 1
    pallascope.reset_log()
    assert pallascope.compile_log() == []


def test_gradients_of_inputs(fake_core):
    x = torch.randn(4, requires_grad=True)
    y = torch.compile(lambda x: (x.sin() * x, x.cos()), backend="pallascope")(x)
    (y[0].sum() + y[1].sum()).backward()
    ours, x.grad = x.grad, None
    (x.sin() * x + x.cos()).sum().backward()
    assert same(ours, x.grad)


def test_dropout_draws_from_torch(fake_core):
    x = torch.ones(1000, requires_grad=True)
    compiled = torch.compile(dropout, backend="pallascope")
    y = compiled(x)
    assert set(y.tolist()) == {0.0, 4.0} and 300 < int((y == 0).sum()) < 700
    y.sum().backward()
    assert torch.equal(x.grad, y.detach()), "the backward has the mask of the forward"
    assert not torch.equal(compiled(x), y)


def test_outputs_that_are_inputs_numbers_and_views(fake_core):
    def f(x, n):
        return x, x.t(), n, None, x + n, x.shape[0]

    x = torch.randn(2, 3)
    out = torch.compile(f, backend="pallascope", dynamic=False)(x, 3)
    assert (
        out[0] is x and out[1].data_ptr() == x.data_ptr() and out[2] == 3 and out[3] is None and out[5] == 2
    )
    assert torch.equal(out[4], x + 3)


def test_constants_made_in_the_function(fake_core):
    out = torch.compile(lambda x: x[torch.tensor([2, 0])] + torch.tensor(0.5), backend="pallascope")(
        torch.arange(3.0)
    )
    assert out.tolist() == [2.5, 0.5]


def test_graph_breaks_make_two_graphs(fake_core):
    def f(x):
        y = x.sin()
        print(end="")
        return y + 1

    x = torch.randn(3)
    assert same(torch.compile(f, backend="pallascope")(x), x.sin() + 1)
    assert len(pallascope.compile_log()) == 2


def test_symbolic_sizes_are_an_error_with_the_model_line(fake_core):
    with pytest.raises(PallascopeError) as caught:
        torch.compile(lambda x: x.sin(), backend="pallascope", dynamic=True)(torch.randn(4, 5))
    error = caught.value
    assert (
        error.kind == "symbolic_size" and "test_backend.py" in error.where and "dynamic=False" in error.remedy
    )
    assert "aten.sin.default" in error.where


def test_the_second_size_needs_dynamic_false(fake_core):
    compiled = torch.compile(lambda x: x.sin(), backend="pallascope", dynamic=False)
    for n in (3, 4, 5):
        assert compiled(torch.randn(n)).shape == (n,)
    assert len(pallascope.compile_log()) == 3


def test_a_refusal_is_never_a_fallback(fake_core):
    with pytest.raises(PallascopeError) as caught:
        torch.compile(lambda x: x.erfinv() + 1, backend="pallascope")(torch.zeros(3))
    assert caught.value.kind == "unsupported" and caught.value.remedy == "write it otherwise"
    assert caught.value.as_dict()["message"] == "aten.erfinv.default is not lowered"
    assert isinstance(caught.value, RuntimeError)


def test_a_missing_extension_says_what_to_build(monkeypatch):
    torch._dynamo.reset()
    monkeypatch.setitem(sys.modules, "_pallascope_core", None)
    with pytest.raises(PallascopeError) as caught:
        torch.compile(lambda x: x.sin(), backend="pallascope")(torch.zeros(3))
    assert caught.value.kind == "host_unavailable" and "build" in caught.value.remedy


def test_options(fake_core):
    compiled = torch.compile(
        lambda x: x.sin(), backend="pallascope", options={"fusion": False, "target": "tpu"}
    )
    compiled(torch.randn(3))
    assert pallascope.compile_log()[0]["options"] == {"target": "tpu", "fusion": False, "upto": None}
    for options, text in (
        ({"fuse": True}, "dump, fusion, mode, target, tolerance"),
        ({"fusion": 1}, "'fusion' is 1"),
    ):
        torch._dynamo.reset()
        with pytest.raises(PallascopeError) as caught:
            torch.compile(lambda x: x.cos(), backend="pallascope", options=options)(torch.randn(3))
        assert caught.value.kind == "invalid_argument" and text in caught.value.text()


def test_modes(fake_core):
    x = torch.randn(3)
    assert torch.equal(
        torch.compile(lambda x: x.sin(), backend="pallascope", mode="reduce-overhead")(x), x.sin()
    )
    with pytest.raises(PallascopeError, match="no mode 'fastest'"):
        torch.compile(lambda x: x.cos(), backend="pallascope", mode="fastest")(x)


def test_the_way_it_runs(fake_core, monkeypatch):
    """PALLASCOPE_MODE, and the option, which wins."""
    seen = []
    monkeypatch.setattr(
        "pallascope.backend.run_mode", lambda module, args, mode="steady": seen.append(mode) or module.reference(args)
    )

    def run(options=None):
        torch._dynamo.reset()
        torch.compile(lambda x: x.sin(), backend="pallascope", options=options)(torch.randn(3))

    monkeypatch.delenv("PALLASCOPE_MODE", raising=False)
    run()
    run({"mode": "debug"})
    monkeypatch.setenv("PALLASCOPE_MODE", "debug")
    run()
    run({"mode": "steady"})
    monkeypatch.setenv("PALLASCOPE_MODE", "")
    run()
    assert seen == ["steady", "debug", "debug", "steady", "steady"]
    for options, variable, where in (({"mode": "fast"}, "steady", "options"), (None, "fast", "PALLASCOPE_MODE")):
        monkeypatch.setenv("PALLASCOPE_MODE", variable)
        with pytest.raises(PallascopeError) as caught:
            run(options)
        assert caught.value.kind == "invalid_argument"
        assert "no mode 'fast'" in caught.value.message and where in caught.value.where
        assert "debug, steady" in caught.value.remedy


def test_tracebacks_show_the_generated_line(fake_core, monkeypatch):
    monkeypatch.setattr(
        fake_core,
        "lower",
        lambda *a: __import__("json").dumps(
            {
                "ok": True,
                "nodes": 1,
                "kernels": 0,
                "library": [],
                "torch": [],
                "decisions": 0,
                "source": "INPUTS = [0]\nOUTPUTS = reference = None\n\n\n"
                "def call(args, mode):\n    return args[0] / oops\n",
            }
        ),
    )
    with pytest.raises(NameError) as caught:
        torch.compile(lambda x: x.sin(), backend="pallascope")(torch.randn(3))
    import traceback

    text = "".join(traceback.format_exception(caught.value))
    assert "return args[0] / oops" in text and "<pallascope inference" in text


def test_in_place_writes_reach_the_argument(fake_core):
    model = Mutating()
    x = torch.randn(4, 3)
    mine = x.clone()
    torch.compile(model, backend="pallascope")(mine)
    Mutating()(theirs := x.clone())
    assert same(mine, theirs) and model.count.tolist() == [1.0] * 3


def test_names_of_inputs(fake_core, monkeypatch):
    seen = []
    lower = fake_core.lower
    monkeypatch.setattr(
        fake_core, "lower", lambda p, i, o: seen.append(__import__("json").loads(p)) or lower(p, i, o)
    )
    outer = nn.ModuleDict({"deep": nn.ModuleList([Block()])})

    def f(x):
        return outer["deep"][0](x).sum()

    torch.compile(f, backend="pallascope")(torch.randn(4, 8)).backward()
    forward, backward = (p["graphs"][0] for p in seen)
    inputs = {i["target"]: i["kind"] for i in forward["inputs"]}
    assert inputs["x"] == "user_input" and [k for t, k in inputs.items() if t.endswith("norm.weight")] == [
        "parameter"
    ]
    assert "sources" not in seen[0]
    assert any(i["target"] == "gradient of output 0" for i in backward["inputs"])
    modules = {n.get("module", "") for n in forward["nodes"]}
    assert any(m.endswith("layers.1") for m in modules)
    assert any("layers" in n.get("module", "") for n in backward["nodes"]), (
        "the backward knows the forward's modules"
    )


def test_importing_is_cheap_and_registers():
    code = (
        "import sys, pallascope\n"
        "assert 'torch' not in sys.modules and 'jax' not in sys.modules\n"
        "import torch._dynamo\n"
        "from pallascope.backend import is_registered\n"
        "assert is_registered() and 'jax' not in sys.modules\n"
        "assert pallascope.trace.__name__ == 'trace' and callable(pallascope.lower)\n"
        "assert not any(type(f).__name__ == '_RegisterWithDynamo' for f in sys.meta_path)\n"
    )
    for text in (
        code,
        "import torch._dynamo\n" + code.replace("assert 'torch' not in sys.modules and ", "assert "),
    ):
        done = subprocess.run(
            [sys.executable, "-c", text],
            env={"PYTHONPATH": str(BRIDGE), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
