// Room: base. Element types, by the field's short names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pallascope {

/// Element types. The first ten can live in a kernel; the rest are known so that they can be named in a
/// diagnostic or left to PyTorch.
enum class DType : std::uint8_t { b8, u8, i8, i16, i32, i64, f16, bf16, f32, f64, c32, c64, c128, u16, u32, u64, f8e4m3fn, f8e5m2 };

/// Short name: `bool`, `u8`, `i64`, `bf16`, `f32`, `c64`, ...
std::string_view dtype_name(DType dtype);
/// The inverse of `dtype_name`; also accepts PyTorch's names (`float32`, `int64`, `torch.bool`).
std::optional<DType> dtype_from_name(std::string_view name);
/// PyTorch's name without the `torch.` prefix, e.g. `float32`.
std::string_view torch_dtype_name(DType dtype);
/// The dtype's name in jax.numpy, e.g. `float32`, `bool_`.
std::string_view jax_dtype_name(DType dtype);
/// Bytes of one element.
std::int64_t dtype_bytes(DType dtype);

constexpr bool is_bool(DType d) { return d == DType::b8; }
constexpr bool is_float(DType d) { return (d >= DType::f16 && d <= DType::f64) || d >= DType::f8e4m3fn; }
constexpr bool is_complex(DType d) { return d >= DType::c32 && d <= DType::c128; }
constexpr bool is_integer(DType d) { return (d >= DType::u8 && d <= DType::i64) || (d >= DType::u16 && d <= DType::u64); }
constexpr bool is_signed_integer(DType d) { return d >= DType::i8 && d <= DType::i64; }
/// Whether generated kernels can hold elements of this dtype.
constexpr bool is_kernel_dtype(DType d) { return d <= DType::f64; }

}  // namespace pallascope
