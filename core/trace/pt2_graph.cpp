#include "core/trace/pt2_graph.h"

#include <unordered_map>
#include <unordered_set>

#include "core/trace/pt2_arguments.h"

namespace pallascope::trace {
namespace {

class ModelReader : private Pt2ArgumentReader {
 public:
  Result<Pt2Model> run(const JsonCursor& root, std::string_view graph_name) {
    check_version(root);
    Pt2Model model;
    model.torch_version = optional_string(root, "torch_version");
    graph_.name = graph_name;
    graph_.kind = "export";
    if (const Result<JsonCursor> module = root.at("graph_module"); !problem_ && module.ok())
      read_module(*module);
    else if (!module.ok())
      fail(module.error());
    if (problem_) return *problem_;
    if (const Status valid = validate(graph_); !valid.ok()) {
      Diagnostic diagnostic = valid.error();
      diagnostic.where = root.where() + ", " + diagnostic.where;
      return diagnostic;
    }
    model.graph = std::move(graph_);
    return model;
  }

 private:
  void check_version(const JsonCursor& root) {
    const Result<JsonCursor> version = root.at("schema_version");
    if (!version.ok()) return fail(version.error());
    const std::int64_t major = int_at(*version, "major");
    const std::int64_t minor = version->has("minor") ? int_at(*version, "minor") : 0;
    if (!problem_ && major != kPt2SchemaMajor)
      fail(*version, DiagnosticKind::schema_version,
           "the file has export schema version " + std::to_string(major) + "." + std::to_string(minor) +
               ", this program reads major version " + std::to_string(kPt2SchemaMajor),
           "export again with a PyTorch whose schema has major version " + std::to_string(kPt2SchemaMajor) +
               " (2.7 to 2.13, for instance)");
  }

  void read_module(const JsonCursor& module) {
    const Result<JsonCursor> graph = module.at("graph");
    const Result<JsonCursor> signature = module.at("signature");
    if (!graph.ok()) return fail(graph.error());
    if (!signature.ok()) return fail(signature.error());
    const Result<JsonCursor> metas = graph->at("tensor_values");
    if (!metas.ok()) return fail(metas.error());
    const std::size_t count = take(metas->object_size());
    for (std::size_t i = 0; i < count; ++i) meta_index_.emplace(metas->key_of(i), i);
    metas_ = &*metas;
    read_all_symbols(*graph);
    read_inputs(*graph, *signature);
    if (graph->has("nodes")) collect_names(*graph->at("nodes"));
    for_each(*graph, "nodes", [&](const JsonCursor& node) { read_node(node); });
    for_each(*signature, "output_specs", [&](const JsonCursor& spec) { read_output(spec); });
    metas_ = nullptr;
  }

  // --- subgraphs ------------------------------------------------------------------------------------------

  /// The names of the outermost graph, which keeps them; what is put in from a subgraph is renamed where it must.
  void collect_names(const JsonCursor& nodes) {
    for (const auto& [name, index] : meta_index_) taken_.insert(name);
    const std::size_t count = take(nodes.list_size());
    for (std::size_t i = 0; i < count && !problem_; ++i)
      if (std::string name = optional_string(nodes.element(i), "name"); !name.empty()) taken_.insert(std::move(name));
  }

  /// The name in the graph of what the scope at hand calls `name`.
  std::string shown_name(const std::string& name) {
    if (!inside_) return name;
    const auto known = renamed_.find(name);
    if (known != renamed_.end()) return known->second;
    std::string made = name;
    for (int i = 2; !taken_.insert(made).second; ++i) made = name + "__" + std::to_string(i);
    renamed_.emplace(name, made);
    return made;
  }

  /// `wrap_with_set_grad_enabled(flag, body, operands...)`, and `wrap_with_autocast` that is switched off: neither
  /// changes a value, so the body's nodes stand in their place.
  void inline_body(const JsonCursor& cursor, const JsonCursor& outputs, std::size_t flags) {
    const Result<JsonCursor> inputs = cursor.at("inputs");
    if (!inputs.ok()) return fail(inputs.error());
    const std::size_t count = take(inputs->list_size());
    const auto misfit = [&](const std::string& what) {
      fail(cursor, DiagnosticKind::malformed_graph, "node `" + node_ + "` (" + target_ + ") " + what,
           std::string(kPt2SaveAgain));
    };
    if (problem_ || count <= flags) return misfit("has no body");
    const Result<JsonCursor> body_argument = inputs->element(flags).at("arg");
    if (!body_argument.ok() || !body_argument->has("as_graph")) return misfit("has no body");
    const Result<JsonCursor> body = body_argument->at("as_graph")->at("graph");
    if (!body.ok()) return fail(body.error());
    std::vector<Argument> operands;
    for (std::size_t i = flags + 1; i < count && !problem_; ++i)
      if (const Result<JsonCursor> operand = inputs->element(i).at("arg"); operand.ok())
        operands.push_back(read_argument(*operand));
    const Result<JsonCursor> metas = body->at("tensor_values");
    const Result<JsonCursor> parameters = body->at("inputs");
    if (!metas.ok() || !parameters.ok()) return misfit("has a body without inputs or tensor_values");
    if (take(parameters->list_size()) != operands.size()) return misfit("has not one operand for each input of its body");
    if (problem_) return;

    const std::string name = node_;
    Scope outer{std::move(names_),   std::move(meta_index_), std::move(node_outputs_), std::move(symbols_),
                std::move(renamed_), metas_,                 inside_};
    names_.clear(), meta_index_.clear(), node_outputs_.clear(), symbols_.clear(), renamed_.clear();
    inside_ = true;
    metas_ = &*metas;
    const std::size_t values = take(metas->object_size());
    for (std::size_t i = 0; i < values; ++i) meta_index_.emplace(metas->key_of(i), i);
    read_all_symbols(*body);
    for (std::size_t i = 0; i < operands.size() && !problem_; ++i) {
      const JsonCursor parameter = parameters->element(i);
      const ValueId* value = operands[i].get<ValueId>();
      if (parameter.has("as_tensor") && value != nullptr)
        names_.emplace(string_at(*parameter.at("as_tensor"), "name"), *value);
    }
    for_each(*body, "nodes", [&](const JsonCursor& inner) { read_node(inner); });
    node_.clear();
    std::vector<ValueId> results;
    for_each(*body, "outputs", [&](const JsonCursor& result) {
      const Argument read = read_argument(result);
      const ValueId* value = read.get<ValueId>();
      results.push_back(value == nullptr ? ValueId() : *value);
    });
    names_ = std::move(outer.names), meta_index_ = std::move(outer.meta_index);
    node_outputs_ = std::move(outer.node_outputs), symbols_ = std::move(outer.symbols);
    renamed_ = std::move(outer.renamed), metas_ = outer.metas, inside_ = outer.inside;
    if (problem_) return;
    node_ = name;

    std::vector<std::string> given;
    for_each(outputs, [&](const JsonCursor& output) {
      if (output.has("as_tensor"))
        given.push_back(string_at(*output.at("as_tensor"), "name"));
      else if (output.has("as_tensors"))
        for_each(*output.at("as_tensors"),
                 [&](const JsonCursor& element) { given.push_back(string_at(element, "name")); });
      else
        given.emplace_back();
    });
    if (given.size() > results.size()) return misfit("has more outputs than its body");
    for (std::size_t i = 0; i < given.size(); ++i)
      if (!given[i].empty() && results[i].valid()) names_.emplace(given[i], results[i]);
    node_outputs_.emplace(name, std::move(results));
    node_.clear();
  }

  /// Whether an autocast that a node wraps its body in is switched off.
  static bool autocast_is_off(const JsonCursor& cursor) {
    const Result<JsonCursor> inputs = cursor.at("inputs");
    if (!inputs.ok() || !inputs->list_size().ok() || *inputs->list_size() < 5) return false;
    const Result<JsonCursor> enabled = inputs->element(2).at("arg");
    if (!enabled.ok() || !enabled->has("as_bool")) return false;
    const Result<bool> value = enabled->at("as_bool")->as_bool();
    return value.ok() && !*value;
  }

  void read_all_symbols(const JsonCursor& graph) {
    for (const std::string_view kind : {"sym_int_values", "sym_bool_values", "sym_float_values"})
      if (graph.has(kind)) read_symbols(*graph.at(kind));
  }

  void read_symbols(const JsonCursor& symbols) {
    const std::size_t count = take(symbols.object_size());
    for (std::size_t i = 0; i < count; ++i) {
      const JsonValue* expression = symbols.element(i).value().find("as_expr");
      const JsonValue* text = expression != nullptr ? expression->find("expr_str") : nullptr;
      const std::string* name = text != nullptr ? text->get<std::string>() : nullptr;
      symbols_.emplace(symbols.key_of(i), name != nullptr ? *name : symbols.key_of(i));
    }
  }

  // --- values ---------------------------------------------------------------------------------------------

  /// Makes the value that the file calls `name`; `shown` is the name it gets.
  ValueId define(const JsonCursor& cursor, const std::string& name, std::string shown, NodeId producer,
                 int index) {
    const auto meta = meta_index_.find(name);
    if (meta == meta_index_.end()) {
      fail(cursor, DiagnosticKind::missing_member, "`tensor_values` has no entry for `" + name + "`",
           std::string(kPt2SaveAgain));
      return {};
    }
    if (names_.contains(name)) {
      fail(cursor, DiagnosticKind::malformed_graph, "two values are named `" + name + "`",
           std::string(kPt2SaveAgain));
      return {};
    }
    Value value;
    value.name = std::move(shown);
    value.tensor = read_tensor(metas_->element(meta->second), name);
    value.producer = producer;
    value.output_index = index;
    const ValueId id = graph_.values.add(std::move(value));
    names_.emplace(name, id);
    return id;
  }

  // --- inputs ---------------------------------------------------------------------------------------------

  void read_inputs(const JsonCursor& graph, const JsonCursor& signature) {
    const Result<JsonCursor> inputs = graph.at("inputs");
    const Result<JsonCursor> specs = signature.at("input_specs");
    if (!inputs.ok()) return fail(inputs.error());
    if (!specs.ok()) return fail(specs.error());
    const std::size_t count = take(inputs->list_size());
    if (take(specs->list_size()) != count)
      fail(*specs, DiagnosticKind::malformed_graph,
           "the signature does not have one input spec for each of the graph's " + std::to_string(count) +
               " inputs",
           std::string(kPt2SaveAgain));
    for (std::size_t i = 0; i < count && !problem_; ++i) read_input(inputs->element(i), specs->element(i));
  }

  void read_input(const JsonCursor& argument, const JsonCursor& spec) {
    const std::size_t member = union_member(argument);
    const std::size_t spec_member = union_member(spec);
    if (problem_) return;
    const std::string& kind = argument.key_of(member);
    if (kind == "as_custom_obj") {
      (void)read_argument(argument);
      return;
    }
    // A number, a string or None is part of what was traced: no node can refer to it. A symbol's name is in
    // `symbols_`, so a node that uses it is refused there.
    if (kind != "as_tensor") return;
    const std::string name = string_at(argument.element(member), "name");
    Input input;
    input.target = name;
    const JsonCursor content = spec.element(spec_member);
    const std::string& spec_kind = spec.key_of(spec_member);
    if (spec_kind == "parameter") {
      input.kind = InputKind::parameter;
      input.target = string_at(content, "parameter_name");
    } else if (spec_kind == "buffer") {
      input.kind = InputKind::buffer;
      input.target = string_at(content, "buffer_name");
    } else if (spec_kind == "tensor_constant") {
      input.kind = InputKind::constant;
      input.target = string_at(content, "tensor_constant_name");
    } else if (spec_kind != "user_input") {
      fail(spec, DiagnosticKind::unsupported, "the input `" + name + "` is of kind `" + spec_kind + "`",
           "export a module whose inputs are tensors");
    }
    if (problem_) return;
    input.value = define(argument, name, name, NodeId(), 0);
    if (input.kind != InputKind::user_input) state_inputs_.emplace(input.target, name);
    graph_.inputs.push_back(std::move(input));
  }

  // --- nodes ----------------------------------------------------------------------------------------------

  void read_node(const JsonCursor& cursor) {
    Node node;
    node.target = string_at(cursor, "target");
    node.name = optional_string(cursor, "name");
    const Result<JsonCursor> outputs = cursor.at("outputs");
    if (!outputs.ok()) return fail(outputs.error());
    if (node.name.empty()) node.name = name_from_outputs(*outputs);
    node_ = node.name;
    target_ = node.target;
    if (node.target == "_operator.getitem") return fold_getitem(cursor, *outputs);
    if (node.target == "torch.ops.higher_order.wrap_with_set_grad_enabled") return inline_body(cursor, *outputs, 1);
    if (node.target == "torch.ops.higher_order.wrap_with_autocast" && autocast_is_off(cursor))
      return inline_body(cursor, *outputs, 4);
    node.name = shown_name(node.name);
    if (!check_target(cursor, node)) return;
    for_each(cursor, "inputs", [&](const JsonCursor& input) { read_node_input(input, node); });
    if (const Result<JsonCursor> metadata = cursor.at("metadata"); metadata.ok() && metadata->is_object()) {
      node.stack = parse_stack_trace(optional_string(*metadata, "stack_trace"));
      std::tie(node.module_path, node.module_type) =
          parse_module_stack(optional_string(*metadata, "nn_module_stack"));
    }
    read_node_outputs(*outputs, node);
    if (problem_) return;
    node_outputs_.emplace(node_, node.outputs);
    graph_.nodes.add(std::move(node));
    node_.clear();
  }

  /// Files of older minor versions do not name their nodes.
  std::string name_from_outputs(const JsonCursor& outputs) {
    if (take(outputs.list_size()) > 0) {
      const JsonCursor first = outputs.element(0);
      if (first.has("as_tensor")) return string_at(*first.at("as_tensor"), "name");
    }
    return "node_" + std::to_string(graph_.nodes.size());
  }

  bool check_target(const JsonCursor& cursor, Node& node) {
    constexpr std::string_view kOps = "torch.ops.", kHigherOrder = "torch.ops.higher_order.";
    if (node.target.starts_with(kHigherOrder)) {
      const std::string name = node.target.substr(kHigherOrder.size());
      fail(cursor, DiagnosticKind::unsupported,
           "node `" + node.name + "` is the higher-order operator `" + name + "`, which calls a subgraph",
           name.starts_with("wrap_with_autocast")
               ? "cast explicitly, or use torch.compile, which records the casts of an autocast"
               : "write this part of the model without `" + name + "`");
      return false;
    }
    if (node.target.starts_with(kOps)) {
      node.target.erase(0, kOps.size());
      return true;
    }
    // What remains are Python functions on symbolic numbers (`_operator.mul`, `math.ceil`) and extensions.
    if (node.target.starts_with("_operator.") || node.target.starts_with("math.") ||
        node.target.starts_with("torch.sym_"))
      fail(cursor, DiagnosticKind::symbolic_size,
           "node `" + node.name + "` computes with symbolic numbers (`" + node.target + "`)",
           std::string(kPt2StaticRemedy));
    else
      fail(cursor, DiagnosticKind::unsupported,
           "node `" + node.name + "` calls `" + node.target + "`, which is no operator of torch.ops",
           "write this part of the model with PyTorch's own operators");
    return false;
  }

  void read_node_input(const JsonCursor& cursor, Node& node) {
    const Result<JsonCursor> argument = cursor.at("arg");
    if (!argument.ok()) return fail(argument.error());
    Argument content = read_argument(*argument);
    const std::string name = optional_string(cursor, "name");
    constexpr std::int64_t kPositional = 1, kKeyword = 2;
    // Older minor versions have no kind. Then only the first argument is surely not behind a skipped default.
    const std::int64_t unknown = node.args.empty() && node.kwargs.empty() ? kPositional : kKeyword;
    const std::int64_t kind = cursor.has("kind") ? int_at(cursor, "kind") : unknown;
    if ((kind == kPositional || name.empty()) && node.kwargs.empty())
      node.args.push_back(std::move(content));
    else
      node.kwargs.emplace_back(name, std::move(content));
  }

  void read_node_outputs(const JsonCursor& outputs, Node& node) {
    const std::size_t count = take(outputs.list_size());
    node.list_output = count > 1;
    for (std::size_t i = 0; i < count && !problem_; ++i) {
      const JsonCursor output = outputs.element(i);
      const std::size_t member = union_member(output);
      if (problem_) return;
      const std::string& kind = output.key_of(member);
      if (kind == "as_tensors" && count == 1) {
        node.list_output = true;
        for_each(output.element(member), [&](const JsonCursor& element) { read_node_output(element, node); });
      } else if (kind == "as_tensor") {
        read_node_output(output.element(member), node);
      } else if (kind == "as_optional_tensor" && output.element(member).has("as_tensor")) {
        read_node_output(*output.element(member).at("as_tensor"), node);
      } else if (kind == "as_none" || kind == "as_optional_tensor") {
        Value none;
        none.name = count == 1 ? node.name : unused_name(node);
        none.producer = NodeId(graph_.nodes.size());
        none.output_index = static_cast<int>(node.outputs.size());
        node.outputs.push_back(graph_.values.add(std::move(none)));
      } else if (kind.starts_with("as_sym_")) {
        fail(output, DiagnosticKind::symbolic_size,
             "node `" + node.name + "` (" + node.target + ") gives a number that is not known before it runs",
             "write this part of the model without .item() and without sizes that depend on data");
      } else {
        fail(output, DiagnosticKind::unsupported,
             "node `" + node.name + "` (" + node.target + ") returns `" + kind + "`",
             "write this part of the model with operators that return tensors or one list of tensors");
      }
    }
  }

  static std::string unused_name(const Node& node) {
    return node.name + "." + std::to_string(node.outputs.size());
  }

  void read_node_output(const JsonCursor& cursor, Node& node) {
    const std::string name = string_at(cursor, "name");
    if (problem_) return;
    // torch.export calls an output that nothing takes `split_unused_1`; in FORMAT.md it is `split.1`.
    const bool unused = name == node_ + "_unused_" + std::to_string(node.outputs.size());
    node.outputs.push_back(define(cursor, name, unused ? unused_name(node) : shown_name(name),
                                  NodeId(graph_.nodes.size()), static_cast<int>(node.outputs.size())));
  }

  /// `getitem(split, 1)`: the value that it would make is output 1 of `split`, under the getitem's name.
  void fold_getitem(const JsonCursor& cursor, const JsonCursor& outputs) {
    const Result<JsonCursor> inputs = cursor.at("inputs");
    if (!inputs.ok()) return fail(inputs.error());
    const auto refuse = [&](const std::string& why) {
      fail(cursor, DiagnosticKind::malformed_graph, "`_operator.getitem` node `" + node_ + "` " + why,
           "take an element of a node that returns several values, by a number");
    };
    if (take(inputs->list_size()) != 2 || take(outputs.list_size()) != 1 ||
        !outputs.element(0).has("as_tensor"))
      return refuse("does not take one element");
    const Result<JsonCursor> index_argument = inputs->element(1).at("arg");
    const Result<JsonCursor> list_argument = inputs->element(0).at("arg");
    if (!index_argument.ok() || !list_argument.ok() || !index_argument->has("as_int"))
      return refuse("has no constant index");
    std::vector<ValueId> elements;
    if (list_argument->has("as_tensors")) {
      for_each(*list_argument, "as_tensors", [&](const JsonCursor& element) {
        elements.push_back(use(element, string_at(element, "name")));
      });
    } else if (list_argument->has("as_tensor")) {
      const std::string name = string_at(*list_argument->at("as_tensor"), "name");
      const auto producer = node_outputs_.find(name);
      if (producer == node_outputs_.end()) return refuse("takes from `" + name + "`, which is no list");
      elements = producer->second;
    }
    std::int64_t index = int_at(*index_argument, "as_int");
    if (index < 0) index += static_cast<std::int64_t>(elements.size());
    if (problem_) return;
    if (index < 0 || index >= static_cast<std::int64_t>(elements.size()))
      return refuse("reaches past the list");
    const std::string name = string_at(*outputs.element(0).at("as_tensor"), "name");
    if (problem_ || !names_.emplace(name, elements[static_cast<std::size_t>(index)]).second)
      return refuse("defines a name twice");
    // Only an output that has no name of its own takes this one; a second getitem is just another name.
    const ValueId id = elements[static_cast<std::size_t>(index)];
    const Value& value = graph_.values[id];
    if (value.producer.valid() &&
        value.name == graph_.nodes[value.producer].name + "." + std::to_string(value.output_index))
      graph_.values.edit(id).name = shown_name(name);
    node_.clear();
  }

  // --- outputs --------------------------------------------------------------------------------------------

  void read_output(const JsonCursor& spec) {
    node_.clear();
    const std::size_t member = union_member(spec);
    if (problem_) return;
    const std::string& kind = spec.key_of(member);
    const JsonCursor content = spec.element(member);
    const Result<JsonCursor> argument = content.at("arg");
    if (!argument.ok()) return fail(argument.error());
    Output output;
    if (kind == "user_output") {
      const Argument read = read_argument(*argument);
      if (const ValueId* id = read.get<ValueId>())
        output.value = *id;
      else if (!read.is_none())
        output.constant = read;
    } else if (kind == "loss_output" || kind == "gradient_to_parameter" || kind == "gradient_to_user_input") {
      output.value = tensor(*argument);
    } else if (kind == "buffer_mutation" || kind == "parameter_mutation" || kind == "user_input_mutation") {
      output.kind = OutputKind::mutation;
      output.value = tensor(*argument);
      output.target = mutated_input(content, kind);
    } else {
      fail(spec, DiagnosticKind::unsupported, "an output is of kind `" + kind + "`",
           "export a module whose outputs are tensors");
    }
    if (!problem_) graph_.outputs.push_back(std::move(output));
  }

  /// The input value's name for a mutation spec, which names a buffer, a parameter or a user's argument.
  std::string mutated_input(const JsonCursor& content, const std::string& kind) {
    if (kind == "user_input_mutation") return string_at(content, "user_input_name");
    const std::string target =
        string_at(content, kind == "buffer_mutation" ? "buffer_name" : "parameter_name");
    if (const auto found = state_inputs_.find(target); found != state_inputs_.end()) return found->second;
    fail(content, DiagnosticKind::undefined_value, "the mutated `" + target + "` is no input of the graph",
         std::string(kPt2SaveAgain));
    return {};
  }

  /// What names mean in one graph of the file.
  struct Scope {
    std::unordered_map<std::string, ValueId> names;
    std::unordered_map<std::string, std::size_t> meta_index;
    std::unordered_map<std::string, std::vector<ValueId>> node_outputs;
    std::unordered_map<std::string, std::string> symbols, renamed;
    const JsonCursor* metas = nullptr;
    bool inside = false;
  };

  Graph graph_;
  std::unordered_set<std::string> taken_;                  ///< names of values and nodes of the outermost graph
  std::unordered_map<std::string, std::string> renamed_;  ///< the subgraph's name -> the graph's
  bool inside_ = false;                                    ///< in a subgraph
  const JsonCursor* metas_ = nullptr;
  std::unordered_map<std::string, std::size_t> meta_index_;  ///< name -> member of tensor_values
  std::unordered_map<std::string, std::vector<ValueId>> node_outputs_;
  std::unordered_map<std::string, std::string> state_inputs_;  ///< parameter or buffer -> input value's name
};

}  // namespace

Result<TensorMeta> read_pt2_tensor(const JsonCursor& cursor, std::string_view subject) {
  return Pt2TensorReader().run(cursor, subject);
}

Result<Pt2Model> read_pt2_model(const JsonCursor& root, std::string_view graph_name) {
  return ModelReader().run(root, graph_name);
}

}  // namespace pallascope::trace
