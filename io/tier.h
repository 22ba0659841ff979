// What the store needs of a tier, whatever it is made of (tmpfs, node disk, the run directory):
// folders, whole files, trees. Every Error names the path, says what the system said and carries
// errno as its code, so that a full disk is told apart from the rest. Nothing follows a symbolic
// link at the end of a path. Free functions, any thread. Test: tests/io/tier_test.cpp
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "io/file_descriptor.h"
#include "scheduler/expected.h"

namespace sluice::io {

// "cannot <verb> '<path>': <strerror(code)>", and what to do when the disk is full.
[[nodiscard]] Error system_error(std::string_view verb, const std::filesystem::path& path,
                                 int code);

// Makes the folder, mode 0700; its parents as umask says. No error if it is there already.
Status make_folder(const std::filesystem::path& folder);
// Makes the folder and its parents as umask says, and syncs what holds each new one: after a crash
// they are there. No error if it is there already.
Status make_durable_folders(const std::filesystem::path& folder);
// One level, mode 0700, which must not exist.
Status make_new_folder(const std::filesystem::path& folder);
Status write_file(const std::filesystem::path& file, std::string_view content, mode_t mode = 0600);
Status make_link(const std::string& target, const std::filesystem::path& link);

[[nodiscard]] Expected<FileDescriptor> open_file(const std::filesystem::path& file, int flags,
                                                 mode_t mode = 0600);
Status write_at(int fd, std::span<const std::byte> bytes, int64_t offset,
                const std::filesystem::path& file);
// All of `bytes`; EIO if the file ends before.
Status read_at(int fd, std::span<std::byte> bytes, int64_t offset,
               const std::filesystem::path& file);
// Everything from `from` (a regular file) to the new or emptied file `to`; removed again on error.
enum class Sync : uint8_t { kNo, kFileAndFolder };
Status copy_file(const std::filesystem::path& from, const std::filesystem::path& to, mode_t mode,
                 Sync sync);
Status sync_file(int fd, const std::filesystem::path& file);
Status sync_folder(const std::filesystem::path& folder);

// Removes a file or a whole tree, directories without write permission included. No error if
// absent.
Status remove_tree(const std::filesystem::path& path);

// What tells that someone wrote to a regular file, short of reading it. Not the time of its last
// change of any kind: a second name for the file changes that one.
struct FileStamp {
  int64_t bytes = -1;  // -1: there is no regular file
  int64_t modified_ns = 0;
  uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};
[[nodiscard]] FileStamp file_stamp(const std::filesystem::path& path);

// "a directory", "a symbolic link to 'x'", "a named pipe", ...: for messages about what was found.
[[nodiscard]] std::string kind_of_file(const std::filesystem::path& path);
// "it holds: a, b, c" (at most ten names, sorted), "it is empty" or "it is gone ...".
[[nodiscard]] std::string what_a_folder_holds(const std::filesystem::path& folder);
// Control characters (and then '%' too) as %XX, so that a name fits on a line of its own.
[[nodiscard]] std::string one_line_name(std::string_view name);

}  // namespace sluice::io
