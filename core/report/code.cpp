#include "core/report/code.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "core/report/diff.h"
#include "core/report/format.h"

namespace pallascope::report {
namespace {

std::vector<CodeLine> pallas_lines(const session::Snapshot& snapshot,
                                   std::optional<schedule::KernelId> kernel) {
  const codegen::Module& module = snapshot.module;
  const std::vector<std::string> texts = split_lines(module.source);
  int first = 1, last = static_cast<int>(texts.size());
  if (kernel) {
    const codegen::KernelSource& source = module.kernels.at(kernel->index());
    first = std::max(source.first_line, 1);
    last = std::min(source.last_line, last);
  }
  std::vector<CodeLine> lines;
  for (int number = first; number <= last; ++number) {
    CodeLine line;
    line.number = number;
    line.text = texts[static_cast<std::size_t>(number - 1)];
    if (static_cast<std::size_t>(number) <= module.lines.size()) {
      const codegen::LineOrigin& origin = module.lines[static_cast<std::size_t>(number - 1)];
      line.kernel = origin.kernel;
      line.node = origin.node;
      line.access = origin.access;
      if (origin.access >= 0) {
        line.letter = index::access_class_letter(
            module.accesses.at(static_cast<std::size_t>(origin.access)).access.access_class);
      }
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

void add_call(std::vector<CodeLine>& lines, const session::Compilation& compilation,
              const session::Snapshot& snapshot, loop::StepId id) {
  const loop::Program& program = *snapshot.program;
  const auto name = [&](loop::BufferId buffer) {
    return buffer.valid() ? program.buffers[buffer].name : std::string("None");
  };
  CodeLine line;
  const auto& content = program.steps[id].content;
  if (const auto* call = std::get_if<loop::LibraryCall>(&content)) {
    line.node = call->origin;
    std::vector<std::string> operands, outputs;
    for (const loop::View& view : call->operands)
      operands.push_back(fmt::format("{}[{}]", name(view.buffer), program.context->to_string(view.index)));
    for (const loop::BufferId buffer : call->outputs) outputs.push_back(name(buffer));
    line.text = fmt::format("{}: {} = library {}({})", compilation.graph().nodes[call->origin].name,
                            join(outputs, ", "), call->op, join(operands, ", "));
  } else if (const auto* torch = std::get_if<loop::TorchCall>(&content)) {
    std::vector<std::string> inputs, outputs;
    for (const auto& [value, view] : torch->inputs) inputs.push_back(name(view.buffer));
    for (const loop::BufferId buffer : torch->outputs) outputs.push_back(name(buffer));
    line.node = torch->origin;
    line.text = fmt::format("{}: {} = torch {}({})", compilation.graph().nodes[torch->origin].name,
                            join(outputs, ", "), torch->op, join(inputs, ", "));
  }
  lines.push_back(std::move(line));
}

std::vector<CodeLine> loop_lines(const session::Compilation& compilation, const session::Snapshot& snapshot,
                                 std::optional<schedule::KernelId> wanted) {
  const loop::Program& program = *snapshot.program;
  std::map<std::pair<loop::NestId, int>, int> accesses;
  for (std::size_t k = 0; k < snapshot.module.accesses.size(); ++k) {
    accesses.emplace(std::pair(snapshot.module.accesses[k].nest, snapshot.module.accesses[k].statement),
                     static_cast<int>(k));
  }
  std::vector<CodeLine> lines;
  for (const schedule::ScheduledStep& step : snapshot.state.steps) {
    if (!step.kernel.valid()) {
      if (!wanted && program.steps.contains(step.call)) add_call(lines, compilation, snapshot, step.call);
      continue;
    }
    if (wanted && step.kernel != *wanted) continue;
    CodeLine head;
    head.kernel = step.kernel;
    head.text = fmt::format("{}:", id_text(step.kernel));
    lines.push_back(head);
    for (const loop::NestId id : snapshot.state.kernels[step.kernel].nests) {
      const loop::Nest& nest = program.nests[id];
      const std::vector<std::string> whole = split_lines(loop::to_string(program, nest));
      const std::vector<std::string> statements = loop::statement_lines(program, nest);
      CodeLine line;
      line.kernel = step.kernel;
      line.node = nest.origin;
      line.text = "  " + (whole.empty() ? nest.name + ":" : whole.front());
      lines.push_back(line);
      for (std::size_t k = 0; k < statements.size(); ++k) {
        CodeLine statement;
        statement.kernel = step.kernel;
        if (k < nest.body.size()) statement.node = nest.body[k].origin;
        const std::size_t start = statements[k].find_first_not_of(' ');
        statement.text = "    " + (start == std::string::npos ? "" : statements[k].substr(start));
        if (const auto at = accesses.find({id, static_cast<int>(k)}); at != accesses.end()) {
          statement.access = at->second;
          statement.letter = index::access_class_letter(
              snapshot.module.accesses[static_cast<std::size_t>(at->second)].access.access_class);
        }
        lines.push_back(std::move(statement));
      }
    }
  }
  for (std::size_t k = 0; k < lines.size(); ++k) lines[k].number = static_cast<int>(k) + 1;
  return lines;
}

std::vector<CodeLine> fx_lines(const session::Compilation& compilation, const session::Snapshot& snapshot,
                               std::optional<schedule::KernelId> kernel) {
  const trace::Graph& graph = compilation.graph();
  std::set<trace::NodeId> wanted;
  if (kernel) {
    for (const loop::NestId nest : snapshot.state.kernels[*kernel].nests) {
      const auto& origins = snapshot.program->nests[nest].origins;
      wanted.insert(origins.begin(), origins.end());
    }
  }
  std::vector<CodeLine> lines;
  for (std::size_t k = 0; k < graph.nodes.size(); ++k) {
    const trace::NodeId id(k);
    if (kernel && !wanted.contains(id)) continue;
    const trace::Node& node = graph.nodes[id];
    const std::string place = place_text(node);
    CodeLine line;
    line.node = id;
    if (kernel) line.kernel = *kernel;
    line.number = static_cast<int>(lines.size()) + 1;
    line.text = fmt::format("{}: {} = {}{}", node.name, outputs_text(graph, node), call_text(graph, node),
                            place.empty() ? "" : "  # " + place);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::vector<CodeLine> code_lines(const session::Compilation& compilation, const session::Snapshot& snapshot,
                                 CodeForm form, std::optional<schedule::KernelId> kernel) {
  switch (form) {
    case CodeForm::pallas:
      return pallas_lines(snapshot, kernel);
    case CodeForm::loops:
      return loop_lines(compilation, snapshot, kernel);
    case CodeForm::fx:
      return fx_lines(compilation, snapshot, kernel);
  }
  return {};
}

std::string code_text(const std::vector<CodeLine>& lines) {
  const std::size_t width = lines.empty() ? 1 : fmt::format("{}", lines.back().number).size();
  std::string text;
  for (const CodeLine& line : lines) {
    std::string row = fmt::format("{:>{}} {} │ {}", line.number, width, line.letter, line.text);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

Json code_json(const session::Compilation& compilation, const session::Snapshot& snapshot,
               const std::vector<CodeLine>& lines) {
  Json rows = Json::array();
  std::string source;
  for (const CodeLine& line : lines) {
    const bool access = line.access >= 0;
    rows.push_back(
        {{"line", line.number},
         {"letter", std::string(1, line.letter)},
         {"class",
          access ? Json(std::string(index::access_class_name(
                       snapshot.module.accesses[static_cast<std::size_t>(line.access)].access.access_class)))
                 : Json(nullptr)},
         {"text", line.text},
         {"kernel", line.kernel.valid() ? Json(id_text(line.kernel)) : Json(nullptr)},
         {"node", compilation.graph().nodes.contains(line.node) ? Json(id_text(line.node)) : Json(nullptr)}});
    source += line.text + "\n";
  }
  return {{"lines", rows}, {"source", source}};
}

}  // namespace pallascope::report
