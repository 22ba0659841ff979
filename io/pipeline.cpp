#include "io/pipeline.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>

#include "io/pipeline_hidden.h"
#include "io/sources.h"

namespace sluice::io {

namespace {

constexpr size_t kFileNameBytesMax = 200;
constexpr uint32_t kBucketSize = 1000;
constexpr size_t kNameHashDigits = 16;

std::string encoded_item(const TaskText& task, uint32_t item, std::string_view allowed) {
  std::string text;
  for (size_t k = 0; k < task.keys.size(); ++k) {
    text +=
        (k == 0 ? "" : ",") + task.keys[k] + "=" + percent_encoded(task.items[item][k], allowed);
  }
  return text;
}

// Printable ASCII but for what separates items: labels stay readable.
std::string readable_characters() {
  std::string allowed;
  for (char c = ' '; c < 0x7F; ++c) {
    if (std::string_view("%,=[]").find(c) == std::string_view::npos) {
      allowed += c;
    }
  }
  for (int c = 0x80; c < 0x100; ++c) {  // UTF-8
    allowed += static_cast<char>(c);
  }
  return allowed;
}

std::string shortened(const std::string& item, const std::string& file) {
  const std::string name = item + "." + file;
  if (name.size() <= kFileNameBytesMax) {
    return name;
  }
  const std::string hash = to_hex(hash_text(item)).substr(0, kNameHashDigits);
  const size_t tail = 1 + hash.size() + 1 + file.size();
  const size_t kept = kFileNameBytesMax > tail ? kFileNameBytesMax - tail : 0;
  return item.substr(0, kept) + "~" + hash + "." + file;
}

std::string path_below(const Pipeline& pipeline, const char* top, scheduler::ObjectId object) {
  const scheduler::InstanceId instance = pipeline.graph.producer(object);
  const scheduler::TaskId task = pipeline.graph.task_of(instance);
  const TaskText& text = pipeline.tasks[task.index()];
  const std::string& file = text.outputs[pipeline.graph.output_index(object)].file_name;
  const std::string folder = std::string(top) + "/" + pipeline.graph.task(task).name + "/";
  if (text.keys.empty()) {
    return folder + file;
  }
  const uint32_t item = pipeline.graph.item_of(instance);
  std::string bucket;
  if (text.items.size() > kBucketSize) {
    std::array<char, 16> number{};
    std::snprintf(number.data(), number.size(), "%05u/", item / kBucketSize);
    bucket = number.data();
  }
  return folder + bucket + shortened(encoded_item(text, item, ""), file);
}

}  // namespace

Pipeline::Pipeline() : hidden(std::make_unique<Hidden>()) {}
Pipeline::~Pipeline() = default;
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;

std::string Pipeline::label(scheduler::InstanceId instance) const {
  const scheduler::TaskId task = graph.task_of(instance);
  const std::string text = item(instance);
  const std::string& task_name = graph.task(task).name;
  return text.empty() ? task_name : task_name + "[" + text + "]";
}

std::string Pipeline::item(scheduler::InstanceId instance) const {
  return item_text(tasks[graph.task_of(instance).index()], graph.item_of(instance));
}

scheduler::InstanceId Pipeline::find(const std::string& task, const std::string& item) const {
  const auto id = hidden->task_ids.find(task);
  if (id == hidden->task_ids.end()) {
    return {};
  }
  const auto index = hidden->tasks[id->second.index()].item_index.find(item);
  return index ? graph.instance(id->second, *index) : scheduler::InstanceId();
}

ItemIndex::ItemIndex(const TaskText& task) {
  sorted_.reserve(task.items.size());
  for (uint32_t i = 0; i < task.items.size(); ++i) {
    sorted_.emplace_back(hash_text(item_text(task, i)), i);
  }
  std::sort(sorted_.begin(), sorted_.end());
}

std::optional<uint32_t> ItemIndex::find(const std::string& item) const {
  const scheduler::Hash128 hash = hash_text(item);
  const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), std::pair(hash, uint32_t{0}));
  return found != sorted_.end() && found->first == hash ? std::optional(found->second)
                                                        : std::nullopt;
}

std::string Pipeline::result_path(scheduler::ObjectId object) const {
  return path_below(*this, "results", object);
}

std::string Pipeline::saved_path(scheduler::ObjectId object) const {
  return path_below(*this, "objects", object);
}

std::string item_text(const TaskText& task, uint32_t item) {
  static const std::string kReadable = readable_characters();
  return encoded_item(task, item, kReadable);
}

std::string percent_encoded(std::string_view text, std::string_view more) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte < 0x80 && (std::isalnum(byte) != 0 || c == '.' || c == '_' || c == '+' || c == '-');
    if (plain || more.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4U];
      out += kDigits[byte & 0xFU];
    }
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  constexpr int kBase = 16;
  constexpr size_t kDigits = 2;
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    int byte = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '%' && i + kDigits < text.size() &&
        std::from_chars(digits, digits + kDigits, byte, kBase).ptr == digits + kDigits) {
      out += static_cast<char>(byte);
      i += kDigits;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string list_text(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& text : items) {
    out += (out.size() == 1 ? "" : ", ") + text;
  }
  return out + "]";
}

std::filesystem::path in_folder(const std::filesystem::path& folder, const std::string& text) {
  return (folder / text).lexically_normal();
}

bool is_folder_program(std::string_view first_word) {
  return !first_word.empty() && first_word[0] != '/' &&
         first_word.find('/') != std::string_view::npos;
}

}  // namespace sluice::io
