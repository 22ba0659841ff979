// Files behind an interface, with a faulty fake: append-only and atomic writes as the journal and
// the run directory need them. Errors name the file, what the system said, and what to do. The fake
// loses unsynced bytes on `crash()`, fills up at a byte count, and fails the n-th call. Interrupted
// and short system calls are not seen above this interface. File objects: one owner; real_files():
// any thread. Test: tests/io/files_test.cpp, tests/io/faulty_files_test.cpp
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/expected.h"

namespace sluice::io {

class File {
 public:
  virtual ~File() = default;
  virtual Status append(
      std::string_view bytes) = 0;  // all of it, or an Error (then some of it may be there)
  virtual Status sync() = 0;        // fdatasync
  virtual Status truncate(uint64_t length) = 0;
};

class Files {
 public:
  virtual ~Files() = default;
  enum class Open : uint8_t { kCreateNew, kAppend };
  virtual Expected<std::unique_ptr<File>> open(const std::filesystem::path& path, Open how) = 0;
  virtual Expected<std::string> read(const std::filesystem::path& path) = 0;
  // Temporary name, fsync, rename, fsync of the folder.
  virtual Status replace(const std::filesystem::path& path, std::string_view content) = 0;
  // rename(2) and fsync of the target's folder; makes the target's folders. A directory takes the
  // place of what is there, and a file that of a directory, only after that was moved away (to
  // '<from>.old', and removed in the end): for a moment there is nothing.
  virtual Status rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  // A file, or a directory with all that is in it. No error if absent.
  virtual Status remove(const std::filesystem::path& path) = 0;
  // link(2): a second name for a file. EEXIST if the target is there: of several, one wins.
  virtual Status link(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  // Size of a regular file; ENOENT if absent, EINVAL if it is something else.
  virtual Expected<uint64_t> size(const std::filesystem::path& path) = 0;
  // Names of a folder's entries, sorted; none if the folder is absent.
  virtual Expected<std::vector<std::string>> list(const std::filesystem::path& folder) = 0;
};

[[nodiscard]] Files& real_files();

// In memory. `capacity` bytes at most: a write over it is cut there and gives ENOSPC. A failed
// append leaves half of its bytes. crash(): what was not synced is lost, and what was only removed
// is back.
class FakeFiles final : public Files {
 public:
  FakeFiles();
  ~FakeFiles() override;
  Expected<std::unique_ptr<File>> open(const std::filesystem::path& path, Open how) override;
  Expected<std::string> read(const std::filesystem::path& path) override;
  Status replace(const std::filesystem::path& path, std::string_view content) override;
  Status rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  Status remove(const std::filesystem::path& path) override;
  Status link(const std::filesystem::path& from, const std::filesystem::path& to) override;
  Expected<uint64_t> size(const std::filesystem::path& path) override;
  Expected<std::vector<std::string>> list(const std::filesystem::path& folder) override;

  void set_capacity(uint64_t bytes);
  // From 1, from now on; counts append, sync, replace, rename, link.
  void fail_call(uint64_t nth, int error = EIO);
  // Runs in each call that is counted, before it does anything: a slow disk, for a test.
  void set_on_call(std::function<void()> on_call);
  void crash();

 private:
  struct State;
  std::shared_ptr<State>
      state_;  // files outlive their owner's moves; shared with the open File objects
};

}  // namespace sluice::io
