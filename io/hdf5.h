// What an HDF5 file holds, and whether all of it can be read. The only place that knows HDF5 (1.10,
// serial). A damaged file may crash or hang the library: call this only in sluice-h5.
//
// Every object is opened, every attribute and dataset read once through its filters, in pieces; a
// chunked dataset by its chunks. A dataset whose filter is not installed here is read undecoded.
// What is not in the file itself (external links, raw files, sources of virtual datasets) must be
// named by an absolute path that exists: a relative one breaks when the file is moved into a store.
//
// One thread. Test: tests/engine/h5_checker_test.cpp
#pragma once

#include <filesystem>
#include <string>

#include "scheduler/expected.h"

namespace sluice::io {

// "2 datasets: u f64[64,64], g/v i32[10]", at most 500 bytes; or what was found wrong, and where.
[[nodiscard]] Expected<std::string> describe_h5(const std::filesystem::path& file);

}  // namespace sluice::io
