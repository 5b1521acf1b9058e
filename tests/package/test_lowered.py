"""pallascope.lower, with eager kernels in place of the lowering."""

import pytest
import torch

import pallascope
from models import Block, Mutating
from pallascope import PallascopeError


def test_a_function(fake_core):
    def f(x, n, flag=None):
        return {"y": x * n, "n": n, "flag": flag}

    x = torch.randn(3)
    lowered = pallascope.lower(f, x, 2)
    assert lowered.log["kernels"] == 1 and lowered.log == pallascope.compile_log()[0]
    assert "def call" in lowered.source and lowered.module().INPUTS[0]["name"] == "x"
    out = lowered.call(x, 2)
    assert torch.equal(out["y"], x * 2) and out["n"] == 2 and out["flag"] is None
    assert lowered.check()["verdict"] == "passed" and lowered.check(x + 1, 2)["inputs_made"] == "given"
    assert "1 kernels" in repr(lowered)
    with pytest.raises(PallascopeError, match="got fewer"):
        lowered.call()
    with pytest.raises(PallascopeError, match="got more"):
        lowered.call(x, 2, x)


def test_a_module_with_its_parameters(fake_core):
    torch.manual_seed(0)
    model = Block().eval()
    x = torch.randn(4, 8)
    lowered = pallascope.lower(model, x)
    with torch.no_grad():
        assert torch.equal(lowered.call(x), model(x))
    outputs, args, seconds = lowered.run(x)
    assert torch.equal(outputs[0], lowered.call(x)) and len(args) == 8 and seconds > 0


def test_mutation_reaches_the_arguments(fake_core):
    x = torch.ones(4, 3)
    lowered = pallascope.lower(Mutating(), x)
    lowered.call(x)
    assert x[0].tolist() == [3.0, 2.0, 2.0] and lowered.program.tensors["count"].tolist() == [1.0] * 3


def test_programs_paths_and_options(fake_core, tmp_path):
    program = pallascope.trace(torch.sin, torch.randn(3), name="sin")
    program.save(tmp_path / "p.json")
    lowered = pallascope.lower(tmp_path / "p.json", fusion=False, upto=3)
    assert lowered.log["options"] == {"target": "interpret", "fusion": False, "upto": 3}
    assert lowered.check(seed=4)["inputs_made"] == "1 random (seed 4)"
    x = torch.randn(3)
    assert torch.equal(pallascope.lower(program).call(x), x.sin())
    assert torch.equal(lowered.call(x)[0], x.sin()), "a program from a file knows no output structure"
    with pytest.raises(PallascopeError, match="no option 'fuse'"):
        pallascope.lower(program, fuse=True)
    with pytest.raises(PallascopeError, match="no graph 3"):
        pallascope.lower(program, graph=3)
    with pytest.raises(PallascopeError, match="takes no further arguments"):
        pallascope.lower(program, x)
    with pytest.raises(PallascopeError) as caught:
        pallascope.lower(torch.erfinv, torch.zeros(3))
    assert caught.value.kind == "unsupported" and caught.value.where


def test_a_program_without_tensors_asks_for_them(fake_core):
    program = pallascope.Program(pallascope.trace(Block(), torch.randn(4, 8)).to_json())
    lowered = pallascope.lower(program)
    with pytest.raises(PallascopeError, match="no tensor for the parameter"):
        lowered.call(torch.randn(4, 8))
    assert lowered.check()["verdict"] == "passed"


def test_load_says_what_is_wrong(tmp_path):
    with pytest.raises(PallascopeError) as caught:
        pallascope.load(tmp_path / "none.json")
    assert caught.value.kind == "not_found"
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(PallascopeError) as caught:
        pallascope.load(tmp_path / "bad.json")
    assert caught.value.kind == "malformed_json"
