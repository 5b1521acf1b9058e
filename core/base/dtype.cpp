#include "core/base/dtype.h"

#include <array>

namespace pallascope {
namespace {

struct Row {
  DType dtype;
  std::string_view name, torch, jax;
  std::int64_t bytes;
};

constexpr std::array kRows = {
    Row{DType::b8, "bool", "bool", "bool_", 1},
    Row{DType::u8, "u8", "uint8", "uint8", 1},
    Row{DType::i8, "i8", "int8", "int8", 1},
    Row{DType::i16, "i16", "int16", "int16", 2},
    Row{DType::i32, "i32", "int32", "int32", 4},
    Row{DType::i64, "i64", "int64", "int64", 8},
    Row{DType::f16, "f16", "float16", "float16", 2},
    Row{DType::bf16, "bf16", "bfloat16", "bfloat16", 2},
    Row{DType::f32, "f32", "float32", "float32", 4},
    Row{DType::f64, "f64", "float64", "float64", 8},
    Row{DType::c32, "c32", "complex32", "complex32", 4},
    Row{DType::c64, "c64", "complex64", "complex64", 8},
    Row{DType::c128, "c128", "complex128", "complex128", 16},
    Row{DType::u16, "u16", "uint16", "uint16", 2},
    Row{DType::u32, "u32", "uint32", "uint32", 4},
    Row{DType::u64, "u64", "uint64", "uint64", 8},
    Row{DType::f8e4m3fn, "f8e4m3fn", "float8_e4m3fn", "float8_e4m3fn", 1},
    Row{DType::f8e5m2, "f8e5m2", "float8_e5m2", "float8_e5m2", 1},
};

const Row& row(DType dtype) { return kRows.at(static_cast<std::size_t>(dtype)); }

}  // namespace

std::string_view dtype_name(DType dtype) { return row(dtype).name; }
std::string_view torch_dtype_name(DType dtype) { return row(dtype).torch; }
std::string_view jax_dtype_name(DType dtype) { return row(dtype).jax; }
std::int64_t dtype_bytes(DType dtype) { return row(dtype).bytes; }

std::optional<DType> dtype_from_name(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  for (const Row& r : kRows)
    if (r.name == name || r.torch == name) return r.dtype;
  return std::nullopt;
}

}  // namespace pallascope
