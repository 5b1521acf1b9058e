#include <array>
#include <fstream>
#include <sstream>
#include <system_error>

#include "core/trace/archive.h"
#include "core/trace/json_reader.h"
#include "core/trace/read.h"

namespace pallascope::trace {
namespace {

constexpr std::string_view kProgram = "program.json";
constexpr std::string_view kBundle = "bundle.json";
constexpr std::int64_t kBundleVersion = 1;
constexpr std::string_view kWriteBundle =
    "write the bundle again: torch.compile(model, backend=\"pallascope\", options={\"dump\": DIR})";

Result<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  // An empty file sets the output's failbit; only the input's state says whether the bytes came.
  if (!file.is_open() || file.bad())
    return Diagnostic{DiagnosticKind::not_readable, "`" + path.string() + "` cannot be read", path.string(),
                      "check the file's permissions"};
  return std::move(content).str();
}

class BundleCheck : private JsonReader {
 public:
  Status run(std::string_view text, const std::string& where) {
    const Result<JsonValue> document = parse_json(text, where);
    if (!document.ok()) return document.error();
    const JsonCursor root(*document, where);
    const std::string format = string_at(root, "format");
    if (!problem_ && format != "pallascope.bundle")
      fail(root, DiagnosticKind::wrong_package, "the format is `" + format + "`, not `pallascope.bundle`",
           std::string(kWriteBundle));
    const std::int64_t version = int_at(root, "version");
    if (!problem_ && version != kBundleVersion)
      fail(root, DiagnosticKind::schema_version,
           "the bundle has version " + std::to_string(version) + ", this program reads version " +
               std::to_string(kBundleVersion),
           std::string(kWriteBundle));
    if (problem_) return *problem_;
    return Success{};
  }
};

Result<Program> bundle_program(std::string_view bundle_text, const std::string& bundle_where,
                               std::string_view program_text, const std::string& program_where) {
  if (const Status status = BundleCheck().run(bundle_text, bundle_where); !status.ok()) return status.error();
  return read_json(program_text, program_where);
}

Result<Program> open_folder(const std::filesystem::path& path) {
  std::error_code code;
  for (const std::string_view name : {kBundle, kProgram})
    if (!std::filesystem::is_regular_file(path / name, code))
      return Diagnostic{DiagnosticKind::missing_member,
                        "the folder has no file `" + std::string(name) + "`, so it is no bundle",
                        path.string(), "name a bundle's folder, a .pt2 file or a trace in JSON"};
  const Result<std::string> bundle = read_file(path / kBundle);
  if (!bundle.ok()) return bundle.error();
  const Result<std::string> program = read_file(path / kProgram);
  if (!program.ok()) return program.error();
  return bundle_program(*bundle, (path / kBundle).string(), *program, (path / kProgram).string());
}

Result<Program> open_zip(const std::filesystem::path& path) {
  const Result<Archive> archive = Archive::open(path);
  if (!archive.ok()) return archive.error();
  const bool has_program = archive->find(kProgram) != nullptr;
  const bool has_bundle = archive->find(kBundle) != nullptr;
  if (!has_program && !has_bundle) return read_pt2(path);
  const Result<std::string> bundle = archive->read(kBundle);
  if (!bundle.ok()) return bundle.error();
  const Result<std::string> program = archive->read(kProgram);
  if (!program.ok()) return program.error();
  return bundle_program(*bundle, archive->place(kBundle), *program, archive->place(kProgram));
}

Result<Program> open_any(const std::filesystem::path& path) {
  std::error_code code;
  const std::filesystem::file_status status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status))
    return Diagnostic{DiagnosticKind::not_found, "there is no file or folder `" + path.string() + "`",
                      path.string(),
                      "check the path; a .pt2 file, a trace in JSON or a bundle can be opened"};
  if (std::filesystem::is_directory(status)) return open_folder(path);
  if (!std::filesystem::is_regular_file(status))
    return Diagnostic{DiagnosticKind::not_readable, "`" + path.string() + "` is neither a file nor a folder",
                      path.string(), "name a .pt2 file, a trace in JSON or a bundle"};
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4> start{};
  file.read(start.data(), start.size());
  const std::string_view magic(start.data(), static_cast<std::size_t>(file.gcount()));
  if (!file.is_open())
    return Diagnostic{DiagnosticKind::not_readable, "`" + path.string() + "` cannot be read", path.string(),
                      "check the file's permissions"};
  // A local file header, or the end record of an empty archive.
  if (magic == "PK\x03\x04" || magic == "PK\x05\x06") return open_zip(path);
  // What starts like JSON is JSON. Anything else is told apart by what the name promised, for the message only.
  const std::size_t first = magic.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && magic[first] == '{';
  if (!json && path.extension() == ".pt2") return read_pt2(path);
  const Result<std::string> text = read_file(path);
  if (!text.ok()) return text.error();
  return read_json(*text, path.string());
}

}  // namespace

Result<Program> open(const std::filesystem::path& path) {
  Result<Program> program = open_any(path);
  if (!program.ok()) return program.error();
  program->origin = path.string();
  if (program->name.empty()) program->name = path.stem().string();
  return program;
}

}  // namespace pallascope::trace
