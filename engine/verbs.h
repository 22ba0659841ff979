// The verbs that only read (and `stop`, which leaves a request): each returns its exit code, prints
// results on stdout and complaints on stderr. They work from the journal and the lease, so they are
// true after any kill. Test: tests/e2e/basics.sh
#pragma once

#include <string>

namespace sluice::engine {

struct Options;

int stop_run(const Options& options);
int replay_run(const Options& options);
int show_hardware(const Options& options);
// Of sluice and of what it was built with; `mpi`: what the MPI library says of itself.
[[nodiscard]] std::string version_text(const std::string& mpi);

}  // namespace sluice::engine
