// Room: views. The host's own output.
#pragma once

#include <cstdint>
#include <string>

#include "app/views/context.h"
#include "app/views/text_rows.h"

namespace pallascope::views {

class LogPanel {
 public:
  /// Draws into the current ImGui window.
  void draw(Context& context);

 private:
  void draw_header(Context& context);
  void take_log(Context& context, float width);

  TextRows rows_;
  std::string filter_, taken_filter_;
  std::uint64_t taken_end_ = 0;  ///< of the host's log, as it is in rows_
  std::uint64_t cleared_ = 0;    ///< bytes of it that are not shown any more
  std::size_t lines_ = 0, shown_ = 0;
  std::string header_;  ///< versions and devices, of status `header_of_`
  repl::HostStatus header_of_;
};

}  // namespace pallascope::views
