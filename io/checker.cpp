#include "io/checker.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/manifest.h"
#include "io/sources.h"
#include "io/tier.h"

namespace sluice::io {

using scheduler::OutputKind;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kValueBytesMax = size_t{64} << 10U;
constexpr int kListDepthMax = 64;

constexpr const char* kKindNames[] = {"file", "h5", "value", "dir"};
constexpr const char* kView = "view";
constexpr const char* kGatherNames[] = {"none", "concat", "stack"};
constexpr const char* kTypeNames[] = {"int", "float", "bool", "string", "list"};

template <class Enum, size_t N>
bool from_name(const char* const (&names)[N], const std::string& name, Enum& value) {
  const auto* found = std::find(std::begin(names), std::end(names), name);
  value = static_cast<Enum>(found - std::begin(names));
  return found != std::end(names);
}

// Length of the UTF-8 sequence at the front of `text`, 0 if there is none (overlong forms,
// surrogates and numbers above U+10FFFF are none).
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool bad = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                   (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return bad ? 0 : length;
}

// The first byte that is not part of valid UTF-8, or npos.
size_t find_bad_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

std::string dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xFU];
  }
  return text;
}

bool from_hex_bytes(std::string_view text, std::string& bytes) {
  bytes.clear();
  if (text.size() % 2 != 0) return false;
  for (size_t i = 0; i < text.size(); i += 2) {
    unsigned value = 0;
    const char* last = text.data() + i + 2;
    const auto [end, error] = std::from_chars(text.data() + i, last, value, 16);
    if (error != std::errc() || end != last) return false;
    bytes += static_cast<char>(value);
  }
  return true;
}

template <class T>
bool get(const json& object, const char* name, T& value) {
  const auto found = object.find(name);
  if (found == object.end()) return false;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!found->is_string()) return false;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!found->is_boolean()) return false;
  } else {
    // A number that does not fit is as wrong as a text: it would become another one.
    if (!found->is_number_integer()) return false;
    if (found->is_number_unsigned() ? !std::in_range<T>(found->template get<uint64_t>())
                                    : !std::in_range<T>(found->template get<int64_t>())) {
      return false;
    }
  }
  value = found->template get<T>();
  return true;
}

// A pair of numbers.
template <class T>
bool get_pair(const json& object, const char* name, T& first, T& second) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array() || found->size() != 2) return false;
  const json both = {{"first", (*found)[0]}, {"second", (*found)[1]}};
  return get(both, "first", first) && get(both, "second", second);
}

Error not_understood(const char* what, std::string_view text) {
  return {std::string("the ") + what + " of a check makes no sense: " + shortened(text)};
}

// -- values

std::string_view trim_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

Error wrong_value(std::string_view text, const std::string& expected) {
  if (text.empty()) return {"the file is empty; expected " + expected};
  return {"found " + shortened(text) + "; expected " + expected};
}

Expected<std::string> check_int(std::string_view text) {
  const std::string expected =
      "an int: decimal digits, from -9223372036854775808 to 9223372036854775807";
  std::string_view digits = trim_blanks(text);
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return wrong_value(text, expected);
  }
  return std::string(digits);
}

Expected<std::string> check_float(std::string_view text) {
  std::string_view digits = trim_blanks(text);
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  double value = 0;
  const char* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  const bool whole = end == last && !digits.empty() && error != std::errc::invalid_argument;
  if (!whole || digits.back() == ')') {  // nan(…) has a payload that no one else reads
    return wrong_value(text, "a float, such as 0.5, -1e-3, inf or nan");
  }
  std::string found(digits);
  if (error == std::errc::result_out_of_range && std::isinf(std::strtod(found.c_str(), nullptr))) {
    return wrong_value(text, "a float of at most 1.7976931348623157e308");
  }
  return found;
}

Expected<std::string> check_bool(std::string_view text) {
  const std::string_view word = trim_blanks(text);
  if (word == "true" || word == "false") return std::string(word);
  return wrong_value(text, "a bool: true or false");
}

// Brackets outside strings, counted: a reader's stack must not depend on a user's file.
int list_depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == '{')) {
      deepest = std::max(deepest, ++depth);
    } else if (!in_string && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return deepest;
}

Expected<std::string> check_list(std::string_view text) {
  const std::string expected = "a JSON array, such as [1, 2.5, \"a\"]";
  if (list_depth(text) > kListDepthMax) {
    return wrong_value(
        text, expected + ", nested at most " + std::to_string(kListDepthMax) + " levels deep");
  }
  const json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_array()) return wrong_value(text, expected);
  return std::string(text);
}

Expected<std::string> read_value(const fs::path& path) {
  const Expected<FileDescriptor> file = open_file(path, O_RDONLY);
  if (!file) return file.error();
  std::string text(kValueBytesMax + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file->get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("read", path, errno);
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  return text;
}

// -- files

// The output as it is found: an Error unless it is of the kind that was declared.
Expected<struct stat> look_at(const fs::path& path, OutputKind kind) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return system_error("look at", path, errno);
    return Error{(kind == OutputKind::kDir ? "no directory '" : "no file '") +
                     path.filename().string() + "' in the directory; " +
                     what_a_folder_holds(path.parent_path()),
                 ENOENT};
  }
  const bool right = kind == OutputKind::kDir ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode);
  if (!right) return Error{wrong_kind_of_output(path, kind)};
  return info;
}

Status fill_value(const CheckRequest& request, CheckReply& reply) {
  const Expected<std::string> text = read_value(request.path);
  if (!text) return text.error();
  Expected<std::string> value = check_value_text(*text, request.value_type);
  if (!value) {
    return Error{"'" + fs::path(request.path).filename().string() + "': " + value.error().message};
  }
  reply.value = std::move(*value);
  return Done{};
}

Status fill_directory(const CheckRequest& request, const std::function<void()>& progress,
                      CheckReply& reply) {
  const Expected<Manifest> manifest = scan_tree(request.path);
  if (!manifest) return manifest.error();
  const Expected<scheduler::Hash128> content = hash_tree(request.path, *manifest, progress);
  if (!content) return content.error();
  reply.bytes = manifest->bytes;
  reply.content = *content;
  return Done{};
}

Status fill(const CheckRequest& request, const std::function<void()>& progress, CheckReply& reply) {
  const Expected<struct stat> info = look_at(request.path, request.kind);
  if (!info) return info.error();
  reply.mode = info->st_mode & 07777U;
  if (request.kind == OutputKind::kDir) return fill_directory(request, progress, reply);
  reply.bytes = info->st_size;
  if (request.kind == OutputKind::kValue) {
    const Status value = fill_value(request, reply);
    if (!value) return value;
  }
  const Expected<scheduler::Hash128> content = hash_file(request.path);
  if (!content) return content.error();
  reply.content = *content;
  return Done{};
}

// A text under its name, or, if it is not UTF-8, as hex digits under its name with "_hex" behind
// it.
void put_text(json& object, const std::string& name, const std::string& text) {
  if (find_bad_utf8(text) == std::string_view::npos) {
    object[name] = text;
  } else {
    object[name + "_hex"] = hex(text);
  }
}

bool get_text(const json& object, const std::string& name, std::string& text) {
  std::string digits;
  return get(object, name.c_str(), text) ||
         (get(object, (name + "_hex").c_str(), digits) && from_hex_bytes(digits, text));
}

bool get_path(const json& object, const std::string& name, std::string& path) {
  return get_text(object, name, path) && !path.empty() && path.find('\0') == std::string::npos;
}

bool get_view(const json& object, CheckRequest& request) {
  H5View& view = request.view;
  std::string gather;
  return get_path(object, "sources", request.sources) &&
         get_text(object, "dataset", view.dataset) &&
         get_pair(object, "rows", view.first_row, view.end_row) &&
         get_pair(object, "shard", view.shard, view.shards) && get(object, "gather", gather) &&
         from_name(kGatherNames, gather, view.gather) && view.first_row >= 0 &&
         (view.end_row == H5View::kAllRows || view.end_row >= view.first_row) &&
         (view.shards == 0 ? view.shard == 0 : view.shard < view.shards);
}

}  // namespace

std::string encode(const CheckRequest& request) {
  json object = {{"id", request.id}};
  put_text(object, "path", request.path);
  if (request.sources.empty()) {
    object["kind"] = kKindNames[static_cast<size_t>(request.kind)];
    object["type"] = kTypeNames[static_cast<size_t>(request.value_type)];
    return dump(object);
  }
  const H5View& view = request.view;
  object["kind"] = kView;
  put_text(object, "sources", request.sources);
  put_text(object, "dataset", view.dataset);
  object["rows"] = {view.first_row, view.end_row};
  object["shard"] = {view.shard, view.shards};
  object["gather"] = kGatherNames[static_cast<size_t>(view.gather)];
  return dump(object);
}

std::string encode(const CheckReply& reply) {
  if (reply.crashed_signal != 0) {
    return dump({{"id", reply.id}, {"crashed", reply.crashed_signal}});
  }
  if (reply.busy) return dump({{"id", reply.id}, {"busy", true}});
  if (!reply.ok) return dump({{"id", reply.id}, {"ok", false}, {"error", reply.error}});
  return dump({{"id", reply.id},
               {"ok", true},
               {"bytes", reply.bytes},
               {"content", to_hex(reply.content)},
               {"value", reply.value},
               {"mode", reply.mode},
               {"description", reply.description}});
}

Expected<CheckRequest> decode_check_request(std::string_view text) {
  const json object = json::parse(text, nullptr, false);
  CheckRequest request;
  std::string kind;
  std::string type;
  if (!object.is_object() || !get(object, "id", request.id) || !get(object, "kind", kind) ||
      !get_path(object, "path", request.path)) {
    return not_understood("request", text);
  }
  const bool is_view = kind == kView;
  const bool understood = is_view ? get_view(object, request)
                                  : get(object, "type", type) &&
                                        from_name(kKindNames, kind, request.kind) &&
                                        from_name(kTypeNames, type, request.value_type);
  if (!understood) return not_understood("request", text);
  return request;
}

Expected<CheckReply> decode_check_reply(std::string_view text) {
  const json object = json::parse(text, nullptr, false);
  CheckReply reply;
  if (!object.is_object() || !get(object, "id", reply.id)) return not_understood("reply", text);
  if (get(object, "crashed", reply.crashed_signal)) {
    return reply.crashed_signal > 0 ? Expected<CheckReply>(reply) : not_understood("reply", text);
  }
  if (get(object, "busy", reply.busy) && reply.busy) return reply;
  std::string content;
  if (!get(object, "ok", reply.ok)) return not_understood("reply", text);
  if (!reply.ok) {
    if (!get(object, "error", reply.error)) return not_understood("reply", text);
    return reply;
  }
  if (!get(object, "bytes", reply.bytes) || !get(object, "content", content) ||
      !get(object, "value", reply.value) || !get(object, "mode", reply.mode) ||
      !get(object, "description", reply.description) || reply.bytes < 0 || reply.mode > 07777) {
    return not_understood("reply", text);
  }
  const Expected<scheduler::Hash128> hash = from_hex(content);
  if (!hash) return hash.error();
  reply.content = *hash;
  return reply;
}

CheckReply check_plain(const CheckRequest& request, const std::function<void()>& progress) {
  CheckReply reply;
  reply.id = request.id;
  const Status filled = fill(request, progress, reply);
  reply.ok = filled.ok();
  if (!filled) reply.error = filled.error().message;
  return reply;
}

std::string wrong_kind_of_output(const fs::path& path, OutputKind expected) {
  const std::string name = path.filename().string();
  std::error_code ignored;
  const fs::file_type found = fs::symlink_status(path, ignored).type();
  const std::string text = "'" + name + "' is " + kind_of_file(path) + "; expected ";
  if (expected == OutputKind::kDir) {
    return text + "a directory: " +
           (found == fs::file_type::regular
                ? "if a file is meant, declare the output as {file: " + name + "}"
                : "make one there and write into it");
  }
  return text + "a regular file: " +
         (found == fs::file_type::directory
              ? "if a directory is meant, declare the output as {dir: " + name + "}"
              : "write or copy the bytes there");
}

Expected<std::string> check_value_text(std::string_view text, ValueType type) {
  if (text.size() > kValueBytesMax) {
    return Error{"the file has more than " + std::to_string(kValueBytesMax) +
                 " bytes; a value has at most that: declare the output as a file"};
  }
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  size_t bad = find_bad_utf8(text);
  if (bad == std::string_view::npos) bad = text.find('\0');
  if (bad != std::string_view::npos) {
    return Error{"byte " + std::to_string(bad + 1) + " is 0x" + hex(text.substr(bad, 1)) +
                 "; a value is UTF-8 text without NUL: declare the output as a file"};
  }
  switch (type) {
    case ValueType::kInt:
      return check_int(text);
    case ValueType::kFloat:
      return check_float(text);
    case ValueType::kBool:
      return check_bool(text);
    case ValueType::kList:
      return check_list(text);
    case ValueType::kString:
      break;
  }
  return std::string(text);
}

std::string value_to_json(std::string_view text, ValueType type) {
  if (type == ValueType::kString) return dump(json(std::string(text)));
  std::string line(text);
  if (type == ValueType::kInt || type == ValueType::kFloat) {
    if (json::accept(line)) return line;
    const double value = std::strtod(line.c_str(), nullptr);
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    // 007 or .5: right as a number, but not JSON's way of writing it.
    return type == ValueType::kInt ? std::to_string(std::strtoll(line.c_str(), nullptr, 10))
                                   : dump(json(value));
  }
  // A line break inside a JSON array is only white space: inside its strings there can be none.
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::replace(line.begin(), line.end(), '\r', ' ');
  return line;
}

std::string shortened(std::string_view text) {
  constexpr size_t kBytesMax = 60;
  std::string shown = "'";
  size_t i = 0;
  while (i < text.size() && shown.size() <= kBytesMax) {
    const size_t length = utf8_length(text.substr(i));
    const std::string_view piece = text.substr(i, std::max<size_t>(length, 1));
    const bool printable = length > 1 || (piece[0] >= ' ' && piece[0] < 0x7F);
    shown += length != 0 && printable ? std::string(piece)
             : piece[0] == '\n'       ? "\\n"
             : piece[0] == '\t'       ? "\\t"
                                      : "\\x" + hex(piece);
    i += piece.size();
  }
  return shown + (i < text.size() ? "…'" : "'");
}

}  // namespace sluice::io
