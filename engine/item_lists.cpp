#include "engine/item_lists.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>
#include <utility>

namespace sluice::engine {

namespace {

constexpr size_t kTasksShownMax = 10;
constexpr size_t kItemsShownMax = 3;

// Item texts are encoded: none holds a newline.
std::string lines_of(const io::Pipeline& pipeline, scheduler::TaskId task) {
  std::string text;
  for (uint32_t i = 0; i < pipeline.graph.task(task).instance_count; ++i) {
    text += pipeline.item(pipeline.graph.instance(task, i)) + "\n";
  }
  return text;
}

std::vector<std::string_view> sorted_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

// "2 new items ([f=a], [f=b])"
std::string counted(const std::vector<std::string_view>& items, const std::string& what) {
  std::string text = std::to_string(items.size()) + " " + what + " (";
  for (size_t i = 0; i < std::min(items.size(), kItemsShownMax); ++i) {
    text.append(i == 0 ? "[" : ", [").append(items[i]).append("]");
  }
  return text + (items.size() > kItemsShownMax ? ", ...)" : ")");
}

// "2 new items (...), 1 gone (...)", "" when both are the same.
std::string difference(const std::string& before, const std::string& now) {
  const std::vector<std::string_view> old_items = sorted_lines(before);
  const std::vector<std::string_view> new_items = sorted_lines(now);
  std::vector<std::string_view> added;
  std::vector<std::string_view> gone;
  std::set_difference(new_items.begin(), new_items.end(), old_items.begin(), old_items.end(),
                      std::back_inserter(added));
  std::set_difference(old_items.begin(), old_items.end(), new_items.begin(), new_items.end(),
                      std::back_inserter(gone));
  std::string text;
  if (!added.empty()) text = counted(added, added.size() == 1 ? "new item" : "new items");
  if (!gone.empty()) text += (text.empty() ? "" : ", ") + counted(gone, "gone");
  return text;
}

std::string change_message(const std::string& name, const std::string& change,
                           const io::TaskText& task) {
  std::string text = "task '" + name + "': " + change + " since the last submission, from ";
  for (const std::string& source : task.item_sources) {
    text.append(&source == &task.item_sources.front() ? "" : ", ").append(source);
  }
  return text;
}

}  // namespace

std::vector<std::string> keep_item_lists(const io::Pipeline& pipeline,
                                         const RunDirectory& directory, io::Files& files) {
  std::vector<std::string> messages;
  std::set<std::string> current;
  size_t changed = 0;
  for (size_t t = 0; t < pipeline.tasks.size(); ++t) {
    if (pipeline.tasks[t].item_sources.empty()) continue;
    const std::string& name = pipeline.graph.task(scheduler::TaskId(t)).name;
    const auto file = directory.items() / name;
    current.insert(name);
    const auto before = files.read(file);
    const std::string now = lines_of(pipeline, scheduler::TaskId(t));
    if (before && *before == now) continue;
    const std::string text = before ? difference(*before, now) : "";
    if (!text.empty() && ++changed <= kTasksShownMax) {
      messages.push_back(change_message(name, text, pipeline.tasks[t]));
    }
    if (!before && before.error().code != ENOENT) messages.push_back(before.error().message);
    if (const Status kept = files.replace(file, now); !kept) {
      messages.push_back(kept.error().message +
                         "; the next submission cannot tell which items are new");
    }
  }
  if (changed > kTasksShownMax) {
    messages.push_back("and " + std::to_string(changed - kTasksShownMax) +
                       " more tasks whose items changed");
  }
  if (const auto names = files.list(directory.items())) {
    for (const std::string& name : *names) {
      if (!current.contains(name)) (void)files.remove(directory.items() / name);
    }
  }
  return messages;
}

}  // namespace sluice::engine
