#include "app/repl/host_link.h"

#include <utility>

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
      if (!traceback.empty()) diagnostic.where += (diagnostic.where.empty() ? "" : "\n") + traceback;
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

std::unique_ptr<HostLink> client_link() { return std::make_unique<ClientLink>(); }

}  // namespace pallascope::repl
