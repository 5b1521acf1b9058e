// The linked columns of source: toggles, links, tags, folds, search, copies, menus, the difference.
#include <gtest/gtest.h>

#include "app/model/find_lines.h"
#include "tests/ui/places.h"
#include "tests/ui/support.h"

namespace pallascope::testing {
namespace {

using model::ColumnKind;
using model::Selection;

const char* name_of(ColumnKind kind) {
  return kind == ColumnKind::model ? "model" : kind == ColumnKind::loops ? "loops" : "pallas";
}
std::string window_of(ColumnKind kind) { return std::string("//Source/") + name_of(kind) + "/##text"; }
std::string prefix_of(ColumnKind kind) { return std::string("##") + name_of(kind) + ":"; }

const model::Lines& lines_of(const Window& window, ColumnKind kind) {
  return (*window.workspace->scene()->columns)[kind].lines;
}
/// The item of a line.
std::string item_of(const Window& window, ColumnKind kind, std::size_t line) {
  return prefix_of(kind) + std::to_string(lines_of(window, kind)[line].number);
}
ImGuiID id_of(ImGuiTestContext* context, ColumnKind kind, const std::string& item) {
  return id_in(context, window_of(kind).c_str(), item);
}
bool column_shown(ImGuiTestContext* context, ColumnKind kind) {
  const ImGuiTestItemInfo info = context->WindowInfo(window_of(kind).c_str(), ImGuiTestOpFlags_NoError);
  return info.ID != 0 && info.Window != nullptr && info.Window->WasActive;
}
/// Whether a line stands in its column, not only at its edge.
bool visible(ImGuiTestContext* context, const Window& window, ColumnKind kind, std::size_t line) {
  const ImGuiID id = id_of(context, kind, item_of(window, kind, line));
  if (!is_there(context, id)) return false;
  const ImGuiTestItemInfo info = context->ItemInfo(id);
  return info.RectClipped.GetHeight() > info.RectFull.GetHeight() * 0.6F;
}
/// The lines that can be seen and of which `wanted` holds.
std::vector<std::size_t> visible_lines(ImGuiTestContext* context, const Window& window, ColumnKind kind,
                                       const std::function<bool(const model::SourceLine&)>& wanted) {
  std::vector<std::size_t> found;
  const auto items = items_in(context, window_of(kind).c_str(), prefix_of(kind));
  const auto& lines = lines_of(window, kind);
  for (std::size_t k = 0; k < lines.size(); ++k) {
    if (lines[k].number > 0 && wanted(lines[k]) &&
        std::find(items.begin(), items.end(), item_of(window, kind, k)) != items.end() &&
        visible(context, window, kind, k))
      found.push_back(k);
  }
  return found;
}
/// Until no column glides any more.
bool at_rest(ImGuiTestContext* context, const Window& window) {
  context->Yield(2);
  return Window::wait(context, [&] { return !window.shell->state().moving; });
}
void wheel(ImGuiTestContext* context, const Window& window, ColumnKind kind, float lines) {
  context->MouseMoveToPos(context->WindowInfo(window_of(kind).c_str()).Window->InnerRect.GetCenter());
  context->MouseWheelY(lines);
  at_rest(context, window);
}
/// A line of the module that has a tag and nodes, well in view.
std::optional<std::size_t> tagged_line(ImGuiTestContext* context, const Window& window) {
  const auto found = visible_lines(context, window, ColumnKind::pallas, [](const model::SourceLine& line) {
    return line.letter != ' ' && line.access >= 0;
  });
  if (found.empty()) return std::nullopt;
  return found[found.size() / 2];
}

TEST(Source, TogglesShowColumnsAndOneStays) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const auto shown = [&](bool model, bool loops, bool pallas) {
      context->Yield(2);
      return column_shown(context, ColumnKind::model) == model &&
             column_shown(context, ColumnKind::loops) == loops &&
             column_shown(context, ColumnKind::pallas) == pallas;
    };
    IM_CHECK(shown(true, false, true));
    context->ItemClick("//Source/loops");
    IM_CHECK(shown(true, true, true));
    context->ItemClick("//Source/model");
    IM_CHECK(shown(false, true, true));
    context->ItemClick("//Source/Pallas");
    IM_CHECK(shown(false, true, false));
    context->ItemClick("//Source/loops");
    IM_CHECK(shown(false, true, false));
    context->ItemClick("//Source/Pallas");
    context->ItemClick("//Source/model");
    IM_CHECK(shown(true, true, true));
  });
}

TEST(Source, AClickedLineIsShownByTheOtherColumns) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    context->ItemClick("//Source/loops");
    window.workspace->type("show k2");
    IM_CHECK(Window::wait(context, [&] {
      return std::holds_alternative<schedule::KernelId>(window.shell->state().selection);
    }));
    IM_CHECK(window.quiet(context) && at_rest(context, window));
    const auto line = tagged_line(context, window);
    IM_CHECK(line.has_value());
    const Selection expected = model::selection_of(lines_of(window, ColumnKind::pallas)[*line]);
    // The other columns look elsewhere.
    wheel(context, window, ColumnKind::model, -200);
    wheel(context, window, ColumnKind::loops, -200);
    const float before =
        place_of(context, id_of(context, ColumnKind::pallas, item_of(window, ColumnKind::pallas, *line)))
            .Min.y;
    const auto focus_visible = [&](ColumnKind kind) {
      const auto focus = window.workspace->detail()->linked[kind].focus;
      return focus && visible(context, window, kind, *focus);
    };
    context->ItemClick(id_of(context, ColumnKind::pallas, item_of(window, ColumnKind::pallas, *line)));
    IM_CHECK(window.quiet(context) && at_rest(context, window));
    IM_CHECK(window.shell->state().selection == expected);
    IM_CHECK(focus_visible(ColumnKind::model));
    IM_CHECK(focus_visible(ColumnKind::loops));
    IM_CHECK(focus_visible(ColumnKind::pallas));
    // The one that was clicked stays where it is.
    const float after =
        place_of(context, id_of(context, ColumnKind::pallas, item_of(window, ColumnKind::pallas, *line)))
            .Min.y;
    IM_CHECK_EQ(after, before);
    // The other way: out of the model into the module.
    wheel(context, window, ColumnKind::model, 200);
    wheel(context, window, ColumnKind::pallas, -200);
    const auto model_lines =
        visible_lines(context, window, ColumnKind::model, [](const model::SourceLine& l) {
          return !l.nodes.empty() && !model::is_empty(model::selection_of(l));
        });
    IM_CHECK(!model_lines.empty());
    context->ItemClick(
        id_of(context, ColumnKind::model, item_of(window, ColumnKind::model, model_lines.front())));
    IM_CHECK(window.quiet(context) && at_rest(context, window));
    IM_CHECK(window.shell->state().selection ==
             model::selection_of(lines_of(window, ColumnKind::model)[model_lines.front()]));
    const auto linked = window.workspace->detail()->linked[ColumnKind::pallas];
    IM_CHECK(!linked.focus || focus_visible(ColumnKind::pallas));
  });
}

TEST(Source, AStepShowsTheLinesOfItsDecision) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    for (const std::size_t k : {std::size_t{63}, std::size_t{45}, std::size_t{66}, std::size_t{50}}) {
      // The selection's lines are known in the scene before already.
      window.workspace->request_detail(schedule::DecisionId(k));
      window.shell->state().selection = schedule::DecisionId(k);
      ++window.shell->state().selection_number;
      IM_CHECK(Window::wait(context, [&] {
        return window.workspace->detail() &&
               window.workspace->detail()->selection == window.shell->state().selection;
      }));
      wheel(context, window, ColumnKind::pallas, k % 2 == 0 ? -1000 : 1000);
      ++window.shell->state().selection_number;
      window.workspace->move_to(k + 1);
      IM_CHECK(window.quiet(context) && at_rest(context, window));
      const auto focus = window.workspace->detail()->linked[ColumnKind::pallas].focus;
      IM_CHECK(!focus || visible(context, window, ColumnKind::pallas, *focus));
    }
  });
}

TEST(Source, AnAccessTagOpensIndex) {
  Window window({.start_at_refusal = true, .open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    IM_CHECK(window.quiet(context) && at_rest(context, window));
    IM_CHECK(!in_front("Index"));
    const auto line = tagged_line(context, window);
    IM_CHECK(line.has_value());
    context->ItemClick(
        id_of(context, ColumnKind::pallas, item_of(window, ColumnKind::pallas, *line) + ":access"));
    IM_CHECK(window.quiet(context));
    IM_CHECK(window.shell->state().selection ==
             Selection(model::AccessRef{lines_of(window, ColumnKind::pallas)[*line].access}));
    IM_CHECK(in_front("Index"));
  });
  EXPECT_TRUE(window.said("index k"));
}

TEST(Source, FoldsOpenAndCloseByAClick) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    wheel(context, window, ColumnKind::pallas, 1000);
    const std::string text = window_of(ColumnKind::pallas);
    const auto folds = items_in(context, text.c_str(), "##pallas:fold:");
    IM_CHECK(!folds.empty());
    const int number = std::stoi(folds[0].substr(14));
    const std::string inside = "##pallas:" + std::to_string(number + 1);
    IM_CHECK(!is_there(context, id_in(context, text.c_str(), inside)));
    context->ItemClick(id_in(context, text.c_str(), folds[0]));
    context->Yield(2);
    IM_CHECK(is_there(context, id_in(context, text.c_str(), inside)));
    context->ItemClick(id_in(context, text.c_str(), folds[0]));
    context->Yield(2);
    IM_CHECK(!is_there(context, id_in(context, text.c_str(), inside)));
  });
}

TEST(Source, FindGoesAroundTheMatchesBothWays) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    context->ItemClick("//Source/model");  // the module alone
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    context->Yield(2);
    IM_CHECK_EQ(context->UiContext->ActiveId, context->GetID("//Source/##find"));
    const Selection before = window.shell->state().selection;
    const bool difference = window.shell->state().difference;
    context->KeyChars("d x w");
    IM_CHECK_EQ(window.shell->state().difference, difference);
    IM_CHECK(window.shell->state().selection == before && in_front("Why"));
    context->KeyCharsReplace("pallas_call(");
    model::LineFinder finder;
    finder.start("pallas_call(", *window.workspace->scene()->columns, {ColumnKind::pallas});
    while (finder.step(10'000)) {
    }
    const auto& matches = finder.matches();
    IM_CHECK(matches.size() > 3);
    IM_CHECK(at_rest(context, window));
    const auto seen = [&] {
      std::vector<std::size_t> found;
      for (std::size_t k = 0; k < matches.size(); ++k) {
        if (visible(context, window, ColumnKind::pallas, matches[k].line)) found.push_back(k);
      }
      return found;
    };
    std::vector<std::vector<std::size_t>> stops{seen()};
    IM_CHECK(!stops[0].empty());  // the first is gone to while one types
    for (std::size_t k = 0; k < matches.size(); ++k) {
      context->KeyPress(ImGuiKey_Enter);
      IM_CHECK(at_rest(context, window));
      stops.push_back(seen());
      // One can go on with Enter: the field has the focus.
      IM_CHECK_EQ(context->UiContext->ActiveId, context->GetID("//Source/##find"));
    }
    for (std::size_t k = 0; k < matches.size(); ++k)
      IM_CHECK(std::any_of(stops.begin(), stops.end(), [&](const auto& stop) {
        return std::find(stop.begin(), stop.end(), k) != stop.end();
      }));
    // All around, and one back.
    IM_CHECK(!stops.back().empty() &&
             std::find(stops.back().begin(), stops.back().end(), stops[0].front()) != stops.back().end());
    context->KeyPress(ImGuiMod_Shift | ImGuiKey_Enter);
    IM_CHECK(at_rest(context, window));
    const auto back = seen(), one_before = stops[stops.size() - 2];
    IM_CHECK(std::find_first_of(back.begin(), back.end(), one_before.begin(), one_before.end()) !=
             back.end());
  });
}

TEST(Source, CopiesLines) {
  Window window({.start_at_refusal = true, .open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    IM_CHECK(window.quiet(context) && at_rest(context, window));
    const auto seen = visible_lines(context, window, ColumnKind::pallas, [](const model::SourceLine& line) {
      return line.kind == model::LineKind::code && line.letter == ' ';
    });
    IM_CHECK(seen.size() > 4);
    const std::size_t first = seen[0], last = seen[3];
    const auto& lines = lines_of(window, ColumnKind::pallas);
    const auto click = [&](std::size_t line) {
      context->ItemClick(id_of(context, ColumnKind::pallas, item_of(window, ColumnKind::pallas, line)));
    };
    click(first);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), std::string(lines[first].text).c_str());
    IM_CHECK(window.quiet(context) && at_rest(context, window));
    const Selection selection = window.shell->state().selection;
    context->KeyDown(ImGuiMod_Shift);
    click(last);
    context->KeyUp(ImGuiMod_Shift);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
    std::string expected;
    for (std::size_t k = first; k <= last; ++k) expected.append(lines[k].text) += '\n';
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), expected.c_str());
    IM_CHECK(window.shell->state().selection == selection);  // more lines are no other selection
  });
}

TEST(Source, TheMenuCopiesAndOpensAlsoWhileOneSearches) {
  Window window({.start_at_refusal = true, .open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    IM_CHECK(window.quiet(context) && at_rest(context, window));
    const auto open_menu = [&](std::size_t line) {
      context->MouseMove(id_of(context, ColumnKind::pallas, item_of(window, ColumnKind::pallas, line)));
      context->MouseClick(ImGuiMouseButton_Right);
      context->Yield(2);
    };
    const auto any = visible_lines(context, window, ColumnKind::pallas, [](const model::SourceLine& line) {
      return line.kind == model::LineKind::code && line.letter == ' ' && line.text.size() > 8;
    });
    IM_CHECK(any.size() > 2);
    open_menu(any[1]);
    IM_CHECK_EQ(popups(), 1);
    choose(context, "Copy line");
    IM_CHECK_EQ(popups(), 0);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), std::string(lines_of(window, ColumnKind::pallas)[any[1]].text).c_str());
    for (const ImGuiKeyChord chord :
         {ImGuiKeyChord(ImGuiKey_Enter), ImGuiKeyChord(ImGuiMod_Shift | ImGuiKey_Enter)}) {
      context->ItemClick("//Source/##find");
      context->KeyCharsReplace("def ");
      context->KeyPress(chord);
      at_rest(context, window);
      const auto now = visible_lines(context, window, ColumnKind::pallas, [](const model::SourceLine& line) {
        return line.kind == model::LineKind::code && line.text.size() > 8;
      });
      IM_CHECK(now.size() > 2);
      open_menu(now[2]);
      IM_CHECK_EQ(popups(), 1);
      choose(context, "Copy line");
      IM_CHECK_STR_EQ(ImGui::GetClipboardText(), std::string(lines_of(window, ColumnKind::pallas)[now[2]].text).c_str());
      IM_CHECK_EQ(popups(), 0);
    }
    // And in the frames in which the field takes the focus back.
    // What is found stays where it is: it is the only one.
    const auto now = visible_lines(context, window, ColumnKind::pallas, [&](const model::SourceLine& line) {
      model::LineFinder finder;
      if (line.kind != model::LineKind::code || line.text.size() < 8 || line.text.size() > 200) return false;
      finder.start(line.text, *window.workspace->scene()->columns, {ColumnKind::model, ColumnKind::pallas});
      while (finder.step(10'000)) {
      }
      return finder.matches().size() == 1;
    });
    IM_CHECK(!now.empty());
    context->ItemClick("//Source/##find");
    context->KeyCharsReplace(std::string(lines_of(window, ColumnKind::pallas)[now[0]].text).c_str());
    IM_CHECK(at_rest(context, window));
    const ImVec2 at =
        place_of(context, id_of(context, ColumnKind::pallas, item_of(window, ColumnKind::pallas, now[0])))
            .GetCenter();
    context->MouseMoveToPos(at);
    for (const int order : {0, 1, 2}) {
      if (order > 0) context->MouseDown(ImGuiMouseButton_Right);
      context->KeyDown(ImGuiMod_Shift);
      if (order < 2) context->KeyDown(ImGuiKey_Enter);
      if (order == 0) context->MouseDown(ImGuiMouseButton_Right);
      if (order == 2) {
        context->KeyUp(ImGuiMod_Shift);
        context->KeyDown(ImGuiKey_Enter);
      }
      context->MouseUp(ImGuiMouseButton_Right);
      context->KeyUp(ImGuiKey_Enter);
      context->KeyUp(ImGuiMod_Shift);
      context->Yield(3);
      IM_CHECK_EQ(popups(), 1);
      context->KeyPress(ImGuiKey_Escape);
      IM_CHECK_EQ(popups(), 0);
      context->ItemClick("//Source/##find");
      context->MouseMoveToPos(at);
    }
  });
}

TEST(Source, TheDifferenceIsSwitchedByKeyAndClick) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const auto& state = window.shell->state();
    context->ItemClick(id_in(context, "//Decisions/rows", items_in(context, "//Decisions/rows", "##d")[0]));
    IM_CHECK(state.difference);
    context->KeyPress(ImGuiKey_D);
    context->Yield(2);
    IM_CHECK(!state.difference);
    context->ItemClick("//Source/##difference");
    IM_CHECK(state.difference);
    context->KeyPress(ImGuiKey_D);
    IM_CHECK(!state.difference);
  });
}

TEST(Source, TheSplitterMovesAndADoubleClickPutsItBack) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const auto extent = [&] {
      const ImVec2 size = context->WindowInfo(window_of(ColumnKind::model).c_str()).Window->Size;
      return size.x + size.y;
    };
    const float before = extent();
    context->MouseMove("//Source/##split0");
    context->MouseDragWithDelta(ImVec2(60, 60));
    context->Yield(2);
    IM_CHECK_GT(extent(), before + 30);
    context->ItemDoubleClick("//Source/##split0");
    context->Yield(2);
    IM_CHECK_EQ(extent(), before);
  });
}

TEST(Source, WhatAnotherPanelsPointerIsOverIsLinkedHere) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_Escape);
    IM_CHECK(model::is_empty(window.shell->state().selection));
    IM_CHECK(window.quiet(context));
    // The inspector, which is drawn later, lists the program's kernels then.
    ImGuiTestItemList list;
    context->GatherItems(&list, "//Inspector", -1);
    ImGuiID kernel = 0;
    for (const ImGuiTestItemInfo& item : list) {
      if (std::string(item.DebugLabel).find("k2") != std::string::npos) kernel = item.ID;
    }
    IM_CHECK(kernel != 0);
    context->MouseMove(kernel);
    const Selection over = schedule::KernelId(std::size_t{2});
    IM_CHECK(Window::wait(context, [&] {
      return window.workspace->preview() != nullptr && window.workspace->preview()->selection == over;
    }));
    IM_CHECK(window.shell->state().hovered == over);
  });
}

}  // namespace
}  // namespace pallascope::testing
