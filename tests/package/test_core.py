"""The package over the real lowering: what a user runs, end to end. Needs the built extension."""

import json
import subprocess
import sys

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import pallascope
from models import MODELS, Block, Mutating, dropout
from pallascope import PallascopeError
from pallascope.bundle import Bundle
from pallascope.layout import clone_all


class Attention(nn.Module):
    """A small transformer block: matrix products, softmax with a mask, layer norm, gelu."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.heads = heads

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in self.qkv(self.norm(x)).split(w, -1))
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        a = (q @ k.transpose(-1, -2) / (w // self.heads) ** 0.5).masked_fill(~mask, float("-inf")).softmax(-1)
        return x + F.gelu(self.out((a @ v).transpose(1, 2).reshape(b, t, w)), approximate="tanh")


CASES = {**MODELS, "attention": (Attention, lambda: (torch.randn(2, 5, 16),))}

FUNCTIONS = {
    "pointwise": (lambda x, y: x.sin() + y * 2, lambda: (torch.randn(8, 16), torch.randn(16))),
    "square transpose": (lambda x, y: x.t() + y, lambda: (torch.randn(7, 7), torch.randn(7, 7))),
    "square strided input": (lambda x: (x + 1, x.t()), lambda: (torch.randn(7, 7).t(),)),
    "strided": (lambda x: x[1::3, 1::2] * 2, lambda: (torch.randn(9, 16),)),
    "offset input": (lambda x: x + 1, lambda: (torch.randn(40)[3:33].view(5, 6).t(),)),
    "reductions": (
        lambda x: (x.sum(0), x.mean(1, keepdim=True), x.amax(), x.argmax(1)),
        lambda: (torch.randn(6, 9),),
    ),
    "gather": (
        lambda x, i: x[i] + x.index_select(0, i),
        lambda: (torch.randn(5, 3), torch.tensor([4, 0, 2])),
    ),
    "integers": (lambda x, y: (x // y, x % y, x & y), lambda: (torch.arange(-6, 6), torch.tensor([3] * 12))),
    "bf16": (lambda x: (x + 0.7).to(torch.float32) * 2, lambda: (torch.randn(12).bfloat16(),)),
    "large integers": (lambda x: x * 2**33 + 1, lambda: (torch.arange(5),)),
    "rank 0 and empty": (lambda x, y: (x + 1, y * 2), lambda: (torch.tensor(3.0), torch.zeros(0, 4))),
}


@pytest.mark.parametrize("name", CASES)
def test_models_pass_their_check(name, real_core):
    torch.manual_seed(0)
    cls, make = CASES[name]
    lowered = pallascope.lower(cls().eval(), *make(), name=name)
    result = lowered.check()
    assert result["verdict"] == "passed", json.dumps(result["outputs"], indent=1)[:4000]
    assert lowered.check(seed=1, modes=("steady",))["verdict"] == "passed"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_pass_their_check(name, real_core):
    torch.manual_seed(0)
    function, make = FUNCTIONS[name]
    lowered = pallascope.lower(function, *make(), name="f")
    result = lowered.check(*make())
    assert result["verdict"] == "passed", json.dumps(result["outputs"], indent=1)[:4000]
    args = make()
    ours, eager = lowered.call(*clone_all(args)), function(*args)
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (ours, eager)), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", CASES)
def test_training_through_torch_compile(name, real_core):
    torch.manual_seed(0)
    cls, make = CASES[name]
    model, twin = cls(), cls()
    twin.load_state_dict(model.state_dict())
    args = make()
    ours = torch.compile(model, backend="pallascope", fullgraph=True)(*clone_all(args))
    eager = twin(*clone_all(args))
    torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-5)
    if eager.requires_grad:
        ours.pow(2).sum().backward()
        eager.pow(2).sum().backward()
    for (key, a), (_, b) in zip(model.named_parameters(), twin.named_parameters()):
        assert (a.grad is None) == (b.grad is None), key
        if a.grad is not None:
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-4, msg=key)
    for (key, a), (_, b) in zip(model.named_buffers(), twin.named_buffers()):
        torch.testing.assert_close(a, b, msg=key)
    assert sum(e["kernels"] for e in pallascope.compile_log()) > 0


def test_dropout_is_left_to_torch(real_core):
    x = torch.ones(1000, requires_grad=True)
    y = torch.compile(dropout, backend="pallascope")(x)
    assert set(y.tolist()) == {0.0, 4.0}
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert any(
        "dropout" in t or "bernoulli" in t or "rand" in t
        for e in pallascope.compile_log()
        for t in e["torch"]
    )


def test_in_place_writes_reach_the_argument(real_core):
    x = torch.randn(4, 3)
    torch.compile(model := Mutating(), backend="pallascope")(mine := x.clone())
    Mutating()(theirs := x.clone())
    torch.testing.assert_close(mine, theirs)
    assert model.count.tolist() == [1.0] * 3


def test_the_log_and_the_answer(real_core):
    lowered = pallascope.lower(Block().eval(), torch.randn(4, 8))
    for key, kind in (
        ("nodes", int),
        ("kernels", int),
        ("library", list),
        ("torch", list),
        ("decisions", int),
        ("bytes_moved", int),
        ("source", str),
        ("lower_ms", (int, float)),
        ("read_ms", (int, float)),
        ("schedule_ms", (int, float)),
        ("codegen_ms", (int, float)),
    ):
        assert isinstance(lowered.log[key], kind), key
    assert lowered.log["nodes"] == len(lowered.graph["nodes"]) and lowered.log["kernels"] > 0
    module = lowered.module()
    assert [i["name"] for i in module.INPUTS] == [i["name"] for i in lowered.graph["inputs"]]
    for given, meta in zip(module.INPUTS, lowered.graph["inputs"], strict=True):
        assert given["kind"] == meta["kind"]
        assert (
            list(given["sizes"]) == meta["tensor"]["sizes"]
            and list(given["strides"]) == meta["tensor"]["strides"]
        )


def test_without_fusion_there_are_no_fewer_kernels_and_the_answer_is_the_same(real_core):
    torch.manual_seed(0)
    model, x = Block().eval(), torch.randn(4, 8)
    fused, plain = pallascope.lower(model, x), pallascope.lower(model, x, fusion=False)
    assert plain.log["kernels"] >= fused.log["kernels"]
    assert fused.check()["verdict"] == plain.check()["verdict"] == "passed"


def test_every_prefix_of_the_decisions_is_right(real_core):
    torch.manual_seed(0)
    model, x = Block().eval(), torch.randn(4, 8)
    last = pallascope.lower(model, x).log["decisions"]
    for upto in sorted({0, 1, last // 3, 2 * last // 3, last}):
        assert pallascope.lower(model, x, upto=upto).check(modes=("steady",))["verdict"] == "passed", upto


def test_a_bundle_gives_the_same_verdict(real_core, tmp_path):
    torch.manual_seed(0)
    torch.compile(Block(), backend="pallascope", options={"dump": str(tmp_path / "d")})(
        torch.randn(4, 8)
    ).sum().backward()
    bundle = Bundle(tmp_path / "d")
    program = pallascope.load(tmp_path / "d")
    assert len(program) == 2
    for index in range(2):
        lowered = pallascope.lower(program, graph=index)
        from pallascope.check import check_graph

        result, _ = check_graph(lowered.graph, lowered.module(), bundle.inputs(index))
        assert result["verdict"] == "passed", json.dumps(result["outputs"], indent=1)[:4000]


def test_the_module_runs_without_pallascope(real_core, tmp_path):
    lowered = pallascope.lower(Block().eval(), torch.randn(4, 8))
    (tmp_path / "module.py").write_text(lowered.source)
    code = (
        "import sys, torch, module\n"
        "args = [torch.ones(i['sizes']) for i in module.INPUTS]\n"
        "out = module.call(args)\n"
        "torch.testing.assert_close(out[0], module.reference(args)[0])\n"
        "assert 'pallascope' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_diagnostics_come_through(real_core):
    with pytest.raises(PallascopeError) as caught:
        pallascope.lower(pallascope.trace(torch.sin, torch.randn(3)), target="abacus")
    assert "abacus" in caught.value.text()
    answer = json.loads(real_core.lower("{", 0, "{}"))
    assert (
        answer["ok"] is False and answer["error"]["kind"] == "malformed_json" and answer["error"]["message"]
    )
    answer = json.loads(
        real_core.lower(json.dumps(pallascope.trace(torch.sin, torch.randn(3)).data), 5, "{}")
    )
    assert answer["ok"] is False and answer["error"]["kind"] == "not_found"
