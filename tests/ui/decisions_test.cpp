// The two panels on the left: the summary, and the decisions with their filters and keys.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "app/model/decision_rows.h"
#include "core/report/json.h"
#include "tests/ui/places.h"
#include "tests/ui/support.h"

namespace pallascope::testing {
namespace {

using model::DecisionFilter;
using model::Selection;
using schedule::DecisionKind;

constexpr const char* rows_window = "//Decisions/rows";

schedule::DecisionId decision(std::size_t k) { return schedule::DecisionId(k); }

std::vector<std::string> rows(ImGuiTestContext* context) { return items_in(context, rows_window, "##d"); }

std::vector<std::string> expected(const Window& window, const DecisionFilter& filter) {
  const model::DecisionList list(window.workspace->scene()->decisions, filter);
  std::vector<std::string> names;
  for (std::size_t k = 0; k < list.size(); ++k) names.push_back("##" + report::id_text(list.id(k)));
  return names;
}

/// Whether the rows that can be seen are what a filter lets through: all of it, or a run of it that fills the list.
bool shows(ImGuiTestContext* context, const Window& window, const DecisionFilter& filter) {
  const auto all = expected(window, filter), seen = rows(context);
  if (all.empty() || seen.empty()) return all.empty() && seen.empty();
  const auto from = std::search(all.begin(), all.end(), seen.begin(), seen.end());
  return from != all.end() && (seen.size() == all.size() || seen.size() >= 8);
}

bool selects(const Window& window, std::size_t k) {
  return window.shell->state().selection == Selection(decision(k));
}

/// A program with `parts` loads of every other element, each a kernel of its own.
std::string strided_program(int parts) {
  using report::Json;
  const auto tensor = [](int size, int stride) {
    return Json{{"dtype", "f32"}, {"sizes", {size}}, {"strides", {stride}}, {"offset", 0}};
  };
  Json inputs = Json::array(), nodes = Json::array(), outputs = Json::array();
  for (int k = 0; k < parts; ++k) {
    const std::string n = std::to_string(k);
    inputs.push_back(
        {{"kind", "user_input"}, {"name", "x" + n}, {"target", "x" + n}, {"tensor", tensor(64 + 2 * k, 1)}});
    const auto node = [&](const std::string& name, const char* target, Json args, const Json& made) {
      nodes.push_back({{"name", name},
                       {"target", target},
                       {"args", std::move(args)},
                       {"kwargs", Json::object()},
                       {"outputs", Json::array({{{"name", name}, {"tensor", made}}})},
                       {"list_output", false}});
    };
    node("slice" + n, "aten.slice.Tensor", Json::array({{{"value", "x" + n}}, 0, 0, 64 + 2 * k, 2}),
         tensor(32 + k, 2));
    node("sin" + n, "aten.sin.default", Json::array({{{"value", "slice" + n}}}), tensor(32 + k, 1));
    outputs.push_back({{"kind", "user_output"}, {"value", "sin" + n}});
  }
  const Json graph = {
      {"name", "f"}, {"kind", "export"}, {"inputs", inputs}, {"nodes", nodes}, {"outputs", outputs}};
  const Json trace = {{"format", "pallascope.trace"},   {"version", 1},
                      {"producer", "by hand"},          {"name", "strided"},
                      {"graphs", Json::array({graph})}, {"sources", Json::object()}};
  const auto path = std::filesystem::path(::testing::TempDir()) / "pallascope_strided.json";
  std::ofstream(path) << trace.dump();
  return path.string();
}

TEST(Summary, AMissedFusionIsGoneTo) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const auto& missed = window.workspace->scene()->summary->missed;
    IM_CHECK(missed.size() > 1);
    const model::SummaryMissed row = missed[1];
    context->ItemClick(("//Summary/##missed_" + row.name).c_str());
    IM_CHECK(window.quiet(context));
    IM_CHECK(window.shell->state().selection == Selection(row.id));
    IM_CHECK_EQ(window.workspace->scene()->position, row.id.index() + 1);
    // The same decision is marked, and in view, in the list below.
    IM_CHECK(is_there(context, id_in(context, rows_window, "##" + row.name)));
  });
}

TEST(Summary, AWastefulAccessIsExplainedInIndex) {
  Window window({.open = strided_program(1)});
  window.run([&](ImGuiTestContext* context) {
    const auto& wasteful = window.workspace->scene()->summary->wasteful;
    IM_CHECK(!wasteful.empty());
    const model::AccessRef access = wasteful.front().access;
    IM_CHECK(!in_front("Index"));
    context->ItemClick(("//Summary/##access" + std::to_string(access.access)).c_str());
    IM_CHECK(window.quiet(context));
    IM_CHECK(window.shell->state().selection == Selection(access));
    IM_CHECK(in_front("Index"));
  });
  EXPECT_TRUE(window.said("index k"));
}

TEST(Summary, MoreRowsUnfoldAndFold) {
  Window window({.open = strided_program(6)});
  window.run([&](ImGuiTestContext* context) {
    const auto count = [&] { return items_in(context, "//Summary", "##access").size(); };
    IM_CHECK_EQ(window.workspace->scene()->summary->wasteful.size(), 6U);
    IM_CHECK_EQ(count(), 3U);
    context->ItemClick("//Summary/##wasteful_more");
    IM_CHECK_EQ(count(), 6U);
    context->ItemClick("//Summary/##wasteful_more");
    IM_CHECK_EQ(count(), 3U);
  });
}

TEST(Decisions, TypingNarrowsAndClearRestores) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    DecisionFilter filter;
    IM_CHECK(shows(context, window, filter));
    const std::size_t whole = expected(window, filter).size();
    context->ItemClick("//Decisions/##filter");
    context->KeyChars("cycle");
    filter.text = "cycle";
    IM_CHECK(expected(window, filter).size() < whole);
    IM_CHECK(shows(context, window, filter));
    context->KeyChars(" nothing is like this");
    IM_CHECK(!is_there(context, id_in(context, rows_window, "##d63")));
    context->ItemClick("//Decisions/clear");
    filter.text.clear();
    IM_CHECK(shows(context, window, filter));
    // What was cleared does not come back with the next letter.
    context->ItemClick("//Decisions/##filter");
    context->KeyChars("mul");
    filter.text = "mul";
    IM_CHECK(shows(context, window, filter));
    context->KeyPress(ImGuiKey_Escape);
    filter.text.clear();
    IM_CHECK(shows(context, window, filter));
  });
}

TEST(Decisions, PassVerdictReasonAndOrderAreChosen) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    DecisionFilter filter;
    context->ItemClick("//Decisions/pass");
    IM_CHECK_EQ(popups(), 1);
    choose(context, "fuse");
    IM_CHECK_EQ(popups(), 0);
    filter.kind = DecisionKind::fuse;
    IM_CHECK(shows(context, window, filter));
    context->ItemClick("//Decisions/accepted");
    filter.accepted = true;
    IM_CHECK(shows(context, window, filter));
    context->ItemClick("//Decisions/refused");
    filter.accepted = false;
    IM_CHECK(shows(context, window, filter));
    // The one that is on is switched off by another click.
    context->ItemClick("//Decisions/refused");
    filter.accepted.reset();
    IM_CHECK(shows(context, window, filter));
    context->ItemClick("//Decisions/reason");
    const auto& reasons = window.workspace->scene()->decisions->reasons();
    const auto reason = std::find_if(reasons.begin(), reasons.end(), [](const model::ReasonRows& row) {
      return row.kind == DecisionKind::fuse && !row.accepted;
    });
    IM_CHECK(reason != reasons.end());
    choose(context, ("✗ " + report::spaced(schedule::reason_name(reason->reason)) + "##" +
                     std::to_string(static_cast<int>(reason->kind)))
                        .c_str());
    filter.reason = reason->reason;
    IM_CHECK_EQ(expected(window, filter).size(), reason->count);
    IM_CHECK(shows(context, window, filter));
    context->ItemClick("//Decisions/reason");
    choose(context, "any reason");
    filter.reason.reset();
    context->ItemClick("//Decisions/pass");
    choose(context, "all passes");
    filter.kind.reset();
    context->ItemClick("//Decisions/order");
    choose(context, "by number");
    filter.order = model::DecisionOrder::number;
    IM_CHECK(shows(context, window, filter));
    IM_CHECK(!is_there(context, id_in(context, rows_window, "##d0")));
    context->ItemClick("//Decisions/small");
    filter.small = true;
    context->ScrollToTop(context->WindowInfo(rows_window).ID);
    IM_CHECK(shows(context, window, filter));
    IM_CHECK(is_there(context, id_in(context, rows_window, "##d0")));
    context->ItemClick("//Decisions/small");
    context->ItemClick("//Decisions/order");
    choose(context, "by bytes, missed first");
    IM_CHECK(shows(context, window, {}));
  });
}

TEST(Decisions, AClickSelectsADoubleClickGoesThere) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const std::size_t total = window.position();
    context->ItemClick("//Inspector");
    const auto seen = rows(context);
    IM_CHECK(seen.size() > 4);
    const std::string name = seen[2];
    const auto k = static_cast<std::size_t>(std::stoi(name.substr(3)));
    context->ItemClick(id_in(context, rows_window, name));
    IM_CHECK(window.quiet(context));
    IM_CHECK(selects(window, k));
    IM_CHECK_EQ(window.position(), total);  // looked at, not gone to
    IM_CHECK(window.workspace->detail()->why != nullptr);
    IM_CHECK_STR_EQ(window.workspace->detail()->why->id_text.c_str(), name.substr(2).c_str());
    context->ItemDoubleClick(id_in(context, rows_window, name));
    IM_CHECK(window.quiet(context));
    IM_CHECK(selects(window, k));
    IM_CHECK_EQ(window.workspace->scene()->position, k + 1);
  });
}

TEST(Decisions, KeysMoveThroughTheRowsAndEnterGoesThere) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const std::size_t total = window.position();
    const auto all = expected(window, {});
    const auto number = [&](std::size_t position) {
      return static_cast<std::size_t>(std::stoi(all[position].substr(3)));
    };
    context->ItemClick(id_in(context, rows_window, all[0]));
    IM_CHECK(selects(window, number(0)));
    context->KeyPress(ImGuiKey_DownArrow);
    IM_CHECK(selects(window, number(1)));
    context->KeyPress(ImGuiKey_DownArrow);
    context->KeyPress(ImGuiKey_UpArrow);
    IM_CHECK(selects(window, number(1)));
    context->KeyPress(ImGuiKey_UpArrow, 3);
    IM_CHECK(selects(window, number(0)));
    context->KeyPress(ImGuiKey_End);
    context->Yield(2);
    IM_CHECK(selects(window, number(all.size() - 1)));
    IM_CHECK(is_there(context, id_in(context, rows_window, all.back())));  // scrolled to
    context->KeyPress(ImGuiKey_DownArrow);
    IM_CHECK(selects(window, number(all.size() - 1)));
    context->KeyPress(ImGuiKey_PageUp);
    context->Yield(2);
    const auto* paged = std::get_if<schedule::DecisionId>(&window.shell->state().selection);
    IM_CHECK(paged != nullptr && !selects(window, number(all.size() - 2)));
    IM_CHECK(is_there(context, id_in(context, rows_window, "##" + report::id_text(*paged))));
    context->KeyPress(ImGuiKey_Home);
    IM_CHECK(selects(window, number(0)));
    context->KeyPress(ImGuiKey_PageDown);
    IM_CHECK(!selects(window, number(0)) && !selects(window, number(1)));
    context->KeyPress(ImGuiKey_Home);
    context->KeyPress(ImGuiKey_DownArrow);
    IM_CHECK_EQ(window.position(), total);
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(window.quiet(context));
    IM_CHECK(selects(window, number(1)));
    IM_CHECK_EQ(window.workspace->scene()->position, number(1) + 1);
  });
}

TEST(Decisions, TheFilterTakesLettersAndArrowsWalkTheRowsBelow) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    context->ItemClick(id_in(context, rows_window, expected(window, {})[0]));
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    context->Yield(2);
    IM_CHECK_EQ(context->UiContext->ActiveId, context->GetID("//Decisions/##filter"));
    const auto& state = window.shell->state();
    const Selection before = state.selection;
    const std::size_t position = window.position();
    const bool difference = state.difference, why = in_front("Why"), drawer = in_front("REPL");
    context->KeyChars("d w x f q `[");
    for (const ImGuiKey key :
         {ImGuiKey_D, ImGuiKey_W, ImGuiKey_X, ImGuiKey_F, ImGuiKey_Q, ImGuiKey_GraveAccent,
          ImGuiKey_LeftBracket, ImGuiKey_Space, ImGuiKey_LeftArrow})
      context->KeyPress(key);
    IM_CHECK(state.selection == before);
    IM_CHECK_EQ(window.position(), position);
    IM_CHECK_EQ(state.difference, difference);
    IM_CHECK_EQ(in_front("Why"), why);
    IM_CHECK_EQ(in_front("REPL"), drawer);
    IM_CHECK(in_front("Decisions"));
    IM_CHECK_EQ(context->UiContext->ActiveId, context->GetID("//Decisions/##filter"));
    // Enter goes to the first that is found and ends the typing; the arrows walk on from there.
    context->KeyPress(ImGuiKey_Escape);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(2);
    context->KeyPress(ImGuiKey_Escape);
    IM_CHECK(model::is_empty(state.selection));
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    context->Yield(2);
    context->KeyChars("cycle");
    DecisionFilter filter;
    filter.text = "cycle";
    const auto found = expected(window, filter);
    IM_CHECK(found.size() > 2);
    const auto number = [&](std::size_t k) {
      return static_cast<std::size_t>(std::stoi(found[k].substr(3)));
    };
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(window.quiet(context));
    IM_CHECK(selects(window, number(0)));
    IM_CHECK_EQ(window.workspace->scene()->position, number(0) + 1);
    context->KeyPress(ImGuiKey_DownArrow);
    IM_CHECK(selects(window, number(1)));
    // So they do while one types.
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    context->Yield(2);
    context->KeyPress(ImGuiKey_DownArrow);
    IM_CHECK(selects(window, number(2)));
    context->KeyPress(ImGuiKey_Enter);
    IM_CHECK(window.quiet(context));
    IM_CHECK_EQ(window.workspace->scene()->position, number(2) + 1);
  });
}

TEST(Decisions, OnlyThoseAboutTheSelectedNode) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const auto node = trace::NodeId(std::size_t{21});
    IM_CHECK(!context->ItemExists("//Decisions/about_selected"));
    window.workspace->type("show n21");
    IM_CHECK(Window::wait(context, [&] { return window.shell->state().selection == Selection(node); }));
    context->ItemClick("//Decisions/about_selected");
    DecisionFilter filter;
    filter.node = node;
    IM_CHECK(!expected(window, filter).empty());
    IM_CHECK(shows(context, window, filter));
    // Another selection does not change what the list is about.
    context->ItemClick(id_in(context, rows_window, expected(window, filter)[0]));
    IM_CHECK(window.quiet(context));
    IM_CHECK(shows(context, window, filter));
    context->ItemClick("//Decisions/about");
    IM_CHECK(shows(context, window, {}));
  });
}

TEST(Decisions, WhatThePointerIsOverIsKnownToPanelsDrawnBefore) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const auto all = expected(window, {});
    const std::string name = all[1];
    const Selection over = decision(static_cast<std::size_t>(std::stoi(name.substr(3))));
    context->MouseMove(id_in(context, rows_window, name));
    context->Yield(2);
    IM_CHECK(window.shell->state().hovered == over);
    IM_CHECK(Window::wait(context, [&] {
      return window.workspace->preview() != nullptr && window.workspace->preview()->selection == over;
    }));
    context->MouseMove("//Decisions/##filter");
    context->Yield(2);
    IM_CHECK(model::is_empty(window.shell->state().hovered));
  });
}

}  // namespace
}  // namespace pallascope::testing
