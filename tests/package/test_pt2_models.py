"""Models saved by torch.export alone, opened by the C++ reader, and checked in both modes.

Nothing here helps the file along: `torch.export.save(torch.export.export(model, args))`, as a stranger saves it. The
tensors come from the archive, located by the reader.
"""

from __future__ import annotations

import json
import zipfile

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

import pallascope
from pallascope.check import check_graph
from pallascope.inputs import sample_inputs
from pallascope.pt2 import Pt2
from pallascope.tracing import Program

MODELS = {}


def model(make_args, train=False, torch_operators=()):
    """Registers a class; `torch_operators` are those that may be left to PyTorch."""

    def add(cls):
        MODELS[cls.__name__] = cls, make_args, train, set(torch_operators)
        return cls

    return add


def x(*sizes):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(len(sizes)))


@model(lambda: ((x(6, 4),), {}), train=True)
class TrainedBatchNorm(nn.Module):
    """Changes its running statistics, and torch.export's signature does not list that."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.BatchNorm1d(4), nn.BatchNorm1d(4, affine=False)

    def forward(self, a):
        return self.second(self.first(a).relu())


@model(lambda: ((x(2, 4, 5, 5),), {}))
class FrozenNorms(nn.Module):
    def __init__(self):
        super().__init__()
        self.batch, self.group, self.layer = nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.LayerNorm(5)

    def forward(self, a):
        return self.layer(self.group(self.batch(a)))


@model(lambda: ((torch.tensor([[1, 3, 2], [0, 7, 5]]),), {}))
class TiedWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(8, 6), nn.Linear(6, 8, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return F.log_softmax(self.head(F.gelu(self.embedding(ids))), -1)


@model(lambda: ((x(2, 3, 4), x(2, 4, 5)), {}), torch_operators=["aten.einsum.default"])
class Einsum(nn.Module):
    def forward(self, a, b):
        return torch.einsum("bij,bjk->bik", a, b).sum(1)


@model(lambda: ((x(4, 6),), {}))
class WritesThroughViews(nn.Module):
    def forward(self, a):
        y = a * 2
        y[1:3].mul_(3)
        y.t()[0] += 1
        y[:, -2:] = y[:, :2].clone()
        y.view(-1)[5] = 0
        return y, y[1]


@model(lambda: ((x(4),), {}))
class Counts(nn.Module):
    """Buffers that are changed, and one that is not saved with the parameters."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("calls", torch.tensor(0))
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0, 4.0]), persistent=False)

    def forward(self, a):
        self.calls += 1
        self.total.mul_(0.5).add_(a * self.scale)
        return self.total * 2, self.calls + 1


@model(lambda: ((x(3, 5, 4),), {}))
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gates = nn.Linear(4 + 6, 24)

    def forward(self, sequence):
        h = c = sequence.new_zeros(sequence.shape[0], 6)
        out = []
        for t in range(sequence.shape[1]):
            i, f, g, o = self.gates(torch.cat([sequence[:, t], h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            out.append(h)
        return torch.stack(out, 1), (h, c)


@model(lambda: ((x(2, 6, 8),), {"mask": torch.tensor([[True] * 6, [True] * 4 + [False] * 2])}))
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out, self.drop = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8), nn.Dropout(0.3)

    def forward(self, a, mask=None):
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.qkv(self.norm(a)).split(8, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        scores = (q @ k.mT / 2).masked_fill(~mask[:, None, None, :], float("-inf")).softmax(-1)
        y = y + self.drop(scores) @ v
        return a + self.drop(self.out(y.transpose(1, 2).reshape(a.shape)))


@model(lambda: ((x(3, 4),), {}))
class Wrappers(nn.Module):
    """no_grad and a switched-off autocast are sub-graphs of the file."""

    def forward(self, a):
        with torch.no_grad():
            b = a.sin()
            with torch.autocast("cpu", enabled=False):
                c = (b @ b.mT).exp()
        with torch.no_grad():
            d, e = a.split([1, 3], 1)
            b = b + e.sum()
        return c + b.sum() + d.sum(), b


@model(lambda: ((x(3, 4), None, 2, [x(4), {"k": x(3, 1)}]), {"alpha": 0.5, "bias": x(4)}))
class Trees(nn.Module):
    """None, numbers, keywords and nests go in; nests, None, numbers and an argument come out."""

    def forward(self, a, nothing, n, nest, *, alpha, bias):
        y = a * n + nest[0] * alpha + nest[1]["k"] + bias
        return {"y": y, "more": [y.sum(0), None, n], "a": a, "const": 7}


@model(lambda: ((x(3, 4),), {}))
class Constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.arange(12.0).reshape(3, 4)  # neither a parameter nor a buffer

    def forward(self, a):
        return a + self.table, a[torch.tensor([2, 0])] + torch.tensor([1.0, 2.0, 3.0, 4.0])


@model(lambda: ((x(3, 4).to(torch.bfloat16),), {}))
class HalfPrecision(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4).to(torch.bfloat16)
        self.scale = nn.Parameter(torch.ones(4, dtype=torch.float64))

    def forward(self, a):
        y = self.linear(a)
        return (y.float() * self.scale).to(a.dtype), y.to(torch.float64).type_as(a)


@model(lambda: ((x(2, 4), x(4)), {}))
class Smaller(nn.Module):
    """Composite operators that torch.export keeps."""

    def forward(self, a, b):
        padded = F.pad(a, (1, 2), value=3.0)
        return padded.diff(dim=1), torch.max(a, b), torch.min(a, b), a.square().mean(-1, keepdim=True)


def opened(path):
    import _pallascope_core

    answer = json.loads(_pallascope_core.read(str(path)))
    assert answer["ok"], answer
    program = json.loads(answer["program"])
    archive = Pt2(path)
    return Program(program, tensors=archive.weights(program, program["graphs"][0])), archive


def checked(program, archive):
    graph = program.graph()
    user = [i["name"] for i in graph["inputs"] if i["kind"] == "user_input"]
    samples = archive.samples() or []
    assert len(samples) == len(user)
    inputs, _ = sample_inputs(graph, dict(zip(user, samples)), program.tensors, 0)
    lowered = pallascope.lower(program)
    result, _ = check_graph(graph, lowered.module(), inputs, modes=("steady", "debug"))
    return lowered, result


@pytest.mark.parametrize("name", MODELS)
def test_opens_lowers_and_checks(name, tmp_path, real_core):
    cls, make_args, train, left = MODELS[name]
    torch.manual_seed(0)
    args, kwargs = make_args()
    path = tmp_path / f"{name}.pt2"
    torch.export.save(torch.export.export(cls().train(train), args, kwargs), path)
    program, archive = opened(path)
    targets = {i["target"] for i in program.graph()["inputs"] if i["kind"] != "user_input"}
    assert targets == set(program.tensors), "every parameter, buffer and constant lies in the archive"
    lowered, result = checked(program, archive)
    assert result["verdict"] == "passed", json.dumps(result)[:2000]
    assert set(lowered.log["torch"]) <= left, "a composite operator is left to PyTorch"


def test_statistics_that_the_signature_does_not_list(tmp_path, real_core):
    path = tmp_path / "bn.pt2"
    torch.export.save(torch.export.export(TrainedBatchNorm().train(), (x(6, 4),)), path)
    program, archive = opened(path)
    lowered = pallascope.lower(program)
    names = [program.graph()["inputs"][k]["target"] for k in lowered.log["mutated"]]
    assert {"first.running_mean", "first.running_var", "second.running_mean"} <= set(names)


def test_wrappers_are_put_inline_from_a_live_graph_too(real_core):
    a = x(3, 4)
    lowered = pallascope.lower(Wrappers(), a)
    assert not any("wrap" in n["target"] for n in lowered.graph["nodes"])
    for got, want in zip(lowered.call(a), Wrappers()(a)):
        torch.testing.assert_close(got, want)


def test_a_damaged_wrapper_is_a_diagnostic(tmp_path, real_core):
    """A sub-graph whose operands do not fit, and one that is no wrapper."""
    path = tmp_path / "w.pt2"
    torch.export.save(torch.export.export(Wrappers(), (x(3, 4),)), path)
    for old, new, kind, words in (
        ("wrap_with_set_grad_enabled", "while_loop", "unsupported", "while_loop"),
        ('"as_graph"', '"as_nothing"', "malformed_graph", "has no body"),
    ):
        damaged = tmp_path / "damaged.pt2"
        with zipfile.ZipFile(path) as source, zipfile.ZipFile(damaged, "w") as target:
            for info in source.infolist():
                data = source.read(info)
                target.writestr(info, data.replace(old.encode(), new.encode()) if info.filename.endswith("model.json") else data)
        answer = json.loads(real_core.read(str(damaged)))
        assert not answer["ok"] and answer["error"]["kind"] == kind and words in answer["error"]["message"], answer
