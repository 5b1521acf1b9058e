"""Every prefix of the decision log is a correct program: each is lowered, executed and compared with PyTorch.

A prefix's module is what `_pallascope_core.lower(..., {"upto": k})` gives, run kernel by kernel ("debug" mode). Compiling
each kernel of each prefix anew would take minutes, and most kernels are those of the prefix before: a compiled function is
taken over from an earlier module when the text of everything that it executes is the same (see `share`).
"""

from __future__ import annotations

import ast
import json
import math
import sys
import types
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
EXTENSION = ROOT / "build" / "python"
for path in (str(EXTENSION), str(ROOT / "python_bridge")):
    if path not in sys.path:
        sys.path.insert(0, path)

STEADY_EVERY = 12  # one JAX program as a whole, compiled anew each time: only some prefixes


@pytest.fixture(scope="module")
def core():
    if not EXTENSION.exists():
        pytest.skip(f"not built yet: {EXTENSION} does not exist")
    import _pallascope_core

    return _pallascope_core


class Pieces(torch.nn.Module):
    """Softmax over rows and columns, layer norm, a transpose, slices, a concatenation and a reduction."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x, y):
        p = x.softmax(-1)  # (8, 12)
        q = self.norm(p.transpose(0, 1) + y)  # (12, 8)
        left, right = q[:, ::2], q[:, 1::2]  # (12, 4)
        r = (left * 2 - right.flip(0)).softmax(0)
        s = torch.cat([r, left], 1)  # (12, 8)
        return s.sum(0) + p[:, 3], s.transpose(0, 1) @ q, q.amax(1)[2:10]


class Attention(torch.nn.Module):
    """Causal attention over a split projection, with a residual sum."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).split(width, -1)
        q, k, v = [t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v)]
        kept = torch.ones(length, length, dtype=torch.bool).tril()
        scores = (q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)).masked_fill(~kept, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        return x + torch.nn.functional.gelu(self.out(y), approximate="tanh")


class Places(torch.nn.Module):
    """Scans, stores through indices into whole tensors and views, and readers of their targets."""

    def forward(self, x, i):
        c = x.cumsum(1)  # (6, 8)
        p = c.softmax(-1)
        t = p.scatter_add(1, i, x[:, :3].sin())
        u = t.t().index_add(0, i[0], c.t()[:3])  # (8, 6)
        u[1:, i[1] % 6] *= 2
        return t.sum(0) + p[2], u.cumsum(0)[1:], torch.bucketize(x[0], u[:, 0]).cummax(0).indices


def places():
    torch.manual_seed(4)
    return Places().eval(), (torch.randn(6, 8), torch.randint(0, 8, (6, 3)))


def pieces():
    torch.manual_seed(0)
    return Pieces().eval(), (torch.randn(8, 12), torch.randn(12, 8))


def attention():
    torch.manual_seed(1)
    return Attention().eval(), (torch.randn(2, 6, 16),)


def traced(name):
    """(the trace as JSON, the tensors of INPUTS)"""
    import pallascope

    if name == "gpt2_block":
        program = pallascope.load(ROOT / "assets" / "examples" / "gpt2_block.pt2")
        generator = torch.Generator().manual_seed(2)
        given = None
    else:
        model, given = {"pieces": pieces, "attention": attention, "places": places}[name]()
        program = pallascope.trace(model, *given)
        given = iter(given)
    tensors = []
    for i in program.graph(0)["inputs"]:
        if i["kind"] != "user_input":
            tensors.append(program.tensors[i["target"]].detach())
        elif given is None:
            tensors.append(torch.randn(i["tensor"]["sizes"], generator=generator))
        else:
            tensors.append(next(given))
    return program.to_json(), tensors


def lowered(core, text, upto=None):
    answer = json.loads(core.lower(text, 0, json.dumps({} if upto is None else {"upto": upto})))
    assert answer["ok"], answer
    return answer


def share(module: types.ModuleType, source: str, known: dict[str, object]) -> tuple[int, int]:
    """Replaces each `<name>_jit` of the module by one of an earlier module that executes the same text; gives how many
    were known and how many not.

    `<name>_jit` is `jax.jit(<name>_call)`, which calls `<name>_kernel` if there is one, and names nothing else of the
    module but what the prelude (the text before INPUTS) defines. All three texts are the key.
    """
    prelude = source[: source.index("INPUTS = [")].split('"""', 2)[2]
    functions = {
        n.name: ast.get_source_segment(source, n)
        for n in ast.parse(source).body
        if isinstance(n, ast.FunctionDef)
    }
    old = new = 0
    for name in [n for n in vars(module) if n.endswith("_jit") and not n.startswith("_segment")]:
        base = name.removesuffix("_jit")
        key = "\n".join([prelude, functions[base + "_call"], functions.get(base + "_kernel", "")])
        if key in known:
            setattr(module, name, known[key])
            old += 1
        else:
            known[key] = getattr(module, name)
            new += 1
    return old, new


def load(source, number):
    module = types.ModuleType(f"prefix_{number}")
    exec(compile(source, f"<prefix {number}>", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("name", ["pieces", "attention", "places", "gpt2_block"])
def test_every_prefix_gives_what_eager_gives(core, name):
    text, args = traced(name)
    count = lowered(core, text)["decisions"]
    assert count > 40
    known: dict[str, object] = {}
    sources: dict[str, int] = {}
    expected = None
    for k in range(count + 1):
        answer = lowered(core, text, k)
        source = answer["source"]
        assert (
            source.count("    results = pl.pallas_call(") <= answer["kernels"]
        )  # equal kernels share their text
        if source in sources:
            continue  # a refused decision changes nothing
        sources[source] = k
        module = load(source, k)
        assert len(module.INPUTS) == len(args)
        if expected is None:
            assert answer["kernels"] == 0 and "pallas_call(" not in source, (
                "before the first decision all is PyTorch"
            )
            expected = module.reference([a.clone() for a in args])
        share(module, source, known)
        modes = ["debug", "steady"] if k % STEADY_EVERY == 0 or k == count else ["debug"]
        for mode in modes:
            results = module.call([a.clone() for a in args], mode)
            assert len(results) == len(expected)
            for index, (want, got) in enumerate(zip(expected, results, strict=True)):
                assert got.stride() == want.stride(), f"{name}: after {k} decisions, output {index} ({mode})"
                torch.testing.assert_close(
                    got,
                    want,
                    rtol=2e-5,
                    atol=2e-5,
                    msg=lambda m: f"{name}: after {k} decisions, output {index} ({mode}): {m}",  # noqa: B023
                )
    assert len(sources) > count // 2
    assert len(known) < 3 * count


def test_shared_executables_are_those_of_equal_text(core):
    """What `share` relies on, and that it does not share too much."""
    text, args = traced("pieces")
    count = lowered(core, text)["decisions"]
    early, late = lowered(core, text, count - 1)["source"], lowered(core, text, count)["source"]
    known: dict[str, object] = {}
    one, same, other = load(early, 1), load(early, 2), load(late, 3)
    old, new = share(one, early, known)
    assert old == 0 and new == len(known) > 0
    assert share(same, early, known) == (new, 0)
    changed = early.replace("jnp.exp(", "jnp.exp2(")
    assert changed != early
    _, fresh = share(load(changed, 4), changed, known)
    assert fresh > 0, "a kernel with another operation is another executable"
    share(other, late, known)
    wrong = load(changed, 5)
    share(wrong, changed, known)
    results, expected = wrong.call(args, "debug"), wrong.reference(args)
    assert not all(torch.allclose(a, b) for a, b in zip(results, expected, strict=True)), (
        "the changed kernel was run"
    )
