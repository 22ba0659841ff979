#include "engine/input_views.h"

#include <algorithm>
#include <utility>

#include "io/tier.h"

namespace sluice::engine {

namespace {

namespace fs = std::filesystem;

// A single input keeps its file's name; what was gathered gets the input's.
std::string file_name_of(const io::InputSpec& input) {
  const bool gathered = input.view.gather != io::H5View::Gather::kNone;
  return gathered ? input.name + ".h5" : input.files.front().file_name;
}

std::string name_of(const io::InputFile& file) {
  return file.file_name + (file.item.empty() ? "" : " of [" + file.item + "]");
}

// Calls function(index of the input, index of its first path) for each view.
template <class F>
void each_view(const io::AttemptSpec& spec, F&& function) {
  size_t first = 0;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!spec.inputs[i].view.whole()) function(i, first);
    first += spec.inputs[i].files.size();
  }
}

}  // namespace

void add_store_paths(const io::Store& store, const io::AttemptSpec& spec,
                     std::vector<std::string>& paths) {
  size_t at = 0;
  for (const io::InputSpec& input : spec.inputs) {
    for (const io::InputFile& file : input.files) {
      if (file.object.valid() && store.holds(file.object)) {
        paths[at] = store.object_path(file.object);
      }
      ++at;
    }
  }
}

bool has_views(const io::AttemptSpec& spec) {
  return std::any_of(spec.inputs.begin(), spec.inputs.end(),
                     [](const io::InputSpec& input) { return !input.view.whole(); });
}

int64_t view_bytes_max(const io::AttemptSpec& spec, const std::vector<std::string>& paths) {
  int64_t bytes = 0;
  each_view(spec, [&](size_t i, size_t first) {
    int64_t of_files = 0;
    for (size_t f = 0; f < spec.inputs[i].files.size(); ++f) {
      of_files += std::max<int64_t>(io::file_stamp(paths[first + f]).bytes, 0);
    }
    bytes += of_files / std::max<int64_t>(spec.inputs[i].view.shards, 1);
  });
  return bytes;
}

Expected<std::vector<ViewRequest>> prepare_views(const io::AttemptSpec& spec,
                                                 const std::vector<std::string>& paths,
                                                 const fs::path& folder) {
  std::vector<ViewRequest> views;
  Status done = Done{};
  each_view(spec, [&](size_t i, size_t first) {
    const io::InputSpec& input = spec.inputs[i];
    std::vector<io::H5Source> sources;
    for (size_t f = 0; f < input.files.size(); ++f) {
      const io::InputFile& file = input.files[f];
      if (done && paths[first + f].empty()) {
        done = Error{"input '" + input.name + "': no copy of '" + name_of(file) +
                     "' is on this node any more"};
      }
      sources.push_back({paths[first + f], name_of(file)});
    }
    if (done && sources.empty()) {
      done = Error{"input '" + input.name + "' gathers no files; expected at least one"};
    }
    ViewRequest view;
    view.input = i;
    view.request.sources = folder / (input.name + ".sources");
    view.request.path = folder / input.name / file_name_of(input);
    view.request.view = input.view;
    if (done) done = io::make_folder(folder / input.name);
    if (done) done = io::write_file(view.request.sources, io::encode_sources(sources));
    views.push_back(std::move(view));
  });
  if (!done) return done.error();
  return views;
}

void use_views(const std::vector<ViewRequest>& views, io::AttemptSpec& spec,
               std::vector<std::string>& paths) {
  std::vector<std::string> new_paths;
  size_t first = 0;
  auto view = views.begin();
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    io::InputSpec& input = spec.inputs[i];
    const auto begin = paths.begin() + static_cast<std::ptrdiff_t>(first);
    const size_t count = input.files.size();
    first += count;
    if (view == views.end() || view->input != i) {
      new_paths.insert(new_paths.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
      continue;
    }
    io::InputFile made;
    made.source_path = view->request.path;
    made.file_name = file_name_of(input);
    new_paths.push_back(made.source_path);
    input.files = {std::move(made)};
    input.view = {};
    ++view;
  }
  paths = std::move(new_paths);
}

std::string view_error(const io::AttemptSpec& spec, const ViewRequest& view,
                       const std::string& error) {
  return "input '" + spec.inputs[view.input].name + "': " + error;
}

}  // namespace sluice::engine
