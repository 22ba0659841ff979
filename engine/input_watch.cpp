#include "engine/input_watch.h"

namespace sluice::engine {

using scheduler::ObjectId;
using scheduler::OutputKind;

std::vector<ObjectId> InputWatch::begin(io::Store& store, const io::AttemptSpec& spec,
                                        const std::vector<std::string>& paths) {
  files_.clear();
  size_t at = 0;
  for (const io::InputSpec& input : spec.inputs) {
    for (const io::InputFile& file : input.files) {
      const std::string& path = paths[at++];
      if (!file.object.valid() || input.kind == OutputKind::kValue || path.empty()) continue;
      const ObjectId object = store.holds(file.object) ? file.object : ObjectId();
      files_.push_back({input.name, file.file_name, path, io::file_stamp(path), object});
    }
  }
  return lost(store);
}

bool InputWatch::is_same(io::Store& store, const File& file, const io::FileStamp& now) {
  if (now == file.stamp) return true;
  if (!file.object.valid()) return now.bytes == file.stamp.bytes;
  // Another file in its place is a copy that was made after this one was found to be changed.
  return now.inode == file.stamp.inode && store.as_sealed(file.object);
}

std::string InputWatch::changed(io::Store& store) const {
  for (const File& file : files_) {
    const io::FileStamp now = io::file_stamp(file.path);
    if (is_same(store, file, now)) continue;
    const bool other_size = now.bytes >= 0 && now.bytes != file.stamp.bytes;
    return "input '" + file.input + "': '" + file.name + "' was " +
           (now.bytes < 0 ? "removed" : "written to") + " while this attempt ran" +
           (other_size ? " (" + std::to_string(file.stamp.bytes) + " bytes before, " +
                             std::to_string(now.bytes) + " now)"
                       : "") +
           "; inputs are shared with other tasks: copy what must be changed";
  }
  return "";
}

std::vector<ObjectId> InputWatch::lost(io::Store& store) const {
  std::vector<ObjectId> objects;
  for (const File& file : files_) {
    if (file.object.valid() && !store.as_sealed(file.object)) objects.push_back(file.object);
  }
  return objects;
}

}  // namespace sluice::engine
