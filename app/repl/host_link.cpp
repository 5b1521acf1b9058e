#include "app/repl/host_link.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "python_bridge/client/client.h"

namespace pallascope::repl {
namespace {

class ClientLink : public HostLink {
 public:
  void start() override { client_.start(); }

  Result<report::Json> request(const report::Json& header, const Progress& progress,
                               std::stop_token cancel) override {
    if (!client_.hello() && progress) progress("starting Python (torch and jax)", -1);
    // The start is waited for apart, so that a person sees what is waited for.
    const auto hello = client_.wait_ready(cancel);
    if (!hello.ok()) return hello.error();
    host::RequestOptions options;
    options.cancel = std::move(cancel);
    std::string traceback;
    options.traceback = &traceback;
    if (progress) {
      options.progress = [&progress](const host::Progress& step) { progress(step.text, step.fraction); };
    }
    // Text that is not UTF-8 (a line of source, say) must not end the program: it is replaced.
    const std::string text = header.dump(-1, ' ', false, report::Json::error_handler_t::replace);
    auto reply = client_.request(text, {}, options);
    if (!reply.ok()) {
      Diagnostic diagnostic = reply.error();
      // A diagnostic of ours says itself where and what to do; only a bare exception of Python needs its frames.
      if (diagnostic.where.empty() && diagnostic.remedy.empty())
        diagnostic.where = short_traceback(traceback);
      return diagnostic;
    }
    report::Json result = report::Json::parse(reply->result, nullptr, false);
    if (result.is_discarded()) {
      return Diagnostic{DiagnosticKind::host_error, "the host's answer is not JSON", "",
                        "run the command again"};
    }
    return result;
  }

  void restart() override { client_.restart(); }

  [[nodiscard]] HostStatus status() const override {
    const host::StateReport report = client_.state();
    HostStatus status;
    switch (report.state) {
      case host::State::not_started: status.state = HostStatus::State::not_started; break;
      case host::State::starting: status.state = HostStatus::State::starting; break;
      case host::State::ready: status.state = HostStatus::State::ready; break;
      case host::State::died: status.state = HostStatus::State::died; break;
      case host::State::failed: status.state = HostStatus::State::failed; break;
    }
    status.text = report.text;
    status.busy = report.busy;
    status.starts = report.starts;
    if (const auto hello = client_.hello()) {
      status.python = hello->python;
      status.torch = hello->torch;
      status.jax = hello->jax;
      status.platform = hello->platform;
      status.devices = hello->devices;
    }
    return status;
  }

  [[nodiscard]] HostLog log(std::uint64_t from) const override {
    host::LogPart part = client_.log(from);
    return {std::move(part.text), part.end};
  }

 private:
  host::Client client_;
};

}  // namespace

std::string short_traceback(const std::string& traceback) {
  constexpr std::size_t most_frames = 10;
  std::vector<std::string> frames;
  bool in_frame = false;
  std::string_view rest = traceback;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with("  File \"")) {
      in_frame = line.find("/site-packages/") == std::string_view::npos &&
                 line.find("<frozen ") == std::string_view::npos;
      if (in_frame) frames.emplace_back();
    } else if (!line.starts_with("    ")) {
      in_frame = false;  // the head, a message, or what stands between an exception and its cause
    }
    if (in_frame) frames.back() += std::string(line.substr(2)) + "\n";
  }
  std::string text;
  for (std::size_t k = frames.size() - std::min(frames.size(), most_frames); k < frames.size(); ++k)
    text += frames[k];
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::unique_ptr<HostLink> client_link() { return std::make_unique<ClientLink>(); }

}  // namespace pallascope::repl
