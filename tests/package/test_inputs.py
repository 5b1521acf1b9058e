"""Inputs: layouts exact, values legal, weights mapped."""

import zipfile

import pytest
import torch
import torch.nn.functional as F

import pallascope
from models import Block, Convolution, Tokens
from pallascope import PallascopeError
from pallascope.dtypes import torch_dtype
from pallascope.inputs import random_inputs, random_tensor, sample_inputs
from pallascope.layout import clone_all, storage_elements
from pallascope.legal import legal_values
from pallascope.pt2 import Pt2
from pallascope.reference import run_graph


def meta(dtype="f32", sizes=(), strides=(), offset=0):
    return {"dtype": dtype, "sizes": list(sizes), "strides": list(strides), "offset": offset}


@pytest.mark.parametrize(
    "sizes, strides, offset, storage",
    [
        ((3, 4), (4, 1), 0, 12),
        ((3, 4), (1, 3), 0, 12),
        ((3, 4), (8, 2), 5, 5 + 23),
        ((3, 4), (0, 1), 0, 4),
        ((3, 4), (0, 0), 7, 8),
        ((5, 4), (2, 1), 1, 13),
        ((), (), 0, 1),
        ((), (), 3, 4),
        ((0, 4), (4, 1), 2, 2),
        ((1, 1), (99, 77), 0, 1),
    ],
)
def test_layouts_are_exact(sizes, strides, offset, storage):
    for dtype in ("f32", "bf16", "i64", "bool", "u8", "c64", "f16", "i8", "u32", "f8e5m2"):
        m = meta(dtype, sizes, strides, offset)
        t = random_tensor(m, 1)
        assert t.size() == torch.Size(sizes) and t.stride() == tuple(strides) and t.storage_offset() == offset
        assert t.dtype == torch_dtype(dtype)
        assert (
            t.untyped_storage().nbytes()
            == storage * t.element_size()
            == storage_elements(m) * t.element_size()
        )


def test_values_by_dtype():
    big = dict(sizes=(4000,), strides=(1,))
    f = random_tensor(meta(**big), 0)
    assert abs(float(f.mean())) < 0.1 and 0.9 < float(f.std()) < 1.1
    i = random_tensor(meta("i32", **big), 0)
    assert i.min() == -10 and i.max() == 10
    u = random_tensor(meta("u8", **big), 0)
    assert u.min() == 0 and u.max() == 255
    b = random_tensor(meta("bool", **big), 0)
    assert 0.4 < float(b.float().mean()) < 0.6
    assert torch.equal(random_tensor(meta(**big), 7), random_tensor(meta(**big), 7))
    assert not torch.equal(random_tensor(meta(**big), 7), random_tensor(meta(**big), 8))


def check_range(function, args, name, low, high):
    """The demand on the input `name` is low..high, and eager runs on inputs drawn within it."""
    program = pallascope.trace(function, *args)
    graph = program.graph()
    legal = legal_values(graph)
    target = next(i["name"] for i in graph["inputs"] if i["target"] == name)
    assert (legal[target].low, legal[target].high) == (low, high)
    for seed in range(3):
        tensors, _ = random_inputs(graph, seed, program.tensors)
        value = next(t for t, i in zip(tensors, graph["inputs"]) if i["name"] == target)
        if value.numel():
            assert value.min() >= low and value.max() <= high
        run_graph(graph, tensors)


I64 = torch.zeros(6, dtype=torch.int64)


@pytest.mark.parametrize(
    "function, args, name, low, high",
    [
        (lambda ids, w: F.embedding(ids, w), (I64, torch.randn(11, 3)), "ids", 0, 10),
        (
            lambda ids, w: F.embedding(ids.view(2, 3).to(torch.int64).t(), w),
            (I64.int(), torch.randn(11, 3)),
            "ids",
            0,
            10,
        ),
        (lambda ids, w: F.embedding(ids + 2, w), (I64, torch.randn(11, 3)), "ids", -2, 8),
        (lambda x, i: x[i], (torch.randn(7, 2), I64), "i", -7, 6),
        (lambda x, i: x[:, i], (torch.randn(2, 5), I64), "i", -5, 4),
        (
            lambda x, m, i: x[m, i] if False else x[:, :, i],
            (torch.randn(2, 3, 4), I64.bool(), I64),
            "i",
            -4,
            3,
        ),
        (lambda x, i: x.index_select(1, i), (torch.randn(2, 5), I64), "i", 0, 4),
        (lambda x, i: x.gather(1, i), (torch.randn(2, 5), I64.view(2, 3)), "i", 0, 4),
        (lambda x, i: x.scatter(1, i, 1.0), (torch.randn(2, 5), I64.view(2, 3)), "i", 0, 4),
        (
            lambda x, i: torch.zeros(2, 5).scatter_add_(1, i, x),
            (torch.randn(2, 3), I64.view(2, 3)),
            "i",
            0,
            4,
        ),
        (lambda x, i: x.index_add(0, i, torch.ones(6, 2)), (torch.randn(4, 2), I64), "i", 0, 3),
        (lambda x, i: x.index_put((i,), torch.ones(6), accumulate=True), (torch.randn(4), I64), "i", -4, 3),
        (lambda i: F.one_hot(i, 5), (I64,), "i", 0, 4),
        (lambda x, i: x.take(i), (torch.randn(2, 5), I64), "i", -10, 9),
        (lambda x, t: F.cross_entropy(x, t), (torch.randn(6, 9), I64), "t", 0, 8),
        (lambda x, t: F.nll_loss(x.log_softmax(-1), t), (torch.randn(6, 9), I64), "t", 0, 8),
        (lambda p: torch.bernoulli(p), (torch.rand(9),), "p", 0.0, 1.0),
        (lambda a, b: torch.bitwise_left_shift(a, b), (I64.int(), I64.int()), "b", 0, 31),
        (lambda x, i: x.index_select(0, torch.cat([i, i])), (torch.randn(3, 2), I64), "i", 0, 2),
        (lambda x, i: x[torch.where(i > 0, i, 0)], (torch.randn(3, 2), I64), "i", -3, 2),
    ],
)
def test_indices_are_legal(function, args, name, low, high):
    check_range(function, args, name, low, high)


def test_the_tightest_of_two_demands_holds():
    def f(x, y, i):
        return x[i] + y.index_select(0, i)

    check_range(f, (torch.randn(9), torch.randn(4), I64), "i", 0, 3)


def test_masks_are_no_indices():
    graph = pallascope.trace(
        lambda x, m: torch.where(m, x, 0), torch.randn(4), torch.ones(4, dtype=torch.bool)
    ).graph()
    assert legal_values(graph) == {}


def test_divisors_are_not_zero():
    graph = pallascope.trace(lambda a, b: (a // b) + a % b, I64, I64).graph()
    for seed in range(20):
        tensors, _ = random_inputs(graph, seed)
        assert (tensors[1] != 0).all()
        run_graph(graph, tensors)


def test_variances_are_positive_and_boundaries_ascend():
    program = pallascope.trace(Convolution().eval(), torch.randn(2, 3, 6, 6))
    tensors, made = random_inputs(program.graph(), 3)
    assert made.startswith(f"{len(tensors)} random (seed 3")
    variance = next(
        t for t, i in zip(tensors, program.graph()["inputs"]) if i["target"] == "norm.running_var"
    )
    assert (variance > 0).all()
    assert run_graph(program.graph(), tensors).outputs[0].isfinite().all()
    graph = pallascope.trace(torch.bucketize, torch.randn(5), torch.tensor([1.0, 2.0, 3.0])).graph()
    tensors, _ = random_inputs(graph, 0)
    assert (tensors[1].diff() >= 0).all()


def test_an_axis_of_no_elements_has_no_index():
    graph = pallascope.trace(lambda x, i: x.index_select(0, i), torch.zeros(0, 3), I64[:0]).graph()
    random_inputs(graph, 0)


def test_one_more_input_changes_no_other():
    one = pallascope.trace(lambda x: x.sin(), torch.randn(4)).graph()
    two = pallascope.trace(lambda x, y: x + y, torch.randn(4), torch.randn(4)).graph()
    assert torch.equal(random_inputs(one, 5)[0][0], random_inputs(two, 5)[0][0])


def test_given_tensors_and_samples():
    program = pallascope.trace(Tokens(), torch.tensor([[1, 2, 3]]))
    graph = program.graph()
    tensors, made = random_inputs(graph, 0, program.tensors)
    assert torch.equal(tensors[0], program.tensors["embed.weight"]) and made.endswith("1 given")
    ids = torch.tensor([[4, 5, 6]])
    assert torch.equal(sample_inputs(graph, [ids], program.tensors, 0)[0][1], ids)
    assert torch.equal(sample_inputs(graph, {"ids": ids}, program.tensors, 0)[0][1], ids)
    with pytest.raises(PallascopeError, match="2 sample inputs, the graph takes 1"):
        sample_inputs(graph, [ids, ids], program.tensors, 0)
    with pytest.raises(PallascopeError, match=r"is torch.float32 \[3\], the graph has i64 \[1, 3\]"):
        sample_inputs(graph, [torch.zeros(3)], program.tensors, 0)


def test_samples_get_the_layout_of_the_graph():
    graph = pallascope.trace(lambda x, y: x + y, torch.randn(3, 4).t(), torch.randn(3).expand(4, 3)).graph()
    x, y = torch.randn(4, 3), torch.randn(3).expand(4, 3).contiguous()
    a, b = sample_inputs(graph, [x, y], None, 0)[0]
    assert a.stride() == (1, 4) and torch.equal(a, x)
    assert b.stride() == (0, 1) and torch.equal(b, y)


def test_clones_keep_what_they_share():
    base = torch.arange(10.0)
    a, b, c = clone_all([base[2:8:2], base.as_strided((3, 3), (1, 1)), torch.ones(2)])
    assert a.stride() == (2,) and a.storage_offset() == 2 and b.stride() == (1, 1)
    assert (
        a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() != base.untyped_storage().data_ptr()
    )
    a.zero_()
    assert base[2] == 2 and b[0, 2] == 0 and c.sum() == 2


@pytest.fixture
def archive(tmp_path):
    torch.manual_seed(1)
    model = Block().eval()
    x = torch.randn(4, 8)
    exported = torch.export.export(model, (x,))
    torch.export.save(exported, tmp_path / "block.pt2")
    program = pallascope.load(tmp_path / "block.pt2").data
    import json

    with zipfile.ZipFile(tmp_path / "block.pt2") as z:
        config = json.loads(z.read(next(n for n in z.namelist() if n.endswith("model_weights_config.json"))))[
            "config"
        ]
    program["weights"] = {
        t: {"member": f"data/weights/{c['path_name']}", "bytes": 0} for t, c in config.items()
    }
    return tmp_path / "block.pt2", program, model, x


def test_weights_are_mapped_copy_on_write(archive):
    path, program, model, _ = archive
    before = path.read_bytes()
    weights = Pt2(path).weights(program, program["graphs"][0])
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    assert set(weights) == set(state)
    for target, value in weights.items():
        assert torch.equal(value, state[target])
    weights["layers.0.weight"].zero_()
    assert path.read_bytes() == before
    assert torch.equal(
        Pt2(path).weights(program, program["graphs"][0])["layers.0.weight"], model.layers[0].weight
    )


def test_a_compressed_archive_works_as_well(archive, tmp_path):
    path, program, model, _ = archive
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "z.pt2", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    weights = Pt2(tmp_path / "z.pt2").weights(program, program["graphs"][0])
    assert torch.equal(weights["scale"], model.scale)


def test_samples_of_a_pt2(archive):
    path, _, _, x = archive
    samples = Pt2(path).samples()
    assert len(samples) == 1 and torch.equal(samples[0], x)


def test_a_pickle_that_asks_for_code_is_refused(archive, tmp_path):
    import pickle

    class Evil:
        def __reduce__(self):
            return print, ("executed",)

    path, _, _, _ = archive
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "evil.pt2", "w") as new:
        for name in old.namelist():
            new.writestr(name, pickle.dumps(Evil()) if "sample_inputs" in name else old.read(name))
    with pytest.raises(PallascopeError) as caught:
        Pt2(tmp_path / "evil.pt2").samples()
    assert caught.value.kind == "not_readable"


def test_broken_archives(archive, tmp_path):
    path, program, _, _ = archive
    with pytest.raises(PallascopeError) as caught:
        Pt2(tmp_path / "none.pt2")
    assert caught.value.kind == "not_found"
    (tmp_path / "text.pt2").write_text("hello")
    with pytest.raises(PallascopeError) as caught:
        Pt2(tmp_path / "text.pt2")
    assert caught.value.kind == "not_a_zip"
    program["weights"]["scale"]["member"] = "data/weights/nope"
    with pytest.raises(PallascopeError) as caught:
        Pt2(path).weights(program, program["graphs"][0])
    assert caught.value.kind == "missing_member"
    program["weights"]["scale"]["member"] = program["weights"]["norm.weight"]["member"]
    next(i for i in program["graphs"][0]["inputs"] if i["target"] == "scale")["tensor"]["offset"] = 4
    with pytest.raises(PallascopeError) as caught:
        Pt2(path).weights(program, program["graphs"][0])
    assert caught.value.kind == "storage_bounds"


def test_saved_indices_of_a_backward_are_legal(fake_core, monkeypatch):
    """Random integers would make PyTorch itself read out of bounds here: not every backward checks."""
    import json

    graphs = []
    lower = fake_core.lower
    monkeypatch.setattr(
        fake_core, "lower", lambda p, i, o: graphs.append(json.loads(p)["graphs"][0]) or lower(p, i, o)
    )

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bag = torch.nn.EmbeddingBag(10, 4)
            self.embed = torch.nn.Embedding(10, 4)

        def forward(self, ids, offsets, x):
            y = self.bag(ids, offsets).sum() + self.embed(ids).sum()
            return (
                y
                + F.max_pool2d(x, 2).sum()
                + x.amax()
                + x.median(-1).values.sum()
                + x.cummax(-1).values.sum()
            )

    ids, offsets = torch.tensor([1, 9, 3, 4]), torch.tensor([0, 2])
    model = torch.compile(M(), backend="pallascope")
    model(ids, offsets, torch.randn(1, 2, 6, 6, requires_grad=True)).backward()
    assert [g["kind"] for g in graphs] == ["forward", "backward"]
    for graph in graphs:
        for seed in range(5):
            run_graph(graph, random_inputs(graph, seed)[0])


def test_an_unknown_operator_gets_index_zero():
    graph = pallascope.trace(
        lambda x, i: torch.segment_reduce(x, "sum", lengths=i), torch.randn(4), torch.tensor([4])
    ).graph()
    graph["nodes"][-1]["target"] = "aten.segment_reduce.default"
    assert all(v.low == v.high == 0 for v in legal_values(graph).values())
