#include "engine/resume.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "io/manifest.h"

namespace sluice::engine {

namespace {

using io::JournalState;
using scheduler::InstanceId;
using scheduler::ObjectId;
using std::filesystem::path;

constexpr size_t kExamples = 5;
constexpr std::string_view kObjectsFolder = "objects/";

// Complaints of one kind: the first few in full, the rest counted.
class Complaints {
 public:
  void add(std::string text) {
    if (++count_ <= kExamples) texts_.push_back(std::move(text));
  }
  void move_to(std::vector<std::string>& messages) {
    std::move(texts_.begin(), texts_.end(), std::back_inserter(messages));
    if (count_ > kExamples) {
      messages.push_back("and " + std::to_string(count_ - kExamples) + " more files like these");
    }
  }

 private:
  size_t count_ = 0;
  std::vector<std::string> texts_;
};

class Resumer {
 public:
  Resumer(const io::Pipeline& pipeline, path run_directory, io::Files& files,
          const HashFile& hash_file)
      : pipeline_(pipeline),
        run_directory_(std::move(run_directory)),
        files_(files),
        hash_file_(hash_file) {}

  Resume run(const JournalState& journal) {
    last_time_ms_ = journal.last_time_ms;
    for (const auto& [name, facts] : journal.instances) {
      const InstanceId instance = pipeline_.find(name.first, name.second);
      if (instance.valid()) {
        restore(instance, facts);
      } else {
        leave_out(name.first, name.second, facts);
      }
    }
    std::sort(result_.restored.begin(), result_.restored.end(),
              [](const auto& a, const auto& b) { return a.instance < b.instance; });
    finish_messages();
    return std::move(result_);
  }

 private:
  void leave_out(const std::string& task, const std::string& item,
                 const JournalState::InstanceFacts& facts) {
    result_.gone.push_back({task, item});
    if (facts.done && finished_gone_++ == 0)
      first_gone_ = task + (item.empty() ? "" : "[" + item + "]");
    for (const auto& [output, durable] : facts.durable) {
      if (durable.path.starts_with(kObjectsFolder)) result_.orphans.push_back(durable.path);
    }
  }

  void restore(InstanceId instance, const JournalState::InstanceFacts& facts) {
    if (!facts.done) return;
    const auto& outputs = pipeline_.graph.task(pipeline_.graph.task_of(instance)).outputs;
    scheduler::event::Restored restored{instance, facts.done->key, {}, {}};
    for (size_t i = 0; i < outputs.size(); ++i) {
      const io::record::Output* recorded = find_output(*facts.done, outputs[i]);
      // Other outputs than recorded: the key differs too, the instance runs again by itself.
      if (recorded == nullptr) return;
      restored.outputs.push_back({recorded->content, recorded->bytes, recorded->value});
      restored.durable.push_back(
          recorded->is_value ||
          is_durable(pipeline_.graph.object(instance, i), outputs[i], *recorded, facts));
    }
    if (facts.last_failure || !facts.skipped_because.empty()) result_.overtaken.insert(instance);
    result_.restored.push_back(std::move(restored));
  }

  static const io::record::Output* find_output(const io::record::DoneRecord& done,
                                               const scheduler::OutputSpec& spec) {
    const bool is_value = spec.kind == scheduler::OutputKind::kValue;
    const auto found =
        std::find_if(done.outputs.begin(), done.outputs.end(), [&](const auto& output) {
          return output.name == spec.name && output.is_value == is_value;
        });
    return found == done.outputs.end() ? nullptr : &*found;
  }

  bool is_durable(ObjectId object, const scheduler::OutputSpec& spec,
                  const io::record::Output& recorded, const JournalState::InstanceFacts& facts) {
    const auto found = facts.durable.find(spec.name);
    if (found == facts.durable.end()) return false;
    const io::record::Durable& durable = found->second;
    if (durable.content != recorded.content) return false;
    // A former result that is an intermediate now stays where people may look for it.
    const std::string wanted = spec.result ? pipeline_.result_path(object) : durable.path;
    const bool is_directory = spec.kind == scheduler::OutputKind::kDir;
    const std::optional<Place> place = find_place(durable, wanted, is_directory);
    if (!place) return false;
    // What was found under a name that no record gives may be anything.
    const bool unrecorded = place->path != durable.path && place->path != durable.temporary;
    const bool unsynced = !facts.done_synced || facts.unsynced.contains(spec.name);
    // Another file of the same size, or one that was copied: then its record is brought up to date.
    const bool other_time = durable.modified_ns != 0 && place->modified_ns != 0 &&
                            durable.modified_ns != place->modified_ns;
    const char* why = unsynced     ? "it was written shortly before the end of the last run"
                      : unrecorded ? "it lies where no record puts it"
                      // People edit files. A clock that is ahead on the file server costs a look at
                      // the bytes, no more.
                      : place->written_ms > last_time_ms_ ? "it was written after the last run"
                      : other_time                        ? "it is not the file that was recorded"
                                                          : nullptr;
    if (why != nullptr && !has_content(place->path, durable.content, why)) return false;
    if (place->path != wanted && !move(place->path, wanted)) return false;
    if (wanted != durable.path || other_time) note_place(durable, wanted, place->modified_ns);
    result_.durable_paths[object] = wanted;
    return true;
  }

  // What lies under a name in the run directory.
  struct Place {
    std::string path;  // relative to the run directory
    int64_t bytes = 0;
    int64_t written_ms = 0;   // the latest change of it, or of anything in it
    int64_t modified_ns = 0;  // of a file; 0: not known
  };

  // Where it is. The temporary name first: while it is there, the rename has not happened, and
  // something older may lie under the final name.
  std::optional<Place> find_place(const io::record::Durable& durable, const std::string& wanted,
                                  bool is_directory) {
    std::string other;
    for (const std::string& name : {durable.temporary, durable.path, wanted}) {
      if (name.empty()) continue;
      const Expected<Place> place = is_directory ? look_at_tree(name) : look_at_file(name);
      if (place && place->bytes == durable.bytes) return *place;
      if (!other.empty()) continue;
      if (place) {
        other = "'" + name + "' has " + std::to_string(place->bytes) + " bytes, " +
                std::to_string(durable.bytes) + " were recorded";
      } else if (place.error().code != ENOENT) {
        other = place.error().message;
      }
    }
    missing_.add((other.empty() ? "'" + durable.path + "' is missing" : other) +
                 "; it is made again if something needs it");
    return {};
  }

  [[nodiscard]] Expected<Place> look_at_file(const std::string& name) const {
    const auto size = files_.size(run_directory_ / name);
    if (!size) return size.error();
    Place place{name, static_cast<int64_t>(*size), 0, 0};
    struct stat information {};
    if (::lstat((run_directory_ / name).c_str(), &information) == 0) {
      place.modified_ns = information.st_mtim.tv_sec * 1'000'000'000 + information.st_mtim.tv_nsec;
      place.written_ms = place.modified_ns / 1'000'000;
    }
    return place;
  }

  [[nodiscard]] Expected<Place> look_at_tree(const std::string& name) const {
    io::TreeTimes times;
    const auto manifest = io::scan_tree(run_directory_ / name, &times);
    if (!manifest) return manifest.error();
    return Place{name, manifest->bytes, times.newest_ms, 0};
  }

  bool has_content(const std::string& place, scheduler::Hash128 content, const char* why) {
    ++result_.hashed_files;
    const auto found = hash_file_(run_directory_ / place);
    if (found && *found == content) return true;
    missing_.add((found ? "'" + place + "' has other bytes than recorded (" + why + ")"
                        : found.error().message) +
                 "; it is made again if something needs it");
    return false;
  }

  bool move(const std::string& from, const std::string& to) {
    const Status moved = files_.rename(run_directory_ / from, run_directory_ / to);
    if (!moved) missing_.add(moved.error().message + "; it is made again if something needs it");
    return moved.ok();
  }

  void note_place(const io::record::Durable& durable, const std::string& to, int64_t modified_ns) {
    io::record::Durable record = durable;
    record.path = to;
    record.modified_ns = modified_ns;
    record.temporary.clear();
    result_.moved.push_back(std::move(record));
  }

  void finish_messages() {
    missing_.move_to(result_.messages);
    if (finished_gone_ == 0) return;
    std::string text = std::to_string(finished_gone_) +
                       " finished instances are not in the spec any more (the first: '" +
                       first_gone_ + "'); their results stay where they are";
    if (!result_.orphans.empty()) {
      text += ", " + std::to_string(result_.orphans.size()) +
              " intermediate files of theirs in 'objects/' are of no use now";
    }
    result_.messages.push_back(std::move(text));
  }

  const io::Pipeline& pipeline_;
  path run_directory_;
  io::Files& files_;
  const HashFile& hash_file_;
  Resume result_;
  Complaints missing_;
  size_t finished_gone_ = 0;
  std::string first_gone_;
  int64_t last_time_ms_ = 0;  // when the journal's last fact was recorded
};

}  // namespace

Resume resume(const JournalState& journal, const io::Pipeline& pipeline, const path& run_directory,
              io::Files& files, const HashFile& hash_file) {
  return Resumer(pipeline, run_directory, files, hash_file).run(journal);
}

Resume resume(const JournalState& journal, const io::Pipeline& pipeline,
              const path& run_directory) {
  return resume(journal, pipeline, run_directory, io::real_files(), io::hash_object);
}

}  // namespace sluice::engine
