// Room: repl. The commands' functions: each takes the session and its words, and says what it did.
#pragma once

#include "app/repl/command.h"

namespace pallascope::repl {

// handlers_open.cpp: what is worked on
Result<Output> run_open(Session& session, const Arguments& arguments);
Result<Output> run_trace(Session& session, const Arguments& arguments);
Result<Output> run_graphs(Session& session, const Arguments& arguments);
Result<Output> run_use(Session& session, const Arguments& arguments);
Result<Output> run_summary(Session& session, const Arguments& arguments);

// handlers_look.cpp: looking around
Result<Output> run_ls(Session& session, const Arguments& arguments);
Result<Output> run_show(Session& session, const Arguments& arguments);
Result<Output> run_deps(Session& session, const Arguments& arguments);
Result<Output> run_users(Session& session, const Arguments& arguments);
Result<Output> run_code(Session& session, const Arguments& arguments);
Result<Output> run_index(Session& session, const Arguments& arguments);
Result<Output> run_ops(Session& session, const Arguments& arguments);

// handlers_explain.cpp: why
Result<Output> run_why(Session& session, const Arguments& arguments);
Result<Output> run_why_not(Session& session, const Arguments& arguments);
Result<Output> run_reasons(Session& session, const Arguments& arguments);

// handlers_step.cpp: moving in the log
Result<Output> run_goto(Session& session, const Arguments& arguments);
Result<Output> run_step(Session& session, const Arguments& arguments);
Result<Output> run_stepback(Session& session, const Arguments& arguments);
Result<Output> run_diff(Session& session, const Arguments& arguments);

// handlers_run.cpp: what Python does
Result<Output> run_run(Session& session, const Arguments& arguments);
Result<Output> run_check(Session& session, const Arguments& arguments);
Result<Output> run_python(Session& session, std::string_view code);

// command.cpp
Result<Output> run_help(Session& session, const Arguments& arguments);
Result<Output> run_quit(Session& session, const Arguments& arguments);

}  // namespace pallascope::repl
