// Room: trace. The parts of torch's export schema that archives and graphs share: dtype codes, tensor metas.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/trace/graph.h"
#include "core/trace/json_reader.h"

namespace pallascope::trace {

inline constexpr std::string_view kPt2StaticRemedy =
    "export with static shapes (no dynamic_shapes), so that every size is a number";
inline constexpr std::string_view kPt2SaveAgain = "write the file again with torch.export.save";

/// torch/_export/serde/schema.py, ScalarType.
inline std::optional<DType> pt2_dtype(std::int64_t code) {
  switch (code) {
    case 1:
      return DType::u8;
    case 2:
      return DType::i8;
    case 3:
      return DType::i16;
    case 4:
      return DType::i32;
    case 5:
      return DType::i64;
    case 6:
      return DType::f16;
    case 7:
      return DType::f32;
    case 8:
      return DType::f64;
    case 9:
      return DType::c32;
    case 10:
      return DType::c64;
    case 11:
      return DType::c128;
    case 12:
      return DType::b8;
    case 13:
      return DType::bf16;
    case 28:
      return DType::u16;
    case 29:
      return DType::f8e4m3fn;
    case 30:
      return DType::f8e5m2;
    case 34:
      return DType::u32;
    case 35:
      return DType::u64;
    default:
      return std::nullopt;
  }
}

inline constexpr std::array<std::string_view, 8> kPt2Layouts = {
    "", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn", "strided"};
inline constexpr std::int64_t kPt2Strided = 7;
inline constexpr std::array<std::string_view, 5> kPt2MemoryFormats = {
    "", "contiguous_format", "channels_last", "channels_last_3d", "preserve_format"};

/// Readers of the parts that archives and graphs share.
class Pt2TensorReader : protected JsonReader {
 public:
  Result<TensorMeta> run(const JsonCursor& cursor, std::string_view subject) {
    TensorMeta meta = read_tensor(cursor, subject);
    if (problem_) return *problem_;
    return meta;
  }

 protected:
  TensorMeta read_tensor(const JsonCursor& cursor, std::string_view subject) {
    TensorMeta meta;
    const std::int64_t code = int_at(cursor, "dtype");
    meta.dtype = read_dtype(cursor, code, subject);
    for_each(cursor, "sizes",
             [&](const JsonCursor& size) { meta.sizes.push_back(sym_int(size, subject, "size")); });
    for_each(cursor, "strides",
             [&](const JsonCursor& stride) { meta.strides.push_back(sym_int(stride, subject, "stride")); });
    if (const Result<JsonCursor> offset = cursor.at("storage_offset"); offset.ok())
      meta.storage_offset = sym_int(*offset, subject, "storage offset");
    else
      fail(offset.error());
    if (const Result<JsonCursor> device = cursor.at("device"); device.ok())
      meta.device = read_device(*device);
    else
      fail(device.error());
    meta.requires_grad = optional_bool(cursor, "requires_grad");
    const std::int64_t layout = cursor.has("layout") ? int_at(cursor, "layout") : kPt2Strided;
    if (layout != kPt2Strided)
      fail(
          cursor, DiagnosticKind::unsupported,
          "`" + std::string(subject) + "` has the layout " +
              (layout > 0 && layout < kPt2Strided ? std::string(kPt2Layouts[static_cast<std::size_t>(layout)])
                                                  : std::to_string(layout)),
          "only strided (dense) tensors can be lowered");
    return meta;
  }

  DType read_dtype(const JsonCursor& cursor, std::int64_t code, std::string_view subject) {
    const std::optional<DType> dtype = pt2_dtype(code);
    if (!dtype)
      fail(cursor, DiagnosticKind::unknown_dtype,
           "`" + std::string(subject) + "` has the dtype number " + std::to_string(code) +
               ", which is not known",
           "export with a dtype of torch's export schema such as 7 (float32), 13 (bfloat16) or 5 (int64)");
    return dtype.value_or(DType::f32);
  }

  std::string read_device(const JsonCursor& cursor) {
    std::string device = string_at(cursor, "type");
    if (cursor.has("index")) device += ":" + std::to_string(int_at(cursor, "index"));
    return device;
  }

  /// {"as_int": 3}, or {"as_expr": {"expr_str": "s0", ...}}, which is refused.
  std::int64_t sym_int(const JsonCursor& cursor, std::string_view subject, std::string_view role) {
    if (cursor.has("as_int")) return int_at(cursor, "as_int");
    if (cursor.has("as_expr")) {
      fail(cursor, DiagnosticKind::symbolic_size,
           "a " + std::string(role) + " of `" + std::string(subject) + "` is the symbol `" +
               string_at(*cursor.at("as_expr"), "expr_str") + "`",
           std::string(kPt2StaticRemedy));
      return 0;
    }
    fail(cursor, DiagnosticKind::malformed_graph, "this is no size", std::string(kPt2SaveAgain));
    return 0;
  }

  /// The member of a union: an object in which exactly one key is not null.
  std::size_t union_member(const JsonCursor& cursor) {
    const std::size_t size = take(cursor.object_size());
    std::size_t found = size;
    for (std::size_t i = 0; i < size; ++i) {
      if (cursor.element(i).is_null()) continue;
      if (found != size) found = size + 1;
      if (found == size) found = i;
    }
    if (found < size) return found;
    fail(cursor, DiagnosticKind::malformed_graph, "exactly one member is expected here",
         std::string(kPt2SaveAgain));
    return std::string::npos;
  }
};

}  // namespace pallascope::trace
