// Room: functional. In-place operators and writes through views become values.
// Takes: a trace::Graph.
// Gives: an equal graph in which no node changes a tensor; what the graph did to its inputs is listed as outputs.
// May use: base, trace.
// Never: decomposes an operator for another reason (but dropout in training, and operators on lists of tensors, which
// are one operator an element), drops a node that changes nothing, changes an output's order.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/trace/graph.h"

namespace pallascope::functional {

struct Functional {
  trace::Graph graph;
  /// New node -> the node of the original graph that it stands for or was made for. One original node can have
  /// several new ones (`x[1].add_(1)` is an `add` and a `select_scatter`), and a view can be taken again.
  std::vector<trace::NodeId> origin;
  /// New value -> the original value that holds the same numbers when its node has run. Invalid for values that
  /// the original program has no name for (a base after a write through its view, running statistics).
  std::vector<trace::ValueId> value_origin;
  /// For each output of `graph`: the input value (of `graph`) whose storage eager PyTorch's output shares, as
  /// when a mutated argument or a view of it is returned. Invalid when the output has memory of its own.
  std::vector<trace::ValueId> output_alias;
  /// False when the graph was functional already: then `graph` is the one that came in, and the ids are the same.
  bool changed = false;
};

/// Makes `graph` functional. Move the graph in when it is not needed any more: one that is functional already
/// (all that torch.compile gives) is then not copied at all.
///
/// Worked example, `y` of shape [4, 8]:
///
///     slice_1 = slice(y, 1, 2, 4)              slice_1        = slice(y, 1, 2, 4)
///     add_    = add_(slice_1, 1)         ->    add_           = add(slice_1, 1)
///     relu    = relu(y)                        add__into_y    = slice_scatter(y, add_, 1, 2, 4)
///                                              relu           = relu(add__into_y)
///
/// The write back is made when something reads the base or another view of it, so consecutive writes to one view
/// make one `slice_scatter`; a view read after its base changed is taken again, as `slice_1_v1` (v2, ...).
///
/// Names: a node keeps its name also when its operator loses the underscore (`add_` is then an `aten.add.Tensor`);
/// `<node>_into_<value>` is the write back of a node into the tensor that a view was taken of; `<view>_v<n>` is a
/// view taken again after the n-th change of its storage; steps of one operator are `<node>_<what>`, such as
/// `copy__expand`. A further `_2`, `_3` keeps names unique.
///
/// Metas: a storage's root keeps its original meta at each change, a view taken again has the view's meta, and a
/// value written through a view is dense, in the order of the view's strides.
///
/// A written input that the graph does not list becomes an output of kind mutation, after the graph's own outputs
/// and in the order of the inputs. Errors: `unsupported` for writes that overlap themselves (expanded tensors),
/// `out=` tensors that are resized, in-place changes of an input's shape, complex views and views by strides of another
/// dtype that are written through, mutating operators outside aten. `where` names the node and its module.
Result<Functional> functionalize(trace::Graph graph);

/// Whether a node changes one of its arguments (in-place, `out=`, batch_norm in training).
bool is_mutating(const trace::Node& node);

}  // namespace pallascope::functional
