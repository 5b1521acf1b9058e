// Family: casts and copies. A cast that the user wrote is a statement of its own and stays.
#include "core/lower/builder.h"

namespace pallascope::lower {
namespace {

/// Copies into a fresh buffer in the dtype and memory order of the result.
Lowered copy(Call& call) {
  const Tensor source = call.tensor(0, "self");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(source.dtype) || !is_kernel_dtype(meta.dtype)) return declined_dtype();
  if (meta.device != call.builder.graph().values[*call.argument(0, "self")->get<trace::ValueId>()].tensor->device)
    return declined("a copy to another device");
  call.define(call.builder.pointwise(
      call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.load(source); }, &meta));
  return as_kernel();
}

/// `to` and `contiguous` return their argument itself when there is nothing to do.
Lowered copy_if_changed(Call& call) {
  const trace::TensorMeta& source = *call.builder.graph().values[*call.argument(0, "self")->get<trace::ValueId>()].tensor;
  const trace::TensorMeta& meta = call.meta();
  const bool forced = call.boolean(99, "copy", false);
  if (!forced && source.dtype == meta.dtype && source.device == meta.device && source.strides == meta.strides) {
    call.define(call.tensor(0, "self"));
    return as_view();
  }
  return copy(call);
}

/// copy(self, src): src broadcast and cast to self.
Lowered copy_from(Call& call) {
  const Tensor source = call.tensor(1, "src");
  const trace::TensorMeta& meta = call.meta();
  if (!is_kernel_dtype(source.dtype) || !is_kernel_dtype(meta.dtype)) return declined_dtype();
  call.define(call.builder.pointwise(
      call.node.name, meta.sizes, meta.dtype, [&](NestBuilder& nest) { return nest.load(source); }, &meta));
  return as_kernel();
}

}  // namespace

std::vector<Entry> cast_entries() {
  std::vector<Entry> rows;
  for (std::string_view op : {"aten._to_copy.default", "aten.clone.default", "aten.lift_fresh_copy.default",
                              "prims.convert_element_type.default"})
    rows.push_back({op, "cast", copy});
  for (std::string_view op : {"aten.to.dtype", "aten.to.dtype_layout", "aten.to.device", "aten.to.other", "aten.type_as.default",
                              "aten.contiguous.default", "aten.float.default"})
    rows.push_back({op, "cast", copy_if_changed});
  rows.push_back({"aten.copy.default", "cast", copy_from});
  return rows;
}

}  // namespace pallascope::lower
