#include "app/views/access_tip.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/report/accesses.h"
#include "core/report/format.h"

namespace pallascope::views {
namespace {

/// The text of the statement's line in the loops column, and of the head of its nest; empty where the nest is in no
/// kernel. The index analysis belongs to another thread, but it has written the expressions into that column.
struct LoopLines {
  std::string_view statement, head;
};
LoopLines loop_lines(const workspace::Scene& scene, loop::NestId nest, int statement) {
  LoopLines found;
  for (const model::SourceLine& line : (*scene.columns)[model::ColumnKind::loops].lines) {
    if (line.nest != nest) continue;
    if (line.statement < 0) found.head = line.text;
    if (line.statement == statement) found.statement = line.text;
  }
  return found;
}

/// `16*i0 + i1` of `%0 = load buf13[16*i0 + i1] : f32`.
std::string_view index_of(std::string_view text) {
  const std::size_t open = text.find('['), close = text.rfind(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return text.substr(open + 1, close - open - 1);
}

/// `i0 < 2, r1 < 64 (reduced)` of `sum: i0 < 2, r1 < 64 (reduced)`.
std::string_view axes_of(std::string_view text) {
  const std::size_t colon = text.rfind(": ");
  return colon == std::string_view::npos ? std::string_view() : text.substr(colon + 2);
}

/// The names in `i0 < 2, r1 < 64 (reduced)`.
std::vector<std::string_view> axis_names(std::string_view axes) {
  std::vector<std::string_view> names;
  while (!axes.empty()) {
    const std::size_t end = axes.find(' ');
    if (end == std::string_view::npos) break;
    names.push_back(axes.substr(0, end));
    const std::size_t comma = axes.find(", ");
    if (comma == std::string_view::npos) break;
    axes.remove_prefix(comma + 2);
  }
  return names;
}

void row(const Context& context, const char* name, std::string_view value) {
  if (value.empty()) return;
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  text(context.theme.text_dim, name);
  ImGui::TableNextColumn();
  const FontScope font(context.fonts.mono, context.fonts.small_size);
  text(context.theme.text, value);
}

void access_rows(const Context& context, const workspace::Scene& scene, const codegen::KernelAccess& access) {
  const LoopLines lines = loop_lines(scene, access.nest, access.statement);
  const std::string_view axes = axes_of(lines.head);
  if (!lines.statement.empty()) row(context, "index", index_of(lines.statement));
  row(context, "axes", axes);
  if (access.access.affine) {
    // A store's axes are the nest's without those that are reduced.
    const auto names = axis_names(axes);
    std::string strides;
    for (std::size_t k = 0; k < access.access.axis_strides.size(); ++k) {
      strides +=
          fmt::format("{}{}{}", k == 0 ? "" : ", ", k < names.size() ? fmt::format("{}: ", names[k]) : "",
                      access.access.axis_strides[k]);
    }
    if (access.access.offset != 0) strides += fmt::format("   offset {}", access.access.offset);
    row(context, "strides", strides);
  }
  const loop::Program& program = *scene.snapshot->program;
  const loop::Buffer& buffer = program.buffers[access.buffer];
  if (access.access.distinct_elements == 0) {
    row(context, "range", "touches nothing");
  } else {
    row(context, "range",
        fmt::format("{} .. {} of {} elements{}", report::count_text(access.access.bounds.low),
                    report::count_text(access.access.bounds.high), report::count_text(buffer.numel()),
                    access.access.in_bounds ? "  in bounds ✓" : "  checked when it runs"));
  }
  const std::int64_t touched = report::bytes_touched(program, access),
                     spanned = report::bytes_spanned(program, access);
  row(context, "bytes",
      fmt::format("{}{}{}", access.access.distinct_exact ? "" : "at most ", report::bytes_text(touched),
                  spanned > touched ? fmt::format(" within {}", report::bytes_text(spanned)) : ""));
}

}  // namespace

void draw_access_tag(ImDrawList& draw, const MonoMetrics& mono, const Theme& theme, ImVec2 min, ImVec2 max,
                     AccessTag tag) {
  const ImU32 color = theme.access(tag.letter);
  const float height = max.y - min.y, round = std::floor(height * 0.22F);
  const float fill = tag.strong ? 0.45F : theme.dark ? 0.24F : 0.18F;
  float centre = (min.x + max.x) / 2;
  if (tag.store) {
    const float tip = std::floor(height * 0.30F), middle = (min.y + max.y) / 2;
    const std::array<ImVec2, 5> points{ImVec2(min.x, min.y), ImVec2(max.x - tip, min.y),
                                       ImVec2(max.x, middle), ImVec2(max.x - tip, max.y),
                                       ImVec2(min.x, max.y)};
    draw.AddConvexPolyFilled(points.data(), static_cast<int>(points.size()), faded(color, fill + 0.14F));
    draw.AddPolyline(points.data(), static_cast<int>(points.size()), faded(color, 0.9F), 1.0F,
                     ImDrawFlags_Closed);
    centre -= tip * 0.35F;
  } else if (tag.on_value) {
    draw.AddRect(ImVec2(min.x + 0.5F, min.y + 0.5F), ImVec2(max.x - 0.5F, max.y - 0.5F),
                 faded(color, tag.strong ? 0.9F : 0.55F), round);
  } else {
    draw.AddRectFilled(min, max, faded(color, fill), round);
  }
  const float size = mono.size * 0.92F;
  const ImVec2 extent = mono.bold->CalcTextSizeA(size, 1e30F, 0, &tag.letter, &tag.letter + 1);
  draw.AddText(mono.bold, size,
               ImVec2(std::floor(centre - extent.x / 2 + 0.5F), std::floor((min.y + max.y - extent.y) / 2)),
               mixed(color, theme.text, theme.dark ? 0.30F : 0.12F), &tag.letter, &tag.letter + 1);
}

void access_tooltip(const Context& context, const model::SourceLine& line) {
  const workspace::Scene* scene = context.scene();
  if (scene == nullptr || !ImGui::BeginTooltip()) return;
  const auto& accesses = scene->snapshot->module.accesses;
  std::optional<codegen::KernelAccess> access;
  if (line.access >= 0 && static_cast<std::size_t>(line.access) < accesses.size())
    access.emplace(accesses[static_cast<std::size_t>(line.access)]);
  access_badge(context, line.letter);
  ImGui::SameLine();
  {
    const FontScope font(context.fonts.bold, context.fonts.ui_size);
    text(context.theme.text, fmt::format("{} {}", access_name(line.letter), line.store ? "store" : "load"));
  }
  if (access) {
    const loop::Buffer& buffer = scene->snapshot->program->buffers[access->buffer];
    ImGui::SameLine();
    text(context.theme.text_dim, fmt::format("{}  {} {}", report::id_text(access->buffer), buffer.name,
                                             report::shape_text(buffer.dtype, buffer.dims)));
    if (!access->access.words.empty() && access->access.words != access_name(line.letter))
      text(context.theme.text, access->access.words);
    if (access->on_value) text(context.theme.text_dim, "reads a value made in this kernel: no memory");
    ImGui::Dummy(ImVec2(0, context.px(1)));
    if (ImGui::BeginTable("##access", 2, ImGuiTableFlags_SizingFixedFit)) {
      access_rows(context, *scene, *access);
      ImGui::EndTable();
    }
    text(context.theme.text_faint, "click: show it in Index");
  } else {
    text(context.theme.text_dim, line.store
                                     ? "The value stays in the kernel: nothing is written to memory."
                                     : "The kernel has this value already: nothing is read from memory.");
  }
  ImGui::EndTooltip();
}

}  // namespace pallascope::views
