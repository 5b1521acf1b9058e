"""A fixed share of the fuzzer's programs, and the fuzzer itself: a fault put into the generated source must be found and
shrunk to a few statements."""

from __future__ import annotations

import pytest
import torch
from fuzz import judge, runner, shrink
from fuzz.generate import generate
from fuzz.program import Input, Program, Statement, plain_input, torch_names
from fuzz.runner import Way
from fuzz.work import answers, batches, run_batch


def report(found: dict, programs: list[Program]) -> str:
    return "\n\n".join(f"# seed {programs[k].seed}: {difference}\n{programs[k].snippet()}" for k, difference in found.items())


def agree(seeds: range, way: Way) -> None:
    programs = [generate(seed) for seed in seeds]
    found = runner.failures(programs, way)
    assert not found, f"{len(found)} of {len(programs)} programs differ ({way}):\n{report(found, programs)}"


@pytest.mark.parametrize("way", [Way(numpy=True), Way(numpy=True, mode="debug", fusion=False), Way(numpy=True, upto=0.4)], ids=str)
def test_programs_on_numpy(way):
    agree(range(70), way)


def test_programs():
    agree(range(100, 130), Way())


def test_programs_through_torch_compile():
    agree(range(200, 206), Way(compiled=True))


@pytest.mark.parametrize("fault", [("jnp.abs(", "jnp.sign("), ("axis=(1,)", "axis=(0,)"), ("[1:, ", "[:-1, "), (".T", "[...]")], ids=lambda f: f[0])
def test_a_fault_is_found_and_shrunk(fault):
    way, found = Way(numpy=True, fault=fault), []
    for first in range(300, 480, 20):
        programs = [generate(seed) for seed in range(first, first + 20)]
        found = [programs[k] for k, difference in runner.failed(programs, way).items() if difference.kind == "values"]
        if found:
            break
    assert found, f"no program notices that {fault[0]} became {fault[1]}"
    small = shrink.shrink(found[0], lambda p: getattr(runner.failed([p], way).get(0), "kind", "") == "values", seconds=8)
    assert len(small.statements) <= 3, small.snippet()
    assert shrink.size(small) < shrink.size(found[0])
    assert not runner.failures([small], Way(numpy=True)), "without the fault it agrees"
    exec(compile(small.snippet().replace("print(", "("), "<snippet>", "exec"), {})  # stands alone


def one(text: str, *inputs: torch.Tensor) -> Program:
    named = {f"x{k}": plain_input(t) for k, t in enumerate(inputs)}
    return Program(named, (Statement(text, tuple(named), ("v0",)),), ("v0",))


def test_what_the_judge_accepts():
    """Rounding across a step is no difference; the same step from exact numbers is one."""
    x = torch.arange(1, 40, dtype=torch.float32)
    rounded = one("{0} * 0.1", x)
    rounded = rounded.with_(statements=(*rounded.statements, Statement("{0} * 10", ("v0",), ("v1",)), Statement("torch.floor({0})", ("v1",), ("v2",))), outputs=("v2",))
    (want,), arguments = rounded.run()
    off = want.clone()
    off[(x * 0.1 * 10 == x.round()) & (x > 2)] -= 1
    assert judge.compare(rounded, (off,), arguments) is None
    exact = one("torch.floor({0} * 2)", x)
    (want,), arguments = exact.run()
    assert judge.compare(exact, (want,), arguments) is None
    for wrong in (want - 1, want.double(), want[:-1], want.flip(0)):
        assert judge.compare(exact, (wrong,), arguments) is not None
    (want,), arguments = one("torch.sin({0})", x).run()
    assert judge.compare(one("torch.sin({0})", x), (want * 1.0001,), arguments).kind == "values"
    assert judge.compare(one("{0} + 0", x), (x.clone(),), (x + 1,)).kind == "values"


def test_the_sign_of_a_nan_is_left_open():
    x = torch.tensor([4.0, -2.0, 3.0])
    program = one("torch.log({0})", x)
    program = program.with_(statements=(*program.statements, Statement("torch.copysign({0}, {1})", ("x0", "v0"), ("v1",))), outputs=("v1",))
    (want,), arguments = program.run()
    assert judge.compare(program, (want * torch.tensor([1.0, -1.0, 1.0]),), arguments) is None
    assert judge.compare(program, (want * torch.tensor([-1.0, 1.0, 1.0]),), arguments).kind == "values"


def test_the_judge_sees_memory():
    program = one("{0}.view(2, 3)", torch.arange(6.0))
    (want,), arguments = program.run()
    assert judge.compare(program, (want,), arguments) is None
    assert judge.compare(program, (want.clone(),), arguments).kind == "alias"
    program = one("{0} * 2", torch.arange(6.0).reshape(2, 3))
    (want,), arguments = program.run()
    assert judge.compare(program, (want.t().contiguous().t(),), arguments).kind == "strides"


def test_programs_are_the_same_for_a_seed_and_use_much():
    programs = [generate(seed) for seed in range(150)]
    assert [p.snippet() for p in programs] == [generate(seed).snippet() for seed in range(150)]
    statements = [s for p in programs for s in p.statements]
    assert len(set(torch_names(statements))) > 120
    inputs = [i for p in programs for i in p.inputs.values()]
    assert sum(i.make().is_contiguous() for i in inputs) < 0.8 * len(inputs)
    assert {i.storage.dtype for i in inputs} >= {torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool}
    assert any(0 in i.sizes for i in inputs) and any(i.sizes == () for i in inputs)
    results = [r for p in programs for r in p.run()[0] if r.is_floating_point()]
    assert sum(bool(r.isfinite().all()) for r in results) > 0.8 * len(results), "most programs stay finite enough to tell"
    assert sum(not s.targets for s in statements) > len(statements) / 20, "statements that only write"


def test_an_input_prints_itself():
    for made in (Input(torch.arange(7.0), (2, 2), (3, 1), 1), Input(torch.tensor([True, False]), (2,), (1,)), Input(torch.tensor([float("nan"), -0.0]), (), (), 1)):
        space = dict(generate(0).function().__globals__)
        again = eval(made.text(), space)
        torch.testing.assert_close(again, made.make(), equal_nan=True)
        assert again.stride() == made.make().stride() and again.storage_offset() == made.offset


def test_a_dead_worker_costs_its_batch_only(monkeypatch):
    """The batch is run again program by program; the one that kills its process is reported."""
    monkeypatch.setenv("PALLASCOPE_FUZZ_DIES", "2")
    collected = list(answers(1, 2, 2, 1, Way(numpy=True), 0))
    found = [f for a in collected for f in a.found]
    assert sum(a.programs for a in collected) == 2
    assert [(f.seed, f.kind) for f in found] == [(2, "crash")]


def test_batches_cover_all_seeds_once():
    made = batches(5, 93, 40, None)
    assert [s for seeds, _ in made for s in seeds] == list(range(5, 98))
    assert run_batch([0], Way(numpy=True), 0).programs == 1
