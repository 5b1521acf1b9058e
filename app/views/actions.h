// Room: views. Everything one can do in the window without pointing at something: one table, of which the palette and
// the page of keys are made.
#pragma once

#include <span>

#include "app/views/context.h"

namespace pallascope::views {

struct Action {
  const char* group;  ///< a heading of the page of keys
  const char* name;   ///< what it does, as a person would ask for it
  const char* keys;   ///< as they are printed on the keyboard: `Ctrl+P`, `[`; empty for none
  /// Null for keys that mean something only where one is (a list, a text): they are on the page, not in the palette.
  void (*run)(Context&);
  bool (*enabled)(const Context&);  ///< null: always
};

/// In the order of the page.
std::span<const Action> actions();

// What keys and actions have in common.
void next_decision(Context& context);
void previous_decision(Context& context);
/// To the first decision of the next pass.
void next_pass(Context& context);
/// To the first decision of this pass; from there to that of the one before.
void previous_pass(Context& context);
void run_and_compare(Context& context);

/// Makes everything larger (`steps` of a tenth) or smaller.
void zoom(UiState& state, int steps);

}  // namespace pallascope::views
