// The Log panel: what the host printed, filtered, copied, hidden; and the host started again.
#include <gtest/gtest.h>

#include "tests/ui/panels.h"

namespace pallascope::testing {
namespace {

void open_log(Window& window, ImGuiTestContext* context) {
  window.shell->state().focus = views::PanelId::log;
  context->Yield(3);
  IM_CHECK(in_front("Log"));
}

/// Pixels of the rows that are shown; 0 when there are none.
float height(ImGuiTestContext* context) {
  const auto rows = context->WindowInfo("//Log/##log", ImGuiTestOpFlags_NoError);
  if (rows.ID == 0 || rows.Window == nullptr || !rows.Window->Active) return 0;
  return rows.Window->ContentSize.y;
}

TEST(Log, FiltersLinesAndCopiesThemAll) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_log(window, context);
    IM_CHECK_EQ(height(context), 0.0F);
    IM_CHECK((context->ItemInfo("//Log/Copy all").ItemFlags & ImGuiItemFlags_Disabled) != 0);
    std::string log;
    for (int k = 0; k < 60; ++k)
      log += "line " + std::to_string(k) + (k % 10 == 0 ? " Warning: slow\n" : "\n");
    window.host().print(log);
    context->Yield(4);
    const float all = height(context);
    IM_CHECK_GT(all, 600.0F);
    context->ItemClick("//Log/##filter");
    context->KeyChars("WARN");
    context->Yield(4);
    IM_CHECK_GT(height(context), 0.0F);
    IM_CHECK_LT(height(context), all / 3);  // six lines, in whatever case
    context->KeyChars("zzz");
    context->Yield(3);
    IM_CHECK_EQ(height(context), 0.0F);
    // Copied is all, whatever is shown.
    context->ItemClick("//Log/Copy all");
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), log.c_str());
    // Esc takes the filter away.
    context->ItemClick("//Log/##filter");
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(4);
    IM_CHECK_EQ(height(context), all);
  });
}

TEST(Log, ClearHidesWhatIsThereAndShowsWhatComes) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_log(window, context);
    window.host().print("one\ntwo\nthree\n");
    context->Yield(4);
    IM_CHECK_GT(height(context), 0.0F);
    context->ItemClick("//Log/Clear");
    context->Yield(3);
    IM_CHECK_EQ(height(context), 0.0F);
    window.host().print("four\n");
    context->Yield(4);
    IM_CHECK_GT(height(context), 0.0F);
  });
}

TEST(Log, RestartStartsTheHostAgain) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    open_log(window, context);
    const int before = window.workspace->host().starts;
    context->ItemClick("//Log/Restart");
    context->Yield(2);
    IM_CHECK_EQ(window.workspace->host().starts, before + 1);
    window.host().die();
    context->Yield(2);
    IM_CHECK(window.workspace->host().state == repl::HostStatus::State::died);
    context->ItemClick("//Log/Restart");
    context->Yield(2);
    IM_CHECK(window.workspace->host().state == repl::HostStatus::State::ready);
  });
}

}  // namespace
}  // namespace pallascope::testing
