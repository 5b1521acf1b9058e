"""Makes promotion_table.inc beside this file: torch.result_type for every pair of kernel dtypes and priorities.

    .venv/bin/python tests/unit/lower/make_promotion_table.py

An operand is a tensor with dimensions (priority 2), a tensor of rank 0 (1) or a Python number (0); numbers come in
three kinds only: bool, int and float.
"""

import pathlib

import torch

NAMES = {
    "b8": torch.bool,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}
NUMBERS = {"b8": True, "i64": 1, "f32": 1.0}


def operands():
    for name, dtype in NAMES.items():
        yield name, 2, torch.ones(3, dtype=dtype)
        yield name, 1, torch.ones((), dtype=dtype)
        if name in NUMBERS:
            yield name, 0, NUMBERS[name]


def main():
    short = {dtype: name for name, dtype in NAMES.items()}
    lines = [
        f"// torch.result_type of torch {torch.__version__.split('+')[0]}, made by make_promotion_table.py: do not edit.",
        "// dtype, priority, dtype, priority, result",
    ]
    for a, pa, x in operands():
        for b, pb, y in operands():
            if pa == 0 and pb == 0:
                continue  # no operator has two numbers and no tensor
            lines.append(f"{{DType::{a}, {pa}, DType::{b}, {pb}, DType::{short[torch.result_type(x, y)]}}},")
    path = pathlib.Path(__file__).with_name("promotion_table.inc")
    path.write_text("\n".join(lines) + "\n")
    print(f"{path.name}: {len(lines) - 2} rows")


if __name__ == "__main__":
    main()
