"""Makes the .pt2 files in data/ that the tests of core/trace and core/functional open.

Run it again only to follow a new PyTorch; the tests check node lists, which name what torch.export gave:

    .venv/bin/python tests/unit/trace/make_fixtures.py

Each file stays under 30 KB. Sample inputs are left out: they are a pickle that these tests never open.
"""

import json
import pathlib
import sys
import zipfile

import torch
import torch.nn.functional as F

DATA = pathlib.Path(__file__).parent / "data"


class Mlp(torch.nn.Module):
    """Parameters, a buffer outside the state dict, a constant, a module in a list."""

    def __init__(self):
        super().__init__()
        self.h = torch.nn.ModuleList([torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)])
        self.register_buffer("shift", torch.ones(4), persistent=False)
        self.scale = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def forward(self, x, n: int, flag=None):
        y = self.h[1](F.gelu(self.h[0](x), approximate="tanh"))
        return y * self.scale + self.shift, None, n


class Writes(torch.nn.Module):
    """In-place operators on a view, a buffer, an argument; views read after the write."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3))
        self.linear = torch.nn.Linear(4, 8)

    def forward(self, x):
        y = self.linear(x)
        part = y[:, 2:4]
        part.add_(1)
        part.mul_(3)
        self.count.mul_(2)
        left, right = x.split(2, dim=1)
        right[0].zero_()
        x.relu_()
        values, indices = torch.max(y, dim=1)
        return part, left + right, values, self.count, x.t()


class BatchNorm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = torch.nn.BatchNorm1d(4)

    def forward(self, x):
        return self.bn(x)


class Attention(torch.nn.Module):
    """Composite operators that torch.export leaves whole: einsum, attention, casts."""

    def forward(self, q, k, v):
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = torch.einsum("bhsd,bhtd->bhst", attended, k)
        masked = mixed.masked_fill(mixed > 0, float("-inf"))
        return masked.to(torch.bfloat16).contiguous(memory_format=torch.contiguous_format)


def strip(text):
    """The model's JSON with this machine's folders shortened."""
    document = json.loads(text)
    here = str(pathlib.Path(__file__).resolve())
    site = str(pathlib.Path(torch.__file__).resolve().parent.parent)
    for node in document["graph_module"]["graph"]["nodes"]:
        trace = node["metadata"].get("stack_trace", "")
        node["metadata"]["stack_trace"] = trace.replace(here, "/src/fixtures.py").replace(site, "/site-packages")
        node["metadata"].pop("torch_fn", None)
    return json.dumps(document, separators=(",", ":"))


def save(name, program):
    path = DATA / f"{name}.pt2"
    raw = DATA / f"{name}.raw.pt2"
    torch.export.save(program, str(raw))
    with zipfile.ZipFile(raw) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target:
        for entry in source.infolist():
            content = source.read(entry)
            if "/sample_inputs/" in entry.filename or "/.data/" in entry.filename:
                continue
            if "/models/" in entry.filename:
                content = strip(content).encode()
            # The time stamp is fixed, so that the same PyTorch gives the same bytes.
            stored = zipfile.ZipInfo(entry.filename.replace(f"{name}.raw/", f"{name}/", 1), (2024, 1, 1, 0, 0, 0))
            compress = zipfile.ZIP_DEFLATED if entry.filename.endswith(".json") else zipfile.ZIP_STORED
            target.writestr(stored, content, compress_type=compress)
    raw.unlink()
    size = path.stat().st_size
    print(name, size)
    if size > 30_000:
        sys.exit(f"{path} has {size} bytes, more than 30,000")


def main():
    DATA.mkdir(exist_ok=True)
    torch.manual_seed(0)
    export = torch.export.export
    save("mlp", export(Mlp(), (torch.randn(2, 4), 3)))
    save("writes", export(Writes(), (torch.randn(5, 4),)))
    save("batch_norm", export(BatchNorm(), (torch.randn(6, 4),)))
    save("attention", export(Attention().eval(), tuple(torch.randn(1, 2, 4, 8) for _ in range(3))))
    # The same program after torch's own functionalisation: it lists its mutations itself.
    save("writes_functional", export(Writes(), (torch.randn(5, 4),)).run_decompositions())


if __name__ == "__main__":
    main()
