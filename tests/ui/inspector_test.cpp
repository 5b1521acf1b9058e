// The Inspector: links, folds, the clipboard, and that it draws whatever can be selected.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/ui/panels.h"

namespace pallascope::testing {
namespace {

using model::Selection;

/// For imgui_test_engine, to which a slash parts two IDs.
std::string escaped(const std::string& label) {
  std::string text;
  for (const char c : label) text += c == '/' ? std::string("\\/") : std::string(1, c);
  return text;
}

void in_rows(ImGuiTestContext* context) { context->SetRef(context->WindowInfo("//Inspector/##rows").ID); }

TEST(Inspector, ARowOfAListSelects) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    select(window, context, schedule::KernelId(std::size_t{0}));
    const model::Inspector inspector = window.workspace->detail()->inspector;
    IM_CHECK_STR_EQ(inspector.kind.c_str(), "kernel");
    std::size_t clicked = 0;
    for (const model::InspectorSection& section : inspector.sections) {
      if (!section.list || section.folded || section.rows.empty()) continue;
      const model::InspectorRow& row = section.rows.front();
      if (model::is_empty(row.selection)) continue;
      select(window, context, schedule::KernelId(std::size_t{0}));
      in_rows(context);
      context->ItemClick((escaped(section.title) + "/##row:" + escaped(row.label)).c_str());
      IM_CHECK(window.shell->state().selection == row.selection);
      ++clicked;
    }
    IM_CHECK_GT(clicked, 0U);
  });
}

TEST(Inspector, ALinkInAValueSelects) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const Selection node = trace::NodeId(std::size_t{21});
    select(window, context, node);
    const model::Inspector inspector = window.workspace->detail()->inspector;
    std::size_t clicked = 0;
    for (const model::InspectorSection& section : inspector.sections) {
      if (section.list || section.folded) continue;
      for (const model::InspectorRow& row : section.rows) {
        for (std::size_t k = 0; k < row.pieces.size(); ++k) {
          if (model::is_empty(row.pieces[k].selection)) continue;
          select(window, context, node);
          in_rows(context);
          const std::string path =
              escaped(section.title) + "/" + escaped(row.label) + "/$$" + std::to_string(k) + "/##piece";
          context->ItemClick(path.c_str());
          IM_CHECK(window.shell->state().selection == row.pieces[k].selection);
          ++clicked;
          break;
        }
      }
    }
    IM_CHECK_GT(clicked, 1U);
  });
}

TEST(Inspector, SectionsFoldAndStayFoldedForOtherThings) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    select(window, context, trace::NodeId(std::size_t{21}));
    const model::Inspector inspector = window.workspace->detail()->inspector;
    const auto open =
        std::find_if(inspector.sections.begin(), inspector.sections.end(),
                     [](const auto& section) { return !section.folded && !section.rows.empty(); });
    IM_CHECK(open != inspector.sections.end());
    const std::string title = escaped(open->title),
                      row = title + "/##row:" + escaped(open->rows.front().label);
    in_rows(context);
    IM_CHECK(context->ItemExists(row.c_str()));
    context->ItemClick((title + "/##section").c_str());
    context->Yield(2);
    IM_CHECK(!context->ItemExists(row.c_str()));
    // Another node has the section folded as well.
    select(window, context, trace::NodeId(std::size_t{22}));
    in_rows(context);
    IM_CHECK(context->ItemExists((title + "/##section").c_str()));
    IM_CHECK(!context->ItemExists(row.c_str()));
    context->ItemClick((title + "/##section").c_str());
    select(window, context, trace::NodeId(std::size_t{21}));
    in_rows(context);
    IM_CHECK(context->ItemExists(row.c_str()));
  });
}

TEST(Inspector, CopiesTheNameAndAValue) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    select(window, context, trace::NodeId(std::size_t{21}));
    const model::Inspector inspector = window.workspace->detail()->inspector;
    ImGui::SetClipboardText("");
    context->ItemClick("//Inspector/##copy");
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), inspector.title.c_str());
    const auto section =
        std::find_if(inspector.sections.begin(), inspector.sections.end(),
                     [](const auto& each) { return !each.list && !each.folded && !each.rows.empty(); });
    IM_CHECK(section != inspector.sections.end());
    const model::InspectorRow& row = section->rows.front();
    in_rows(context);
    context->ItemClick((escaped(section->title) + "/##row:" + escaped(row.label)).c_str(),
                       ImGuiMouseButton_Right);
    IM_CHECK(any_popup());
    context->ItemClick("//$FOCUSED/Copy value");
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), row.text().c_str());
    IM_CHECK(!any_popup());
  });
}

TEST(Inspector, DrawsEveryKindOfThing) {
  Window window({.open = gpt2_block});
  const auto scene = window.workspace->scene();
  const auto& statement = (*scene->columns)[model::ColumnKind::loops].lines;
  Selection nest;
  for (const auto& line : statement)
    if (line.nest.valid() && line.statement >= 0) nest = model::StatementRef{line.nest, line.statement};
  std::string group;
  for (const trace::Node& node : scene->compilation->graph().nodes)
    if (!node.module_path.empty()) group = node.module_path;
  const std::vector<std::pair<std::string, Selection>> kinds{
      {"node", trace::NodeId(std::size_t{21})},
      {"kernel", schedule::KernelId(std::size_t{0})},
      {"buffer", loop::BufferId(std::size_t{0})},
      {"decision", schedule::DecisionId(std::size_t{63})},
      {"module", model::GroupRef{group}},
      {"statement", nest},
      {"access", model::AccessRef{0}},
      {"program", {}}};
  window.run([&](ImGuiTestContext* context) {
    for (const auto& [kind, selection] : kinds) {
      if (model::is_empty(selection)) {
        context->KeyPress(ImGuiKey_Escape);
        IM_CHECK(window.quiet(context));
      } else {
        select(window, context, selection);
      }
      const model::Inspector& inspector = window.workspace->detail()->inspector;
      IM_CHECK_STR_EQ(inspector.kind.c_str(), kind.c_str());
      // Every section, also those that are folded at first; nothing is drawn beside the panel.
      for (const model::InspectorSection& section : inspector.sections) {
        in_rows(context);
        const std::string title = escaped(section.title) + "/##section";
        IM_CHECK(context->ItemExists(title.c_str()));
        if (!section.folded) continue;
        context->ItemClick(title.c_str());
        context->Yield(2);
        context->ItemClick(title.c_str());
      }
    }
  });
}

}  // namespace
}  // namespace pallascope::testing
