// Did an attempt write into what it reads? Inputs are links to objects that others read as well.
// They are read-only, but their owner can change that, and root need not: so they are looked at
// when the attempt is staged and when it has ended. What was changed is nobody's input any more.
//
// Files only. An object of the store is known by its content (io::Store::as_sealed), a result that
// is read in place by its size: whatever else happened to that one, the next submission finds.
// Source files are looked at by rank 0. One attempt's; on the I/O thread. Test:
// tests/engine/input_watch_test.cpp
#pragma once

#include <string>
#include <vector>

#include "io/attempt_spec.h"
#include "io/store.h"
#include "io/tier.h"
#include "scheduler/types.h"

namespace sluice::engine {

class InputWatch {
 public:
  // `paths`: as for io::Store::stage. Returns objects of the store that are not as they were
  // sealed: then the attempt must not start.
  [[nodiscard]] std::vector<scheduler::ObjectId> begin(io::Store& store,
                                                       const io::AttemptSpec& spec,
                                                       const std::vector<std::string>& paths);
  // The first input that was changed since, for people; "" if none was.
  [[nodiscard]] std::string changed(io::Store& store) const;
  // Objects of the store that are not as they were sealed.
  [[nodiscard]] std::vector<scheduler::ObjectId> lost(io::Store& store) const;

 private:
  struct File {
    std::string input;
    std::string name;
    std::string path;
    io::FileStamp stamp;
    scheduler::ObjectId object;  // none: read in place
  };
  [[nodiscard]] static bool is_same(io::Store& store, const File& file, const io::FileStamp& now);

  std::vector<File> files_;
};

}  // namespace sluice::engine
