"""Writes a trace of many operators in nested modules, to look at and to measure the window with.

    python3 tests/ui/synthetic.py FILE.json [OPERATORS]

Nothing but the standard library: the graph is made up, layer by layer, like a stack of transformer blocks with
softmax attention over a few channels, so that there are fusions, refusals (a product lies between), views, broadcasts
and a strided read in each layer.
"""

import json
import pathlib
import sys

ROWS, COLUMNS = 64, 128

# What the lines of a layer do: (module below the layer, line, text). The text is what the model column shows.
SOURCE = """\
class Attention(Module):
    def forward(self, x):
        score = torch.tanh(x * self.scale)
        score = score - score.amax(-1, keepdim=True)
        weight = score.exp()
        weight = weight / weight.sum(-1, keepdim=True)
        return weight.t().contiguous().t() * x


class Mlp(Module):
    def forward(self, x):
        y = x @ self.up
        y = torch.sigmoid(y + self.bias) * y
        return y @ self.down


class Layer(Module):
    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        centred = x - mean
        deviation = (centred * centred).mean(-1, keepdim=True)
        y = centred * torch.rsqrt(deviation + 1e-5)
        x = x + self.attention(y)
        return x + self.mlp(x)[:, ::2].repeat(1, 2)
"""


class Graph:
    def __init__(self):
        self.inputs, self.nodes, self.layer = [], [], 0

    def tensor(self, sizes, strides=None):
        if strides is None:
            strides, step = [], 1
            for size in reversed(sizes):
                strides.insert(0, step)
                step *= size
        return {"dtype": "f32", "sizes": list(sizes), "strides": list(strides), "offset": 0}

    def input(self, name, sizes, kind="user_input"):
        self.inputs.append({"kind": kind, "name": name, "target": name.replace("__", "."), "tensor": self.tensor(sizes)})
        return {"value": name}

    def op(self, module, line, target, args, sizes, strides=None):
        base = target.split(".")[1]
        name = f"{base}_{len(self.nodes)}"
        self.nodes.append(
            {
                "name": name,
                "target": target,
                "args": args,
                "kwargs": {},
                "outputs": [{"name": name, "tensor": self.tensor(sizes, strides)}],
                "list_output": False,
                "stack": [
                    {"file": "model.py", "line": line, "function": "forward", "code": SOURCE.splitlines()[line - 1].strip()}
                ],
                "module": f"layers.{self.layer}" + (f".{module}" if module else ""),
                "module_type": module.capitalize() or "Layer",
            }
        )
        return {"value": name}


def layer(g, x):
    full, row = (ROWS, COLUMNS), (ROWS, 1)
    scale = g.input(f"layers__{g.layer}__scale", (COLUMNS,), "parameter")
    up = g.input(f"layers__{g.layer}__up", (COLUMNS, COLUMNS), "parameter")
    bias = g.input(f"layers__{g.layer}__bias", (COLUMNS,), "parameter")
    down = g.input(f"layers__{g.layer}__down", (COLUMNS, COLUMNS), "parameter")
    mean = g.op("", 19, "aten.mean.dim", [x, [-1], True], row)
    centred = g.op("", 20, "aten.sub.Tensor", [x, mean], full)
    square = g.op("", 21, "aten.mul.Tensor", [centred, centred], full)
    deviation = g.op("", 21, "aten.mean.dim", [square, [-1], True], row)
    shifted = g.op("", 22, "aten.add.Tensor", [deviation, 1e-5], row)
    root = g.op("", 22, "aten.rsqrt.default", [shifted], row)
    y = g.op("", 22, "aten.mul.Tensor", [centred, root], full)
    score = g.op("attention", 3, "aten.mul.Tensor", [y, scale], full)
    score = g.op("attention", 3, "aten.tanh.default", [score], full)
    top = g.op("attention", 4, "aten.amax.default", [score, [-1], True], row)
    score = g.op("attention", 4, "aten.sub.Tensor", [score, top], full)
    weight = g.op("attention", 5, "aten.exp.default", [score], full)
    total = g.op("attention", 6, "aten.sum.dim_IntList", [weight, [-1], True], row)
    weight = g.op("attention", 6, "aten.div.Tensor", [weight, total], full)
    turned = g.op("attention", 7, "aten.t.default", [weight], (COLUMNS, ROWS), (1, COLUMNS))
    copied = g.op("attention", 7, "aten.clone.default", [turned], (COLUMNS, ROWS))
    turned = g.op("attention", 7, "aten.t.default", [copied], full, (1, ROWS))
    mixed = g.op("attention", 7, "aten.mul.Tensor", [turned, y], full)
    x = g.op("", 23, "aten.add.Tensor", [x, mixed], full)
    z = g.op("mlp", 12, "aten.mm.default", [x, up], full)
    z1 = g.op("mlp", 13, "aten.add.Tensor", [z, bias], full)
    z1 = g.op("mlp", 13, "aten.sigmoid.default", [z1], full)
    z = g.op("mlp", 13, "aten.mul.Tensor", [z1, z], full)
    z = g.op("mlp", 14, "aten.mm.default", [z, down], full)
    half = g.op("", 24, "aten.slice.Tensor", [z, 1, 0, COLUMNS, 2], (ROWS, COLUMNS // 2), (COLUMNS, 2))
    again = g.op("", 24, "aten.repeat.default", [half, [1, 2]], full)
    return g.op("", 24, "aten.add.Tensor", [x, again], full)


def program(operators):
    g = Graph()
    x = g.input("x", (ROWS, COLUMNS))
    while len(g.nodes) < operators:
        x = layer(g, x)
        g.layer += 1
    return {
        "format": "pallascope.trace",
        "version": 1,
        "producer": "tests/ui/synthetic.py",
        "name": f"synthetic_{len(g.nodes)}",
        "graphs": [
            {
                "name": "model",
                "kind": "export",
                "inputs": g.inputs,
                "nodes": g.nodes,
                "outputs": [{"kind": "user_output", "value": x["value"]}],
            }
        ],
        "sources": {"model.py": SOURCE},
    }


def main(arguments):
    if not arguments:
        raise SystemExit(__doc__)
    path = pathlib.Path(arguments[0])
    path.write_text(json.dumps(program(int(arguments[1]) if len(arguments) > 1 else 5000)), encoding="utf-8")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
