// Room: functional. The pass itself; `functionalize` in functionalize.h is the way in.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/functional/functionalize.h"
#include "core/functional/view.h"

namespace pallascope::functional {

/// Walks the nodes once, in order. Each tensor of the original graph belongs to one *storage*, whose root is the
/// tensor that is no view. A storage has a current value and a version that counts its changes; a write through a
/// view stays *pending* until something reads the root or another view, because consecutive writes to one view are
/// common and each write back costs a pass over the root.
class Functionalizer {
 public:
  explicit Functionalizer(const trace::Graph& old) : old_(old) {}
  Result<Functional> run();

 private:
  struct Pending {
    trace::ValueId target;   ///< the original view that was written
    trace::ValueId content;  ///< what it holds now
    trace::NodeId origin;
  };
  struct Storage {
    trace::ValueId root;     ///< original
    trace::ValueId current;  ///< new; without the pending write
    trace::ValueId memory;   ///< new: the latest value that has what lies in memory between and around the elements
    int version = 0;
    std::optional<Pending> pending;
  };
  /// What is known of an original tensor.
  struct Tensor {
    std::size_t storage = 0;
    std::optional<View> view;  ///< of `view->base`, an original tensor; none for a root
    trace::NodeId maker;
    std::size_t output = 0;
    /// The view taken of the current root, and the version it was taken at.
    trace::ValueId taken;
    int taken_version = -1;
    /// The value last written to this very view: the same numbers without going through the root.
    trace::ValueId written;
    int written_version = -1;
  };
  using Keywords = std::vector<std::pair<std::string, trace::Argument>>;
  struct NewOutput {
    std::string name;
    std::optional<trace::TensorMeta> meta;
    trace::ValueId origin;
  };

  // functionalize.cpp: storages, views, nodes
  void add_inputs();
  void add_outputs();
  void process(trace::NodeId id);
  void copy_node(trace::NodeId id, bool views);
  void take_shape_change(trace::NodeId id);
  /// The entries that are one tensor object with `id`, itself among them, as after `y = x.to(x.dtype)`.
  [[nodiscard]] std::vector<trace::ValueId> same_object(trace::ValueId id) const;
  /// The first of `names` but `self` that a node after this one, or an output, reads. torch.export goes on under the
  /// newest name where its fake tensors are one object like eager's; where they are not, the old name has the old shape.
  [[nodiscard]] std::optional<trace::ValueId> read_later(trace::NodeId after, trace::ValueId self,
                                                         const std::vector<trace::ValueId>& names) const;
  /// The root's current value in memory that holds what lies around its elements, for as_strided with these sizes,
  /// strides and offset: what computes new elements (index_put, add) gives them in memory of its own.
  trace::ValueId in_memory(std::size_t storage, trace::NodeId origin, const trace::TensorMeta& reached);
  /// Where in `memory`, a value of the storage's root, a view of the root begins: new values may begin at 0.
  [[nodiscard]] std::int64_t offset_in(trace::ValueId memory, std::size_t storage, const trace::TensorMeta& view) const;
  void finish_root(trace::ValueId old_value, trace::ValueId new_value);
  void register_outputs(trace::NodeId id, const std::vector<trace::ValueId>& outputs);

  [[nodiscard]] Tensor& tensor(trace::ValueId id) { return tensors_[same_[id.index()].index()]; }
  [[nodiscard]] const trace::TensorMeta& meta(trace::ValueId id) const { return *old_.values[id].tensor; }
  /// The new value with the numbers of an original one, for computing.
  trace::ValueId read(trace::ValueId id);
  /// The same as a view of the current root, with the original meta: for taking views of it, and for outputs.
  trace::ValueId read_view(trace::ValueId id);
  /// `read_view` of the tensor's entry itself. After an in-place change of shape (`x.t_()`) the entry of `x` is
  /// the base of the result's, while the name `x` means the result.
  trace::ValueId read_entry(trace::ValueId id);
  trace::ValueId take_again(trace::ValueId id, int version);
  trace::Argument read_argument(const trace::Argument& argument, bool views);
  void write(trace::ValueId id, trace::ValueId content, trace::NodeId origin);
  void flush(std::size_t storage);
  /// The value of the view's base after the view has become `content`.
  trace::ValueId put_back(const Tensor& view, trace::ValueId content, trace::NodeId origin);
  /// The meta of a value that is written to an original tensor (its entry).
  [[nodiscard]] trace::TensorMeta content_meta(trace::ValueId id) const;
  /// Why a tensor cannot be written, if it cannot.
  [[nodiscard]] std::optional<std::string> unwritable(trace::ValueId id) const;

  std::string unique(std::string name);
  std::vector<trace::ValueId> emit(trace::NodeId origin, std::string name, std::string target,
                                   std::vector<trace::Argument> args, Keywords kwargs,
                                   std::vector<NewOutput> outputs, bool list_output);
  /// A node with one output of its own name, which no original value corresponds to.
  trace::ValueId emit_step(trace::NodeId origin, std::string name, std::string target,
                           std::vector<trace::Argument> args, Keywords kwargs, trace::TensorMeta meta);
  void refuse(trace::NodeId id, std::string message, std::string remedy);

  // in_place.cpp: operators
  void in_place(trace::NodeId id);
  void in_place_list(trace::NodeId id, const trace::ArgumentList& targets);
  std::optional<trace::ValueId> compute(trace::NodeId id, trace::ValueId target);
  std::optional<trace::ValueId> copied(trace::NodeId id, trace::ValueId target, trace::ValueId source,
                                       const std::string& name);
  std::optional<trace::ValueId> diagonal_filled(trace::NodeId id, trace::ValueId target);
  void out_variant(trace::NodeId id);
  void batch_norm(trace::NodeId id);
  void instance_norm(trace::NodeId id);

  // dropout.cpp
  void dropout(trace::NodeId id);

  // foreach.cpp
  /// `emit` for an operator with a list of results, one node an element where that is known.
  std::vector<trace::ValueId> emit_list(trace::NodeId origin, const std::string& name, std::string target,
                                        std::vector<trace::Argument> args, Keywords kwargs, std::vector<NewOutput> outputs);

  const trace::Graph& old_;
  Functional result_;
  std::optional<Diagnostic> problem_;
  std::vector<Tensor> tensors_;       ///< by original value
  std::vector<trace::ValueId> same_;  ///< original value -> the one that stands for the same tensor object
  std::vector<Storage> storages_;
  std::unordered_set<std::string> names_;
};

/// The numbers as a list argument.
trace::Argument integers(const std::vector<std::int64_t>& numbers);

/// Whether the node is a dropout in training that is drawn and computed apart.
bool draws_dropout(const trace::Graph& graph, const trace::Node& node);

/// Whether the node is an operator on lists of tensors that is known element by element.
bool is_list_operator(const trace::Node& node);

/// Whether the node is a normalisation that updates its running statistics: `running_mean` and `running_var` are
/// then the arguments 3 and 4.
bool updates_running_statistics(const trace::Node& node);

}  // namespace pallascope::functional
