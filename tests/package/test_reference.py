"""The graph interpreter, in the graph's dtypes and in float64."""

import pytest
import torch
import torch.nn.functional as F

import pallascope
from models import MODELS, Mutating, dropout
from pallascope import PallascopeError
from pallascope.layout import clone_all
from pallascope.reference import Unavailable, has_subnormals, run_float64, run_flushed, run_graph


def traced(function, *args):
    """(graph, the graph's inputs) for example arguments."""
    program = pallascope.trace(function, *args)
    graph = program.graph()
    users = iter([a for a in args if isinstance(a, torch.Tensor)])
    return graph, [
        next(users) if i["kind"] == "user_input" else program.tensors[i["target"]] for i in graph["inputs"]
    ]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("train", [False, True])
def test_equals_eager_bit_for_bit(name, train):
    torch.manual_seed(0)
    cls, make = MODELS[name]
    model = cls().train(train)
    args = make()
    graph, inputs = traced(model, *args)
    before = clone_all(inputs)
    run = run_graph(graph, inputs)
    assert all(torch.equal(a, b) for a, b in zip(inputs, before)), "the given inputs stay as they are"
    mine = clone_all(args)
    with torch.no_grad():
        expected = model(*mine)
    assert torch.equal(run.outputs[0], expected) and run.outputs[0].stride() == expected.stride()
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    users = iter(mine)
    for i, after in zip(graph["inputs"], run.args):
        assert torch.equal(after, next(users) if i["kind"] == "user_input" else state[i["target"]]), i["name"]


def test_values_are_those_at_their_node():
    graph, inputs = traced(Mutating(), torch.ones(4, 3))
    run = run_graph(graph, inputs)
    assert run.mutated == [0, 1]
    names = {n["target"]: n["outputs"][0]["name"] for n in graph["nodes"]}
    assert torch.equal(run.values[names["aten.mul_.Tensor"]], torch.full((4,), 2.0))  # before the later add_
    assert torch.equal(run.values["x"], torch.ones(4, 3))
    assert torch.equal(run.args[1][:, 0], torch.full((4,), 3.0))
    assert set(run.values) == {i["name"] for i in graph["inputs"]} | {
        o["name"] for n in graph["nodes"] for o in n["outputs"]
    }


def test_running_statistics_are_written_in_training_only():
    """batch_norm's schema does not say that it writes to them."""

    def f(x, mean, variance, training):
        return F.batch_norm(x, mean, variance, training=training)

    for training in (True, False):
        graph, inputs = traced(f, torch.randn(4, 3), torch.zeros(3), torch.ones(3), training)
        run = run_graph(graph, inputs)
        assert run.mutated == ([1, 2] if training else [])
        assert torch.equal(inputs[1], torch.zeros(3)) and run.args[1].any().item() is training
        wide = run_float64(graph, inputs, run)
        torch.testing.assert_close(wide.args[2], run.args[2].double())


def test_inputs_that_share_memory_go_on_sharing():
    base = torch.arange(6.0)
    graph, _ = traced(lambda x, y: x.add_(1) + y, torch.zeros(4), torch.zeros(4))
    run = run_graph(graph, [base[:4], base[2:]])
    mine = base.clone()
    assert torch.equal(run.outputs[0], mine[:4].add_(1) + mine[2:])
    assert run.mutated == [0, 1] and torch.equal(base, torch.arange(6.0))


def test_an_operator_that_raises_names_its_node():
    graph, _ = traced(lambda x, i: x[i], torch.zeros(4), torch.tensor([0]))
    with pytest.raises(PallascopeError) as caught:
        run_graph(graph, [torch.zeros(4), torch.tensor([9])])
    assert caught.value.kind == "host_error" and "aten.index.Tensor" in caught.value.where
    assert "test_reference.py" in caught.value.where and "out of bounds" in caught.value.message
    with pytest.raises(PallascopeError, match="has 2 inputs, got 1"):
        run_graph(graph, [torch.zeros(4)])


def test_an_unknown_operator():
    graph, inputs = traced(torch.sin, torch.zeros(4))
    graph["nodes"][0]["target"] = "nobody.made_this.default"
    with pytest.raises(PallascopeError, match="has no operator 'nobody.made_this.default'"):
        run_graph(graph, inputs)


@pytest.mark.parametrize("name", MODELS)
def test_float64_is_close_and_wide(name):
    torch.manual_seed(0)
    cls, make = MODELS[name]
    graph, inputs = traced(cls().train(), *make())
    eager = run_graph(graph, inputs)
    wide = run_float64(graph, inputs, eager)
    assert wide.outputs[0].dtype == torch.float64 and not wide.notes
    torch.testing.assert_close(wide.outputs[0], eager.outputs[0].double(), rtol=1e-4, atol=1e-5)
    for a, b in zip(wide.args, eager.args):
        torch.testing.assert_close(a, b.to(a.dtype), rtol=1e-5, atol=1e-6)
    assert not any(v.dtype == torch.float32 for v in wide.values.values() if v is not None)


def test_float64_is_what_float64_eager_gives():
    def f(x, n):
        y = x.softmax(-1, dtype=torch.float32) + torch.arange(4, dtype=torch.float32) / 3 + n / 7
        return y.sum(0, dtype=torch.float32), torch.full((2,), 0.1), x.new_ones(3) * 0.1

    x, n = torch.randn(3, 4), torch.tensor([1, 2, 3, 4])
    graph, inputs = traced(f, x, n)
    wide = run_float64(graph, inputs, run_graph(graph, inputs))
    d = x.double()
    expected = (d.softmax(-1) + torch.arange(4, dtype=torch.float64) / 3 + n.double() / 7).sum(0)
    torch.testing.assert_close(wide.outputs[0], expected, rtol=1e-15, atol=1e-15)
    assert torch.get_default_dtype() == torch.float32
    assert torch.equal(wide.outputs[2], torch.ones(3, dtype=torch.float64) * 0.1)


def test_casts_of_the_user_to_16_bits_are_kept_and_said():
    def f(x, half):
        return x.to(torch.bfloat16).to(torch.float32), half.float() * 2, half + 1

    x = torch.randn(5)
    graph, inputs = traced(f, x, torch.randn(5, dtype=torch.float16))
    wide = run_float64(graph, inputs, run_graph(graph, inputs))
    assert len(wide.notes) == 1 and "bf16" in wide.notes[0] and "test_reference.py" in wide.notes[0]
    assert torch.equal(wide.outputs[0], x.to(torch.bfloat16).double())
    assert all(o.dtype == torch.float64 for o in wide.outputs)
    assert torch.equal(wide.outputs[2], inputs[1].double() + 1)


def test_a_copy_into_16_bits_is_a_cast():
    def f(x):
        y = torch.zeros(5, dtype=torch.float16)
        y.copy_(x)
        return y

    x = torch.randn(5)
    graph, inputs = traced(f, x)
    wide = run_float64(graph, inputs, run_graph(graph, inputs))
    assert torch.equal(wide.outputs[0], x.half().double()) and len(wide.notes) == 1


def test_random_values_are_those_of_eager():
    x = torch.randn(64)
    graph, inputs = traced(dropout, x)
    eager = run_graph(graph, inputs, seed=5)
    again = run_graph(graph, inputs, seed=5)
    assert torch.equal(eager.outputs[0], again.outputs[0])
    wide = run_float64(graph, inputs, eager)
    assert torch.equal(wide.outputs[0] == 0, eager.outputs[0] == 0)
    torch.testing.assert_close(wide.outputs[0], eager.outputs[0].double())
    assert "random" in wide.notes[0]
    graph, inputs = traced(lambda x: x + torch.rand_like(x), x)
    eager = run_graph(graph, inputs, seed=1)
    wide = run_float64(graph, inputs, eager)
    torch.testing.assert_close(wide.outputs[0], eager.outputs[0].double(), rtol=1e-6, atol=1e-6)


def test_attention_without_dropout_is_not_random():
    q = torch.randn(1, 2, 4, 8)
    graph, inputs = traced(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), q)
    wide = run_float64(graph, inputs, run_graph(graph, inputs))
    assert not wide.notes
    torch.testing.assert_close(
        wide.outputs[0], F.scaled_dot_product_attention(*[q.double()] * 3, is_causal=True)
    )


def test_where_there_is_no_float64_it_says_why():
    graph, inputs = traced(lambda x: x.view(torch.int32) + 1, torch.randn(4))
    with pytest.raises(Unavailable, match="aten.view.dtype.*reads the bits"):
        run_float64(graph, inputs, run_graph(graph, inputs))


def test_expanded_and_overlapping_inputs_in_float64():
    graph, _ = traced(lambda x, y: x + y, torch.zeros(3, 4), torch.zeros(3, 4))
    x = torch.randn(4).expand(3, 4)
    y = torch.randn(9).as_strided((3, 4), (2, 1), 1)
    wide = run_float64(graph, [x, y], run_graph(graph, [x, y]))
    assert torch.equal(wide.outputs[0], x.double() + y.double())
    assert wide.args[0].stride() == (0, 1) and wide.args[1].stride() == (2, 1)


def test_flushed_subnormals():
    x = torch.tensor([1e-40, 1.0, -1e-41])
    graph, inputs = traced(lambda x: torch.zeros(3) / x, x)
    run = run_flushed(graph, inputs)
    if run is None:
        pytest.skip("this processor cannot flush subnormals")
    assert run.outputs[0].isnan().tolist() == [True, False, True]
    assert not run_graph(graph, inputs).outputs[0].isnan().any(), "the flag is set back"
    assert has_subnormals([x]) and not has_subnormals([torch.tensor([0.0, 1.0, float("nan")]), None])
