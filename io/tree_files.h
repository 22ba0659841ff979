// Whole directories in a tier: made read-only, given second names, copied. Each takes the manifest
// (io/manifest.h) of the tree that it works on; a tree that has changed since is an Error, as is
// everything that the system refuses (with errno as its code). What was begun and failed is
// removed again. Functions, any thread. Test: tests/io/tree_files_test.cpp
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "io/manifest.h"
#include "io/tier.h"
#include "scheduler/expected.h"

namespace sluice::io {

// Makes `root` and its directories the owner's to change, so that it can be moved and sealed: a
// copy of a sealed tree is read-only when a task leaves it.
Status open_tree(const std::filesystem::path& root, const Manifest& manifest);

// Files 0444, or 0555 if executable, directories 0555, `root` included. A file that has another
// name could still be changed through it, so that one is replaced by a copy.
Status seal_tree(const std::filesystem::path& root, const Manifest& manifest);

// A second tree of the same files: directories and links are made, files are hard links, or copies
// where that is impossible. `to` must not exist; it is sealed as `from` is.
Status link_tree(const std::filesystem::path& from, const std::filesystem::path& to,
                 const Manifest& manifest);

// A copy whose files are read-only and whose directories are as umask says, so that its owner can
// remove it. `to` must not exist. With Sync::kFileAndFolder
// everything in it and the folder that holds it are on disk afterwards.
Status copy_tree(const std::filesystem::path& from, const std::filesystem::path& to,
                 const Manifest& manifest, Sync sync);

// The directories and links of the manifest, `root` included, and its empty files: what is left is
// to write bytes. `root` must not exist. All of it is the owner's alone.
Status make_skeleton(const std::filesystem::path& root, const Manifest& manifest);

}  // namespace sluice::io
