#include "core/trace/archive.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <zip.h>

namespace pallascope::trace {

void Archive::Closer::operator()(void* archive) const { zip_discard(static_cast<zip_t*>(archive)); }

Result<Archive> Archive::open(const std::filesystem::path& path) {
  const std::string where = path.string();
  std::error_code code;
  if (!std::filesystem::exists(path, code))
    return Diagnostic{DiagnosticKind::not_found, "there is no file `" + where + "`", where, "check the path"};
  if (!std::filesystem::is_regular_file(path, code))
    return Diagnostic{DiagnosticKind::not_readable, "`" + where + "` is no regular file", where,
                      "name the archive itself"};
  int error = 0;
  zip_t* zip = zip_open(where.c_str(), ZIP_RDONLY, &error);
  if (zip == nullptr) {
    zip_error_t details;
    zip_error_init_with_code(&details, error);
    const std::string reason = zip_error_strerror(&details);
    zip_error_fini(&details);
    if (error == ZIP_ER_OPEN || error == ZIP_ER_READ || error == ZIP_ER_MEMORY)
      return Diagnostic{DiagnosticKind::not_readable, "`" + where + "` cannot be read: " + reason, where,
                        "check the file's permissions"};
    return Diagnostic{DiagnosticKind::not_a_zip,
                      "`" + where + "` is no zip archive, or is cut off: " + reason, where,
                      "write the file again with torch.export.save"};
  }
  Archive archive;
  archive.path_ = where;
  archive.archive_.reset(zip);
  const zip_int64_t count = zip_get_num_entries(zip, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat_index(zip, static_cast<zip_uint64_t>(i), 0, &stat) != 0 ||
        (stat.valid & ZIP_STAT_NAME) == 0 || (stat.valid & ZIP_STAT_SIZE) == 0)
      return Diagnostic{DiagnosticKind::not_a_zip,
                        "entry " + std::to_string(i) + " of the archive is damaged", where,
                        "write the file again with torch.export.save"};
    archive.index_.emplace(stat.name, archive.members_.size());
    archive.members_.push_back({stat.name, static_cast<std::int64_t>(stat.size)});
  }
  return archive;
}

const ArchiveMember* Archive::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &members_[found->second];
}

Result<std::string> Archive::read(std::string_view name, std::int64_t limit) const {
  const auto found = index_.find(std::string(name));
  if (found == index_.end())
    return Diagnostic{DiagnosticKind::missing_member, "the archive has no member `" + std::string(name) + "`",
                      place(name), "write the file again with torch.export.save"};
  zip_t* zip = static_cast<zip_t*>(archive_.get());
  const auto damaged = [&](const std::string& reason) {
    return Diagnostic{DiagnosticKind::not_readable,
                      "the member `" + std::string(name) + "` cannot be read: " + reason, place(name),
                      "write the file again with torch.export.save"};
  };
  zip_file_t* file = zip_fopen_index(zip, found->second, 0);
  if (file == nullptr) return damaged(zip_strerror(zip));
  // In pieces: the size in the header is a claim, not yet a fact.
  std::string content;
  std::array<char, std::size_t{1} << 16> piece{};
  zip_int64_t got = 0;
  while ((got = zip_fread(file, piece.data(), piece.size())) > 0) {
    content.append(piece.data(), static_cast<std::size_t>(got));
    if (static_cast<std::int64_t>(content.size()) > limit) {
      zip_fclose(file);
      return damaged("it has more than " + std::to_string(limit) + " bytes");
    }
  }
  const std::string reason = got < 0 ? zip_file_strerror(file) : "";
  const int closed = zip_fclose(file);
  if (got < 0) return damaged(reason);
  if (closed != 0) return damaged("its check sum does not match");
  return content;
}

}  // namespace pallascope::trace
