#include <algorithm>
#include <optional>
#include <unordered_map>

#include "core/trace/archive.h"
#include "core/trace/json_reader.h"
#include "core/trace/pt2_graph.h"
#include "core/trace/read.h"

namespace pallascope::trace {
namespace {

constexpr std::string_view kSaveAgain = "write the file again with torch.export.save";

/// `name` split at a folder `models/` with a plain `*.json` behind it: the part before, and the model's name.
std::optional<std::pair<std::string, std::string>> split_model_name(std::string_view name) {
  constexpr std::string_view kFolder = "models/", kSuffix = ".json";
  const std::size_t at = name.rfind(kFolder);
  if (at == std::string_view::npos || (at > 0 && name[at - 1] != '/') || !name.ends_with(kSuffix))
    return std::nullopt;
  std::string_view model = name.substr(at + kFolder.size());
  model.remove_suffix(kSuffix.size());
  if (model.empty() || model.find('/') != std::string_view::npos) return std::nullopt;
  return std::pair(std::string(name.substr(0, at)), std::string(model));
}

bool any_member(const Archive& archive, std::string_view part) {
  return std::any_of(archive.members().begin(), archive.members().end(), [&](const ArchiveMember& member) {
    return member.name.find(part) != std::string::npos;
  });
}

/// Why an archive without `models/*.json` is none of ours.
Diagnostic no_model(const Archive& archive, const std::string& where, const std::string& top) {
  const auto wrong = [&](const std::string& what, const std::string& remedy) {
    return Diagnostic{DiagnosticKind::wrong_package, "this is " + what, where, remedy};
  };
  if (any_member(archive, "data/aotinductor/"))
    return wrong("an AOTInductor package: it holds compiled code and no graph",
                 "save the program itself: torch.export.save(torch.export.export(model, args), path)");
  if (any_member(archive, "serialized_exported_program.json"))
    return wrong(
        "an exported program in the layout of PyTorch before 2.7",
        "load and save it with PyTorch 2.7 or newer: torch.export.save(torch.export.load(old), new)");
  if (any_member(archive, "data.pkl"))
    return wrong("a torch.save or TorchScript archive: it holds a pickle and no exported graph",
                 "export the model: torch.export.save(torch.export.export(model, args), path)");
  return Diagnostic{DiagnosticKind::missing_member,
                    "the archive has no member `" + top + "models/model.json`, which holds the graph", where,
                    std::string(kSaveAgain)};
}

class ArchiveReader : private JsonReader {
 public:
  explicit ArchiveReader(const Archive& archive, std::string path)
      : archive_(archive), path_(std::move(path)) {}

  Result<Program> run() {
    find_top();
    std::vector<std::string> models;
    for (const ArchiveMember& member : archive_.members())
      if (const auto split = split_model_name(member.name); split && split->first == top_)
        models.push_back(split->second);
    if (models.empty()) return no_model(archive_, path_, top_);
    check_format();
    Program program;
    program.name = std::filesystem::path(path_).stem().string();
    program.origin = path_;
    for (const std::string& model : models)
      if (!problem_) read_model(model, program);
    if (problem_) return *problem_;
    return program;
  }

 private:
  /// torch writes everything under one folder that it names after the file; any name will do.
  void find_top() {
    constexpr std::string_view kFormat = "archive_format";
    for (const ArchiveMember& member : archive_.members()) {
      const std::string_view name = member.name;
      if (!name.ends_with(kFormat)) continue;
      const std::string_view top = name.substr(0, name.size() - kFormat.size());
      if (!top.empty() && !top.ends_with('/')) continue;
      top_ = top;
      return;
    }
    for (const ArchiveMember& member : archive_.members())
      if (const auto split = split_model_name(member.name)) {
        top_ = split->first;
        return;
      }
  }

  void check_format() {
    const std::string member = top_ + "archive_format";
    const std::string format = take(archive_.read(member, 4096));
    if (!problem_ && format != "pt2")
      fail(Diagnostic{DiagnosticKind::wrong_package, "the archive's format is `" + format + "`, not `pt2`",
                      archive_.place(member), std::string(kSaveAgain)});
  }

  void read_model(const std::string& model, Program& program) {
    const std::string member = top_ + "models/" + model + ".json";
    const std::string text = take(archive_.read(member));
    if (problem_) return;
    const std::string where = archive_.place(member);
    const Result<JsonValue> document = parse_json(text, where);
    if (!document.ok()) return fail(document.error());
    Result<Pt2Model> read = read_pt2_model(JsonCursor(*document, where), model);
    if (!read.ok()) return fail(read.error());
    if (program.producer.empty() && !read->torch_version.empty())
      program.producer = "torch " + read->torch_version;
    const bool weights = read_payloads("data/weights/", model, "_weights_config.json", program);
    const bool constants = read_payloads("data/constants/", model, "_constants_config.json", program);
    if (problem_) return;
    if (weights && constants) check_inputs(read->graph, program);
    program.graphs.push_back(std::move(read->graph));
  }

  /// Reads one configuration. False for the older layout, where all weights are one pickle that only a host opens.
  bool read_payloads(const std::string& folder, const std::string& model, const std::string& suffix,
                     Program& program) {
    if (problem_) return false;
    const std::string member = top_ + folder + model + suffix;
    if (archive_.find(member) == nullptr && archive_.find(top_ + folder + model + ".pt") != nullptr)
      return false;
    const std::string text = take(archive_.read(member));
    if (problem_) return false;
    const std::string where = archive_.place(member);
    const Result<JsonValue> document = parse_json(text, where);
    if (!document.ok()) {
      fail(document.error());
      return false;
    }
    const JsonCursor root(*document, where);
    const Result<JsonCursor> config = root.at("config");
    if (!config.ok()) {
      fail(config.error());
      return false;
    }
    const std::size_t count = take(config->object_size());
    for (std::size_t i = 0; i < count && !problem_; ++i)
      read_payload(config->element(i), config->key_of(i), top_ + folder, program);
    return !problem_;
  }

  void read_payload(const JsonCursor& cursor, const std::string& target, const std::string& folder,
                    Program& program) {
    const std::string path_name = string_at(cursor, "path_name");
    if (problem_) return;
    const ArchiveMember* member = archive_.find(folder + path_name);
    if (member == nullptr)
      return fail(cursor, DiagnosticKind::missing_member,
                  "the archive has no member `" + folder + path_name + "`, which holds `" + target + "`",
                  std::string(kSaveAgain));
    const Weight weight{member->name, member->bytes};
    const auto [entry, fresh] = program.weights.emplace(target, weight);
    if (!fresh && entry->second.member != weight.member)
      return fail(cursor, DiagnosticKind::unsupported,
                  "two models of the archive keep different bytes for `" + target + "`",
                  "save the models in files of their own");
    // A pickled payload (tensor subclass, script object) has a layout of its own; its size says nothing.
    if (optional_bool(cursor, "use_pickle")) {
      pickled_.emplace(target, true);
      return;
    }
    const Result<JsonCursor> meta_cursor = cursor.at("tensor_meta");
    if (!meta_cursor.ok()) return fail(meta_cursor.error());
    const Result<TensorMeta> meta = read_pt2_tensor(*meta_cursor, target);
    if (!meta.ok()) return fail(meta.error());
    check_bounds(*meta, target, weight, meta_cursor->where());
  }

  void check_bounds(const TensorMeta& meta, const std::string& target, const Weight& weight,
                    const std::string& where) {
    const std::optional<std::int64_t> extent = storage_extent(meta);
    // A program exported with fake weights has members of 0 bytes; PyTorch loads those as zeros.
    if (weight.bytes == 0 && extent) return;
    const std::int64_t needed = extent.value_or(0) * dtype_bytes(meta.dtype);
    if (extent && needed <= weight.bytes) return;
    fail(Diagnostic{
        DiagnosticKind::storage_bounds,
        "`" + target + "` (" + to_string(meta) + ") reaches " +
            (extent ? std::to_string(needed) + " bytes" : std::string("beyond 64 bits")) +
            " into its storage `" + weight.member + "`, which has " + std::to_string(weight.bytes),
        where, "correct sizes, strides and offset, or write the file again with torch.export.save"});
  }

  /// The graph's own metas of parameters, buffers and constants must fit the storage too.
  void check_inputs(const Graph& graph, const Program& program) {
    for (const Input& input : graph.inputs) {
      if (input.kind == InputKind::user_input) continue;
      const std::string where = path_ + ", graph " + graph.name + ", input " + graph.values[input.value].name;
      const auto weight = program.weights.find(input.target);
      if (weight == program.weights.end())
        return fail(Diagnostic{DiagnosticKind::missing_member,
                               "neither weights nor constants of the archive hold `" + input.target + "`",
                               where, std::string(kSaveAgain)});
      if (!pickled_.contains(input.target))
        check_bounds(*graph.values[input.value].tensor, input.target, weight->second, where);
    }
  }

  const Archive& archive_;
  std::string path_;
  std::string top_;
  std::unordered_map<std::string, bool> pickled_;
};

}  // namespace

Result<Program> read_pt2(const std::filesystem::path& path) {
  const Result<Archive> archive = Archive::open(path);
  if (!archive.ok()) return archive.error();
  return ArchiveReader(*archive, path.string()).run();
}

}  // namespace pallascope::trace
