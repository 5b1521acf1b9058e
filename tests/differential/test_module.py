"""The generated module itself: its boundary, and its life as a file under plain Python."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import torch

import pallascope
from differential import DTYPES
from pallascope.execute import load_module

# --------------------------------------------------------------------------------------------- the module itself


def test_rank_zero_becomes_one_by_one_at_the_call():
    x = torch.tensor(3.0)
    lowered = pallascope.lower(lambda t: t.sin() + 1, x)
    module, shapes = lowered.module(), []
    original = module.pl.pallas_call

    def pallas_call(kernel, **kwargs):
        def run_it(*operands):
            shapes.extend([o.shape for o in operands] + [s.shape for s in kwargs["out_shape"]])
            return original(kernel, **kwargs)(*operands)

        return run_it

    module.pl = type("pl", (), {"pallas_call": staticmethod(pallas_call)})
    got = lowered.call(x)
    assert got.shape == () and torch.isclose(got, x.sin() + 1)
    assert shapes == [(1, 1), (1, 1)]


def test_interpret_follows_the_platform(monkeypatch):
    source = pallascope.lower(torch.sin, torch.randn(4)).source
    assert "interpret=INTERPRET" in source and "interpret=True" not in source
    assert load_module(source, "edges").INTERPRET is True
    for platform, expected in (("gpu", False), ("tpu", False), ("cpu", True)):
        monkeypatch.setattr(jax, "default_backend", lambda p=platform: p)
        assert load_module(source, "edges").INTERPRET is expected


def test_torch_is_imported_at_module_scope_and_every_dtype_is_mapped():
    source = pallascope.lower(torch.sin, torch.randn(4)).source
    head = source[: source.index("\ndef ")]
    assert "\nimport torch\n" in head and source.count("import torch") == 1
    table = load_module(source, "edges").TORCH_TO_JAX
    assert set(table) == set(DTYPES) and len(table) == 10
    for dtype, other in table.items():
        name = str(dtype).removeprefix("torch.")
        assert jnp.dtype(other).name == name


PLAIN = """
import runpy, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('pallascope', '_pallascope_core'):
            raise ImportError('not installed here: ' + name)
sys.meta_path.insert(0, Refuse())
sys.argv = [sys.argv[1]]
runpy.run_path(sys.argv[0], run_name='__main__')
"""


def mixed(x, w, i, n):
    h = torch.softmax((x @ w).t(), -1)
    n.add_(2)
    return h[i] * 2, n // 3, x.sum() > 0, torch.linalg.matrix_exp(h @ h.t())


def run_file(path):
    done = subprocess.run([sys.executable, "-c", PLAIN, str(path)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "JAX_PLATFORMS": "cpu"}, cwd=path.parent)  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_a_saved_module_runs_on_its_own(tmp_path):
    """Under plain Python, where nothing of Pallascope can be imported: 0 and agreement, and 1 if a kernel is wrong."""
    args = torch.randn(4, 5), torch.randn(5, 6), torch.tensor([1, 5, 0]), torch.tensor([1, 7, 300])
    lowered = pallascope.lower(mixed, *args)
    assert lowered.log["torch"] and lowered.log["library"], "kernels, a product and a torch call"
    (tmp_path / "good.py").write_text(lowered.source)
    code, out, error = run_file(tmp_path / "good.py")
    assert code == 0, error
    assert "debug: agrees with PyTorch on" in out and "steady: agrees with PyTorch on" in out
    broken = lowered.source.replace("* 2.0", "* 2.5")
    assert broken != lowered.source
    (tmp_path / "broken.py").write_text(broken)
    code, out, error = run_file(tmp_path / "broken.py")
    assert code == 1 and "debug: output 0 differs" in out and "steady: differs from PyTorch" in out, error
