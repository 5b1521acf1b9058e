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

  Result<report::Json> request(const report::Json& header,
                               const std::function<void(const std::string&)>& progress,
                               std::stop_token cancel) override {
    if (!client_.hello() && progress) progress("starting Python (torch and jax)");
    // The start is waited for apart, so that a person sees what is waited for.
    const auto hello = client_.wait_ready(cancel);
    if (!hello.ok()) return hello.error();
    host::RequestOptions options;
    options.cancel = std::move(cancel);
    std::string traceback;
    options.traceback = &traceback;
    if (progress) {
      options.progress = [&progress](const host::Progress& step) {
        const int percent = static_cast<int>(step.fraction * 100);
        progress(step.fraction < 0 ? step.text : step.text + " " + std::to_string(percent) + "%");
      };
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

  [[nodiscard]] std::string state_text() const override { return client_.state().text; }

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
