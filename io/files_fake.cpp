// FakeFiles: files in memory that forget what was not synced.

#include <algorithm>
#include <cerrno>
#include <limits>
#include <map>
#include <system_error>

#include "io/files.h"

namespace sluice::io {

using std::filesystem::path;

namespace {

struct Node {
  std::string data;
  std::string synced;  // what a crash leaves
};

Error fake_error(const std::string& what, const path& file, int code) {
  return {"cannot " + what + " '" + file.string() + "': " + std::generic_category().message(code),
          code};
}

}  // namespace

// Names are durable at once, as the real ones are after open, replace, rename and link; that a name
// is gone is so only when its folder is synced, by one of these; content only when synced.
struct FakeFiles::State {
  std::map<path, std::shared_ptr<Node>> names;
  std::map<path, std::shared_ptr<Node>> removed;  // since the last sync of their folder
  uint64_t capacity = std::numeric_limits<uint64_t>::max();
  uint64_t calls_until_failure = 0;  // 0: none
  int error = EIO;
  std::function<void()> on_call;

  bool fails_now() {
    if (on_call) on_call();
    return calls_until_failure > 0 && --calls_until_failure == 0;
  }
  void folder_synced(const path& name) {
    std::erase_if(removed,
                  [&](const auto& one) { return one.first.parent_path() == name.parent_path(); });
  }
  [[nodiscard]] uint64_t used() const {
    uint64_t sum = 0;
    for (const auto& [name, node] : names) sum += node->data.size();
    return sum;
  }
  [[nodiscard]] uint64_t room() const { return capacity - std::min(capacity, used()); }
};

namespace {

// State is private to FakeFiles: the file sees it through what it needs.
template <class State>
class FakeFile final : public File {
 public:
  FakeFile(std::shared_ptr<State> state, std::shared_ptr<Node> node, path name)
      : state_(std::move(state)), node_(std::move(node)), path_(std::move(name)) {}

  Status append(std::string_view bytes) override {
    if (state_->fails_now()) {
      node_->data += bytes.substr(0, bytes.size() / 2);
      return fake_error("append to", path_, state_->error);
    }
    const uint64_t room = state_->room();
    node_->data += bytes.substr(0, room);
    if (bytes.size() > room) return fake_error("append to", path_, ENOSPC);
    return Done{};
  }
  Status sync() override {
    if (state_->fails_now()) return fake_error("sync", path_, state_->error);
    node_->synced = node_->data;
    return Done{};
  }
  Status truncate(uint64_t length) override {
    node_->data.resize(length);
    return Done{};
  }

 private:
  std::shared_ptr<State> state_;  // see FakeFiles::state_
  std::shared_ptr<Node> node_;    // lives on when its name is replaced, as an inode does
  path path_;
};

}  // namespace

FakeFiles::FakeFiles() : state_(std::make_shared<State>()) {}
FakeFiles::~FakeFiles() = default;

Expected<std::unique_ptr<File>> FakeFiles::open(const path& file, Open how) {
  auto& node = state_->names[file];
  if (node && how == Open::kCreateNew) return fake_error("create", file, EEXIST);
  if (!node) node = std::make_shared<Node>();
  state_->folder_synced(file);
  return std::unique_ptr<File>(std::make_unique<FakeFile<State>>(state_, node, file));
}

Expected<std::string> FakeFiles::read(const path& file) {
  const auto found = state_->names.find(file);
  if (found == state_->names.end()) return fake_error("open", file, ENOENT);
  return found->second->data;
}

Status FakeFiles::replace(const path& file, std::string_view content) {
  if (state_->fails_now()) return fake_error("write", file, state_->error);
  if (content.size() > state_->room()) return fake_error("write", file, ENOSPC);
  state_->names[file] = std::make_shared<Node>(Node{std::string(content), std::string(content)});
  state_->folder_synced(file);
  return Done{};
}

Status FakeFiles::rename(const path& from, const path& to) {
  if (state_->fails_now()) return fake_error("rename", from, state_->error);
  const auto found = state_->names.find(from);
  if (found == state_->names.end()) return fake_error("rename", from, ENOENT);
  const auto node = found->second;
  state_->removed[from] = node;
  state_->names.erase(found);
  state_->names[to] = node;
  state_->folder_synced(to);
  return Done{};
}

Status FakeFiles::remove(const path& file) {
  if (auto node = state_->names.extract(file))
    state_->removed.insert_or_assign(file, node.mapped());
  return Done{};
}

Status FakeFiles::link(const path& from, const path& to) {
  if (state_->fails_now()) return fake_error("link", from, state_->error);
  const auto found = state_->names.find(from);
  if (found == state_->names.end()) return fake_error("link", from, ENOENT);
  if (state_->names.contains(to)) return fake_error("link", to, EEXIST);
  state_->names[to] = found->second;
  state_->folder_synced(to);
  return Done{};
}

Expected<uint64_t> FakeFiles::size(const path& file) {
  const auto found = state_->names.find(file);
  if (found == state_->names.end()) return fake_error("look at", file, ENOENT);
  return found->second->data.size();
}

Expected<std::vector<std::string>> FakeFiles::list(const path& folder) {
  std::vector<std::string> names;
  for (const auto& [name, node] : state_->names) {
    if (name.parent_path() == folder) names.push_back(name.filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void FakeFiles::set_capacity(uint64_t bytes) { state_->capacity = bytes; }
void FakeFiles::fail_call(uint64_t nth, int error) {
  state_->calls_until_failure = nth;
  state_->error = error;
}
void FakeFiles::set_on_call(std::function<void()> on_call) { state_->on_call = std::move(on_call); }

void FakeFiles::crash() {
  state_->names.merge(state_->removed);
  state_->removed.clear();
  for (auto& [name, node] : state_->names) {
    // A new node: a writer that lives on (in a test) writes into the void, as after a real crash.
    node = std::make_shared<Node>(Node{node->synced, node->synced});
  }
}

}  // namespace sluice::io
