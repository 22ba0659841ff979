// Inputs that are made for an attempt out of HDF5 files (io/h5_view.h): what `sluice-h5` is asked
// for, and how the attempt gets what it made. For a worker and for `sluice shell`.
//
// Functions; they write files, so the I/O thread calls them. Test: tests/engine/h5_view_test.cpp,
// tests/e2e/views.sh
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/attempt_spec.h"
#include "io/checker.h"
#include "io/store.h"
#include "scheduler/expected.h"

namespace sluice::engine {

struct ViewRequest {
  size_t input = 0;  // index into the attempt's inputs
  io::CheckRequest request;
};

// The paths of objects that the store holds, in the place of those that are known otherwise.
void add_store_paths(const io::Store& store, const io::AttemptSpec& spec,
                     std::vector<std::string>& paths);
[[nodiscard]] bool has_views(const io::AttemptSpec& spec);
// At most so many bytes will be made.
[[nodiscard]] int64_t view_bytes_max(const io::AttemptSpec& spec,
                                     const std::vector<std::string>& paths);
// Writes what each view is made of into `folder`, an empty one, where the views will be too.
// `paths`: as for io::Store::stage.
[[nodiscard]] Expected<std::vector<ViewRequest>> prepare_views(
    const io::AttemptSpec& spec, const std::vector<std::string>& paths,
    const std::filesystem::path& folder);
// The views are there: each becomes a single file, in the attempt and in its paths.
void use_views(const std::vector<ViewRequest>& views, io::AttemptSpec& spec,
               std::vector<std::string>& paths);
// An error of making a view, with the input's name before it.
[[nodiscard]] std::string view_error(const io::AttemptSpec& spec, const ViewRequest& view,
                                     const std::string& error);

}  // namespace sluice::engine
