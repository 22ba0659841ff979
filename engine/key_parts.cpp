#include "engine/key_parts.h"

#include <map>
#include <utility>

namespace sluice::engine {

namespace {

constexpr size_t kDigits = 6;

void append_digits(std::string& out, uint32_t value) {
  constexpr char kHex[] = "0123456789abcdef";
  for (unsigned i = 0; i < kDigits; ++i) out += kHex[(value >> (20U - 4U * i)) & 15U];
}

std::string part_at(const std::string& digits, size_t index) {
  return index * kDigits < digits.size() ? digits.substr(index * kDigits, kDigits)
                                         : std::string(kDigits, '0');
}

}  // namespace

std::vector<std::string> key_part_names(const io::Pipeline& pipeline, scheduler::TaskId task) {
  const io::TaskText& text = pipeline.tasks[task.index()];
  std::vector<std::string> names = text.key_parts;
  for (const io::TaskInput& input : text.inputs) {
    if (input.join != io::JoinKind::kSource) names.push_back("input " + input.name);
  }
  return names;
}

KeyParts::KeyParts(const io::Pipeline& pipeline, ContentOf content_of)
    : pipeline_(pipeline),
      content_of_(std::move(content_of)),
      groups_(pipeline.graph.group_count(), 0) {}

std::string KeyParts::digits(scheduler::InstanceId instance) {
  const io::TaskText& text = pipeline_.tasks[pipeline_.graph.task_of(instance).index()];
  const size_t width = text.key_parts.size();
  const size_t row = pipeline_.graph.item_of(instance) * width;
  std::string out;
  for (size_t i = 0; i < width; ++i) append_digits(out, text.key_part_hashes[row + i]);
  for (const scheduler::GroupId group : pipeline_.graph.inputs(instance))
    append_digits(out, group_part(group));
  return out;
}

uint32_t KeyParts::group_part(scheduler::GroupId group) {
  uint32_t& part = groups_[group.index()];
  if (part != 0) return part;
  scheduler::Hash128 all{1, 1};
  for (const scheduler::ObjectId object : pipeline_.graph.group_objects(group)) {
    const scheduler::Hash128 content = content_of_(object);
    if (!content.known()) return 0;
    all = combine(all, content);
  }
  part = static_cast<uint32_t>(all.low) & io::kKeyPartMask;
  part += part == 0 ? 1 : 0;
  return part;
}

std::vector<std::string> differing_parts(const std::vector<std::string>& old_names,
                                         const std::string& old_digits,
                                         const std::vector<std::string>& new_names,
                                         const std::string& new_digits) {
  std::map<std::string, std::string> known;
  for (size_t i = 0; i < old_names.size(); ++i) known[old_names[i]] = part_at(old_digits, i);
  std::vector<std::string> differing;
  const std::string nothing(kDigits, '0');
  for (size_t i = 0; i < new_names.size(); ++i) {
    const std::string now = part_at(new_digits, i);
    const auto before = known.find(new_names[i]);
    if ((before == known.end() ? nothing : before->second) != now)
      differing.push_back(new_names[i]);
    if (before != known.end()) known.erase(before);
  }
  for (const std::string& name : old_names) {
    const auto gone = known.find(name);
    if (gone != known.end() && gone->second != nothing) differing.push_back(name);
  }
  return differing;
}

}  // namespace sluice::engine
