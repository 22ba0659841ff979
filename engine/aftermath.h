// What the survivor of a death does: removes the node's store and the rank's files in shared
// memory, and leaves a note in the run directory by which rank 0, or the next run, learns of it at
// once. Used by guard and launcher, after their descendants are dead. One thread. Test:
// tests/engine/launcher_test.cpp
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/launcher.h"
#include "scheduler/types.h"

namespace sluice::engine {

struct Aftermath {
  const ProcessTree* tree = nullptr;
  int64_t start_seconds = 0;  // CLOCK_REALTIME of the guard's start: older files are not ours

  // Whether the rank was through with starting MPI, to judge by the store that it makes next.
  // Before clean(). Until then all ranks wait for each other in MPI_Init, and only mpirun can end
  // that: it does if a guard says that its rank failed.
  [[nodiscard]] bool rank_had_begun() const;
  // Removes the store and the segments of Open MPI's vader that this rank made.
  void clean() const;
  // In lost/, one line with host and what happened. Nothing when the run directory is not known or
  // does not exist.
  void note_lost(const std::string& what) const;
};

// Names of vader's segments that belong to a rank of this job: exact when the launcher's variables
// tell the job's id (mpirun), else "" (srun: judged by age and use).
[[nodiscard]] std::string vader_segment_name(const std::string& host, unsigned uid,
                                             const std::string& pmix_namespace,
                                             const std::string& local_rank);

// The name of a note in lost/: `<mpi_rank>`, where the launcher's variables tell the job (Open MPI,
// PMIx) `<mpi_rank>@<job>`. A guard may outlive mpirun by the time that killing takes, and the next
// run in that directory may have begun: what is said of a dead rank 1 is not to kill the new one.
[[nodiscard]] std::string mpi_job();
[[nodiscard]] std::string lost_note_name(int mpi_rank, const std::string& job);
// The rank of whom the note tells; nothing if it tells of another job's, or is no note.
[[nodiscard]] std::optional<uint32_t> rank_of_lost_note(std::string_view name,
                                                        const std::string& job);

// "was killed by signal 9 (Killed)", "exited with code 3".
[[nodiscard]] std::string describe_wait_status(int status);

}  // namespace sluice::engine
