// The verbs that only read (and `stop`, which leaves a request): each returns its exit code, prints
// results on stdout and complaints on stderr. They work from the journal and the lease, so they are
// true after any kill. Test: tests/e2e/basics.sh
#pragma once

#include <string>

namespace sluice::engine {

struct Options;

int check_pipeline(const Options& options);
int plan_pipeline(const Options& options);
int show_status(const Options& options);
int show_logs(const Options& options);
int show_why(const Options& options);
int stop_run(const Options& options);
int replay_run(const Options& options);
[[nodiscard]] std::string version_text();

}  // namespace sluice::engine
