// Room: workspace. What workers make and panels draw: immutable, shared by pointer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/model/decision_rows.h"
#include "app/model/graph_model.h"
#include "app/model/index_view.h"
#include "app/model/inspector.h"
#include "app/model/layout.h"
#include "app/model/selection.h"
#include "app/model/source_columns.h"
#include "app/model/source_outline.h"
#include "app/model/summary_view.h"
#include "app/model/why_view.h"
#include "core/report/json.h"
#include "core/session/compilation.h"

namespace pallascope::workspace {

/// The program at one decision, with all that does not depend on the selection.
struct Scene {
  std::uint64_t number = 0;  ///< grows with each scene; what was made of an older one is stale
  std::shared_ptr<const trace::Program> program;
  std::string path;          ///< of the file it came from
  std::shared_ptr<const session::Compilation> compilation;
  std::size_t position = 0;  ///< how many decisions hold
  std::shared_ptr<const session::Snapshot> snapshot;
  /// Lines are flagged against the program one decision earlier (against itself at the start: no flags).
  std::shared_ptr<const model::SourceColumns> columns;
  std::shared_ptr<const model::SourceOutline> outline;  ///< of `columns`
  std::shared_ptr<const model::DecisionIndex> decisions;  ///< the same object in all scenes of one compilation
  std::shared_ptr<const model::SummaryView> summary;

  [[nodiscard]] std::size_t total() const { return compilation->decisions().size(); }
};

/// What belongs to one selection in one scene.
struct Detail {
  std::uint64_t scene = 0;
  model::Selection selection;
  model::LinkedColumns linked;
  model::Inspector inspector;
  std::shared_ptr<const model::WhyView> why;  ///< null when no decision is about the selection
  model::IndexView index;
};

/// The laid-out graph of one scene and one set of open groups.
struct GraphScene {
  std::uint64_t scene = 0;
  std::uint64_t request = 0;  ///< of Workspace::request_graph
  model::GraphOptions options;
  model::GraphModel graph;
  model::Layout layout;
};

/// The result of a `check` (or `run`) with the place it was made at.
struct CheckRun {
  std::shared_ptr<const session::Compilation> compilation;
  std::shared_ptr<const trace::Program> program;
  std::size_t graph = 0;
  std::size_t decision = 0;  ///< how many decisions held
  report::Json result;       ///< what the command gave; see report/check.h
  bool passed = false;
  std::string host;          ///< `local (cpu, jax 0.10.2)`
};

/// A command that the host works on.
struct Busy {
  std::string command;   ///< as typed
  std::string text;      ///< what is waited for
  double fraction = -1;  ///< 0 to 1; negative when it is not known
  std::chrono::steady_clock::time_point since;
  bool cancelling = false;
};

/// One entry of the REPL's transcript. Text without a newline at its end.
struct TranscriptEntry {
  enum class Kind : std::uint8_t {
    typed,   ///< a command that a person typed
    echo,    ///< the command that does what was clicked
    output,
    error,
    note,    ///< what the program itself has to say
  };
  Kind kind = Kind::note;
  std::string text;
};

}  // namespace pallascope::workspace
