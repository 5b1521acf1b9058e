// Room: views. Ctrl+P, the palette, the page of keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/model/search.h"
#include "app/views/context.h"

namespace pallascope::views {

class GoTo {
 public:
  /// Opens and draws the popups that UiState asks for; outside of any window.
  void draw(Context& context);

 private:
  /// A field and the list of what fits; the number of the chosen row when Enter or a click ends it, else -1.
  struct Picker {
    std::string query;
    std::vector<model::SearchHit> hits;
    std::string found_query;
    std::shared_ptr<const model::SearchIndex> found_in;
    std::size_t at = 0;
    bool opened = false, moved = false;
  };
  static bool begin(Context& context, Picker& picker, const char* id, bool& asked);
  static void find(Picker& picker, const std::shared_ptr<const model::SearchIndex>& index);
  template <typename Tag, typename Enabled>
  static int draw_picker(Context& context, Picker& picker, const char* hint, const char* nothing, bool mono,
                         Tag tag, Enabled enabled);

  void draw_go_to(Context& context);
  void draw_palette(Context& context);
  void draw_help(Context& context);
  void make_palette(Context& context);
  void run_command(Context& context, const std::string& name);

  Picker go_to_, palette_;
  std::shared_ptr<const model::SearchIndex> palette_index_;
};

}  // namespace pallascope::views
