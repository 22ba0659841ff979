// What a new submission takes over from the journal: for each recorded instance that the spec still
// has, an event::Restored for the core, and where its files are. The core decides by key whether
// the instance must run again; here it is only decided which bytes are really there:
//
//   a value                          is durable with its record
//   a file with a durable record     is durable if it lies in the run directory with the recorded
//     of the same content            size; a rename that was cut short is completed, a file whose
//                                    place in results/ has changed is moved
//   a directory                      likewise, with everything in it: the bytes of all its files
//                                    count, and the latest change of any of them
//   facts after the last sync, and   are suspect: such a file is hashed before it is trusted
//     files written since the last run
//     or at another time than recorded
//
// Everything else is not durable, and a message says why. Reads and renames in the run directory,
// before the run starts and before results/.tmp is cleaned, with the lease held. One thread. Test:
// tests/engine/resume_test.cpp
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "io/files.h"
#include "io/journal.h"
#include "io/pipeline.h"
#include "scheduler/event.h"
#include "scheduler/expected.h"

namespace sluice::engine {

struct Resume {
  std::vector<scheduler::event::Restored> restored;          // for the core, by instance
  std::map<scheduler::ObjectId, std::string> durable_paths;  // files; relative to the run directory
  // Files that lie elsewhere or have another time than recorded: to be journalled before the start.
  std::vector<io::record::Durable> moved;
  // Saved intermediates below objects/ of instances that the spec no longer has: nobody reads them.
  std::vector<std::string> orphans;
  std::vector<io::record::Gone> gone;  // recorded, not in the spec: to be journalled
  // Restored, but a later attempt with another key failed or was skipped.
  std::set<scheduler::InstanceId> overtaken;
  size_t hashed_files = 0;            // that had to be hashed, being recorded after the last sync
  std::vector<std::string> messages;  // for people: what was not there, at most a few of each kind
};

using HashFile = std::function<Expected<scheduler::Hash128>(const std::filesystem::path&)>;

[[nodiscard]] Resume resume(const io::JournalState& journal, const io::Pipeline& pipeline,
                            const std::filesystem::path& run_directory);
[[nodiscard]] Resume resume(const io::JournalState& journal, const io::Pipeline& pipeline,
                            const std::filesystem::path& run_directory, io::Files& files,
                            const HashFile& hash_file);

}  // namespace sluice::engine
