// The verbs that look ahead: `check` finds every mistake before anything starts, `plan` says what a
// run would do now and about how long that takes, `why` explains one instance. They read the
// pipeline and the run directory and change nothing; each returns its exit code. Results go to
// stdout, findings to stderr. One thread. Test: tests/e2e/plan.sh
#pragma once

namespace sluice::engine {

struct Options;

int check_pipeline(const Options& options);
int plan_pipeline(const Options& options);
int show_why(const Options& options);

}  // namespace sluice::engine
