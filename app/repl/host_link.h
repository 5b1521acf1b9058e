// Room: repl. The way to the Python host, as the commands need it.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "core/base/result.h"
#include "core/report/json.h"

namespace pallascope::repl {

/// What commands ask of a host. Tests put their own in; the app's is `client_link`.
class HostLink {
 public:
  virtual ~HostLink() = default;
  /// Begins to start it in the background; returns at once.
  virtual void start() = 0;
  /// Blocks until there is an answer: the reply's `result`. `progress` is called on the calling thread.
  virtual Result<report::Json> request(const report::Json& header,
                                       const std::function<void(const std::string&)>& progress,
                                       std::stop_token cancel) = 0;
  /// One sentence on what the host does, or why there is none.
  [[nodiscard]] virtual std::string state_text() const = 0;
};

/// A Python traceback without its head, the frames of installed packages and the last line (the message that a
/// diagnostic has already); at most the innermost ten frames. What remains is the user's code and ours.
std::string short_traceback(const std::string& traceback);

/// A host process of this machine, through python_bridge/client.
std::unique_ptr<HostLink> client_link();

}  // namespace pallascope::repl
