// The Index panel: the accesses of what is selected, one of them in words and as a grid.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/ui/panels.h"
#include "tests/unit/support/graph_text.h"

namespace pallascope::testing {
namespace {

using model::Selection;

/// Writes a trace for a test to open.
std::string written(const char* name, const GraphText& graph) {
  const std::string path = (std::filesystem::temp_directory_path() / name).string();
  std::ofstream(path) << graph.json();
  return path;
}

GraphText gather() {
  return GraphText()
      .in("w", "f32[32,16]", "parameter")
      .in("i", "i64[7]")
      .op("embedding", "aten.embedding.default", "%w, %i", "f32[7,16]")
      .out("embedding");
}

/// Items of a child window are found from its ID, whatever the reference is.
std::string in(ImGuiTestContext* context, ImGuiTestRef child, const std::string& item) {
  context->SetRef(context->WindowInfo(child).ID);
  return item;
}

std::string row(ImGuiTestContext* context, std::size_t k) {
  return in(context, "//Index/##accesses/##list", "$$" + std::to_string(k) + "/##access" + std::to_string(k));
}

ImRect grid(ImGuiTestContext* context) {
  const std::string item = in(context, "//Index/##cells", "##grid");
  return context->ItemExists(item.c_str()) ? context->ItemInfo(item.c_str()).RectFull : ImRect();
}

TEST(Index, ListsTheAccessesOfAKernelAndAClickChoosesOne) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    const Selection kernel = schedule::KernelId(std::size_t{0});
    select(window, context, kernel);
    context->KeyPress(ImGuiKey_X);
    context->Yield(2);
    IM_CHECK(in_front("Index"));
    const std::size_t count = window.workspace->detail()->index.rows.size();
    IM_CHECK_GT(count, 2U);
    for (std::size_t k = 0; k < count; ++k) IM_CHECK(context->ItemExists(row(context, k).c_str()));
    IM_CHECK(!context->ItemExists(row(context, count).c_str()));
    for (const std::size_t k : {std::size_t{1}, count - 1, std::size_t{0}}) {
      const int access = window.workspace->detail()->index.rows[k].access;
      IM_CHECK_GE(access, 0);
      context->MouseMove(row(context, k).c_str());
      IM_CHECK(window.shell->state().hovered == Selection(model::AccessRef{access}));
      context->ItemClick(row(context, k).c_str());
      IM_CHECK(window.shell->state().selection == Selection(model::AccessRef{access}));
      IM_CHECK(window.quiet(context));
      // The list stays the kernel's, with that one chosen.
      const model::IndexView& view = window.workspace->detail()->index;
      IM_CHECK_EQ(view.rows.size(), count);
      IM_CHECK_EQ(view.chosen, static_cast<int>(k));
      IM_CHECK(view.rows[k].detail != nullptr);
      IM_CHECK_GT(grid(context).GetWidth(), 20.0F);
      IM_CHECK_GT(grid(context).GetHeight(), 20.0F);
    }
  });
  EXPECT_TRUE(window.said("index k0"));
}

TEST(Index, AnOperandOfALibraryCallIsChosenWithoutBeingSelected) {
  const std::string path =
      written("pallascope_ui_product.json", GraphText()
                                                .in("x", "f32[8,32]")
                                                .in("w", "f32[32,4]")
                                                .op("mm", "aten.mm.default", "%x, %w", "f32[8,4]")
                                                .out("mm"));
  Window window({.open = path});
  window.run([&](ImGuiTestContext* context) {
    const Selection product = trace::NodeId(std::size_t{0});
    select(window, context, product);
    const auto rows = window.workspace->detail()->index.rows;
    IM_CHECK_EQ(rows.size(), 2U);
    IM_CHECK_LT(rows[1].access, 0);
    context->KeyPress(ImGuiKey_X);
    context->Yield(2);
    const ImRect before = grid(context);
    context->ItemClick(row(context, 1).c_str());
    context->Yield(3);
    IM_CHECK(window.shell->state().selection == product);
    // The grid is the other operand's now.
    IM_CHECK_GT(grid(context).GetHeight(), 20.0F);
    IM_CHECK(grid(context).GetSize().x != before.GetSize().x ||
             grid(context).GetSize().y != before.GetSize().y);
  });
  std::filesystem::remove(path);
}

TEST(Index, AGatherCannotBeEnumeratedAndSaysOnWhatItDepends) {
  const std::string path = written("pallascope_ui_gather.json", gather());
  Window window({.open = path});
  window.run([&](ImGuiTestContext* context) {
    const auto& accesses = window.workspace->scene()->snapshot->module.accesses;
    int found = -1;
    for (std::size_t k = 0; k < accesses.size() && found < 0; ++k) {
      select(window, context, model::AccessRef{static_cast<int>(k)});
      const model::IndexView& view = window.workspace->detail()->index;
      if (view.rows[static_cast<std::size_t>(view.chosen)].letter == 'G') found = static_cast<int>(k);
    }
    IM_CHECK_GE(found, 0);
    context->KeyPress(ImGuiKey_X);
    context->Yield(3);
    const model::IndexView& view = window.workspace->detail()->index;
    IM_CHECK(view.rows[static_cast<std::size_t>(view.chosen)].detail->grid.unknown.starts_with(
        "depends on the values of"));
    // The tensor is drawn none the less, and says it where a cell is pointed at; no shading is offered.
    IM_CHECK_GT(grid(context).GetHeight(), 20.0F);
    IM_CHECK(!context->ItemExists(in(context, "//Index/##cells", "##shade").c_str()));
    context->MouseMoveToPos(ImVec2(grid(context).Max.x - 6, grid(context).Max.y - 6));
    context->Yield(3);
    IM_CHECK(ImGui::FindWindowByName("##Tooltip_00") != nullptr &&
             ImGui::FindWindowByName("##Tooltip_00")->Active);
  });
  std::filesystem::remove(path);
}

TEST(Index, EveryAccessOfTheBlockDraws) {
  Window window({.open = gpt2_block});
  window.run([&](ImGuiTestContext* context) {
    context->KeyPress(ImGuiKey_X);
    const std::size_t count = window.workspace->scene()->snapshot->module.accesses.size();
    for (std::size_t k = 0; k < count; ++k) {
      select(window, context, model::AccessRef{static_cast<int>(k)});
      IM_CHECK_GT(grid(context).GetHeight(), 20.0F);
    }
    context->KeyPress(ImGuiKey_Escape);
    IM_CHECK(window.quiet(context));
    context->Yield(2);
    IM_CHECK(context->WindowInfo("//Index/##cells", ImGuiTestOpFlags_NoError).ID == 0);
  });
}

}  // namespace
}  // namespace pallascope::testing
