// What an HDF5 file holds, whether all of it can be read, and files made of parts of others. Only
// io/hdf5*.cpp know HDF5 (1.10, serial). A damaged file may crash or hang the library: call this
// only in sluice-h5.
//
// Every object is opened, every attribute and dataset read once through its filters, in pieces; a
// chunked dataset by its chunks. A dataset whose filter is not installed here is read undecoded.
// What is not in the file itself (external links, raw files, sources of virtual datasets) must be
// named by an absolute path that exists: a relative one breaks when the file is moved into a store.
//
// One thread. Test: tests/engine/h5_checker_test.cpp, tests/engine/h5_view_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/h5_view.h"
#include "scheduler/expected.h"

namespace sluice::io {

// "2 datasets: u f64[64,64], g/v i32[10]", at most 500 bytes; or what was found wrong, and where.
[[nodiscard]] Expected<std::string> describe_h5(const std::filesystem::path& file);

// Writes the file `to`, or writes it anew: what `view` shows of the sources, one without a
// gather, else in this order. Every dataset in it is contiguous and, from 4 KiB on, begins at a
// multiple of 4 KiB, so that it can be mapped; the same sources give the same bytes. Attributes of
// the datasets and of the groups above them come along (of a gather, the first file's), but for
// those that refer to other objects. Returns the bytes of `to`. `progress` is called now and then.
[[nodiscard]] Expected<int64_t> make_h5_view(const std::vector<H5Source>& sources,
                                             const H5View& view, const std::filesystem::path& to,
                                             const std::function<void()>& progress = {});

}  // namespace sluice::io
