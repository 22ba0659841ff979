#include "io/spec_json_schema.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "io/spec_schema.h"

namespace sluice::io {

namespace {

using Json = nlohmann::ordered_json;

// ---- patterns: for texts only, so they may stand beside a number's bounds ----
constexpr const char* kName = "^[a-zA-Z][a-zA-Z0-9_]*$";
constexpr const char* kNote = "^x-";
constexpr const char* kVariable = "^[a-zA-Z_][a-zA-Z0-9_]*$";
constexpr const char* kReference = R"(^[a-zA-Z][a-zA-Z0-9_]*\.[a-zA-Z][a-zA-Z0-9_]*$)";
constexpr const char* kFileName = R"(^(?!\.{1,2}$)(?!.*\$\{\{)[^/\x00-\x1f\x7f]+$)";
constexpr const char* kInteger = "^[+-]?[0-9]+$";
constexpr const char* kCount = R"(^\+?0*[1-9][0-9]{0,5}$)";
constexpr const char* kRetries = R"(^\+?0*([1-9][0-9]?|100)$)";
constexpr const char* kStatus = R"(^\+?0*([1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$)";
constexpr const char* kAmount = R"(^(?=.*[1-9])([0-9]+(\.[0-9]{0,4})?|\.[0-9]{1,4})$)";
constexpr const char* kFactor = R"(^x[0-9]*\.?[0-9]+$)";
constexpr const char* kDuration =
    "^(?=.*[1-9])([0-9]+:[0-5][0-9]:[0-5][0-9]"
    "|(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$";
constexpr const char* kMemory =
    R"(^(?=.*[1-9])([0-9]+\.?[0-9]*|\.[0-9]+)(B|KB|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$)";

// Where `${{ }}` is replaced before the value is looked at.
bool substituted(Level level) { return level != Level::kParam && level != Level::kOutput; }

std::string or_expression(const std::string& pattern) { return pattern + R"(|\$\{\{)"; }

Json of_types(std::vector<const char*> types) {
  Json schema;
  schema["type"] = types.size() == 1 ? Json(types[0]) : Json(types);
  return schema;
}

Json text() { return of_types({"string", "number", "boolean"}); }

Json text_like(const std::string& pattern) {
  Json schema = of_types({"string"});
  schema["pattern"] = pattern;
  return schema;
}

Json list_of(Json item) {
  Json schema = of_types({"array"});
  schema["items"] = std::move(item);
  return schema;
}

// A number, or a text that is one, or an expression.
Json integer(int64_t least, int64_t most, const char* pattern) {
  Json schema = of_types({"integer", "string"});
  schema["minimum"] = least;
  schema["maximum"] = most;
  schema["pattern"] = or_expression(pattern);
  return schema;
}

Json amount() {
  Json schema = of_types({"number", "string"});
  schema["exclusiveMinimum"] = 0;
  schema["pattern"] = or_expression(kAmount);
  return schema;
}

// A map with names of the user's.
Json map_of(Json value, const std::string& names = kName) {
  Json schema = of_types({"object"});
  schema["patternProperties"][names] = std::move(value);
  schema["patternProperties"][kNote] = true;
  schema["additionalProperties"] = false;
  return schema;
}

Json definition(const char* name) { return {{"$ref", std::string("#/$defs/") + name}}; }

// "stop, continue or ignore": its words.
std::vector<std::string> words_of(std::string_view type) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty() && word != "or") {
      words.push_back(word);
    }
    word.clear();
  };
  for (const char c : type) {
    if (c == ' ' || c == ',') {
      end_word();
    } else {
      word += c;
    }
  }
  end_word();
  return words;
}

Json choice(const KeyRule& rule) {
  Json words = Json::array();
  for (const std::string& word : words_of(rule.type)) {
    words.push_back(word);
    if (word == "true" || word == "false") {
      words.push_back(word == "true");
    }
  }
  if (!substituted(rule.level)) {
    return {{"enum", words}};
  }
  return {{"anyOf", Json::array({Json{{"enum", words}}, text_like(R"(\$\{\{)")})}};
}

Json range() {
  Json schema = list_of(text());
  schema["minItems"] = 2;
  schema["maxItems"] = 3;
  return schema;
}

Json rows() {
  Json schema = list_of(integer(0, std::numeric_limits<int64_t>::max(), kInteger));
  schema["minItems"] = 2;
  schema["maxItems"] = 2;
  return schema;
}

Json command() {
  Json schema = of_types({"string", "number", "boolean", "array"});
  schema["items"] = text();
  return schema;
}

Json join() {
  Json schema = of_types({"string", "array"});
  schema["pattern"] = "^all$";
  schema["items"] = text_like(kName);
  return schema;
}

Json statuses() {
  Json schema = list_of(integer(1, 255, kStatus));
  schema["minItems"] = 1;
  return schema;
}

Json tasks() {
  Json schema = map_of(definition("task"));
  schema["minProperties"] = 1;
  return schema;
}

// The key of a retry cause that a key is only for: "only for `exit`: ...". Empty: for all.
std::string_view only_for(const KeyRule& rule) {
  constexpr std::string_view kOnly = "only for `";
  if (rule.meaning.substr(0, kOnly.size()) != kOnly) {
    return "";
  }
  const std::string_view rest = rule.meaning.substr(kOnly.size());
  return rest.substr(0, rest.find('`'));
}

Json cause(std::string_view name) {
  Json schema = definition("cause");
  Json refused = Json::array();
  for (const KeyRule& rule : key_rules()) {
    if (rule.level == Level::kRetryCause && rule.supported && !only_for(rule).empty() &&
        only_for(rule) != name) {
      refused.push_back({{"required", Json::array({rule.key})}});
    }
  }
  if (!refused.empty()) {
    schema["not"] = {{"anyOf", std::move(refused)}};
  }
  return schema;
}

Json number_of(const KeyRule& rule) {
  switch (rule.shape) {
    case Shape::kCount:
      return integer(1, 100'000, kCount);
    case Shape::kRetries:
      return integer(1, 100, kRetries);
    case Shape::kAmount:
      return amount();
    default:
      return integer(-1'000'000, 1'000'000, kInteger);
  }
}

Json text_of(const KeyRule& rule) {
  const auto patterned = [&](const char* pattern) {
    return text_like(substituted(rule.level) ? or_expression(pattern) : pattern);
  };
  switch (rule.shape) {
    case Shape::kName:
      return patterned(kName);
    case Shape::kReference:
      return patterned(kReference);
    case Shape::kFactor:
      return patterned(kFactor);
    case Shape::kDuration:
      return patterned(kDuration);
    case Shape::kMemory:
      return patterned(kMemory);
    case Shape::kFileName: {
      Json schema = text();  // `file: 3` is a name too
      schema["pattern"] = kFileName;
      schema["maxLength"] = 150;
      return schema;
    }
    case Shape::kScript: {
      Json schema = text();
      schema["pattern"] = R"(^(?![\s\S]*\$\{\{)(?=[\s\S]*\S))";
      return schema;
    }
    default:
      return text();
  }
}

// The maps whose keys are rows of the table.
Json level_of(const KeyRule& rule) {
  switch (rule.shape) {
    case Shape::kParams:
      return map_of(definition("param"));
    case Shape::kLimits:
      return map_of(amount());
    case Shape::kTasks:
      return tasks();
    case Shape::kInputs:
      return map_of(definition("input"));
    case Shape::kOutputs:
      return map_of(definition("output"));
    case Shape::kCause:
      return cause(rule.key);
    case Shape::kDefaults:
      return definition("defaults");
    case Shape::kForeach:
      return definition("foreach");
    case Shape::kResources:
      return definition("resources");
    default:
      return definition("retry");
  }
}

Json value_of(const KeyRule& rule) {
  switch (rule.shape) {
    case Shape::kAnything:
      return Json::object();
    case Shape::kVersion:
      return {{"enum", Json::array({1, "1"})}};
    case Shape::kChoice:
      return choice(rule);
    case Shape::kInteger:
    case Shape::kCount:
    case Shape::kRetries:
    case Shape::kAmount:
      return number_of(rule);
    case Shape::kStatuses:
      return statuses();
    case Shape::kRange:
      return range();
    case Shape::kRows:
      return rows();
    case Shape::kList:
      return of_types({"array"});
    case Shape::kTexts:
      return list_of(text());
    case Shape::kCommand:
      return command();
    case Shape::kEnvironment:
      return map_of(text(), kVariable);
    case Shape::kCases:
      return list_of(map_of(text()));
    case Shape::kJoin:
      return join();
    case Shape::kText:
    case Shape::kScript:
    case Shape::kName:
    case Shape::kFileName:
    case Shape::kReference:
    case Shape::kFactor:
    case Shape::kDuration:
    case Shape::kMemory:
      return text_of(rule);
    default:
      return level_of(rule);
  }
}

Json described(const KeyRule& rule) {
  Json schema = value_of(rule);
  std::string description(rule.meaning);
  if (rule.fallback == "required") {
    description += "; required";
  } else {
    description.append("; without it: ").append(rule.fallback);
  }
  schema["description"] = std::move(description);
  return schema;
}

// ---- levels ----

std::vector<const KeyRule*> supported_rules(Level level) {
  std::vector<const KeyRule*> rules;
  for (const KeyRule& rule : key_rules()) {
    if (rule.level == level && rule.supported) {
      rules.push_back(&rule);
    }
  }
  return rules;
}

// Keys of which one must be there: those whose `fallback` says so ("`run` or `sh` is required").
std::vector<std::string> alternatives(Level level) {
  constexpr std::string_view kEnd = "is required";
  std::vector<std::string> keys;
  for (const KeyRule* rule : supported_rules(level)) {
    const std::string_view text = rule->fallback;
    if (text.size() > kEnd.size() && text.substr(text.size() - kEnd.size()) == kEnd) {
      keys.emplace_back(rule->key);
    }
  }
  return keys;
}

Json any_required(const std::vector<std::string>& keys) {
  Json all = Json::array();
  for (const std::string& key : keys) {
    all.push_back({{"required", Json::array({key})}});
  }
  return {{"anyOf", std::move(all)}};
}

// Exactly one, but that `file` may stand beside `value` in an output.
Json one_of(const std::vector<std::string>& keys) {
  Json all = Json::array();
  for (const std::string& key : keys) {
    std::vector<std::string> others;
    for (const std::string& other : keys) {
      if (other != key && !(key == "value" && other == "file")) {
        others.push_back(other);
      }
    }
    all.push_back(
        {{"type", "object"}, {"required", Json::array({key})}, {"not", any_required(others)}});
  }
  return all;
}

Json level(Level level) {
  Json schema = of_types({"object"});
  Json required = Json::array();
  for (const KeyRule* rule : supported_rules(level)) {
    schema["properties"][std::string(rule->key)] = described(*rule);
    if (rule->fallback == "required") {
      required.push_back(rule->key);
    }
  }
  schema["patternProperties"][kNote] = true;
  schema["additionalProperties"] = false;
  if (!required.empty()) {
    schema["required"] = std::move(required);
  }
  if (const auto keys = alternatives(level); !keys.empty()) {
    schema["oneOf"] = one_of(keys);
  }
  return schema;
}

// `task.output` for short.
Json input() {
  Json schema = level(Level::kInput);
  schema["type"] = Json::array({"object", "string"});
  schema["pattern"] = or_expression(kReference);
  schema["oneOf"].push_back(of_types({"string"}));
  return schema;
}

Json foreach_value() {
  Json schema = level(Level::kForeachValue);
  schema["type"] = Json::array({"array", "string", "object"});
  schema["items"] = text();
  schema["pattern"] = R"(\$\{\{)";
  schema["minProperties"] = 1;
  return schema;
}

// Names of the user's that stand beside the words of a level.
std::string names_beside(Level level) {
  std::string words;
  for (const KeyRule& rule : key_rules()) {
    if (rule.level == level) {
      words.append(words.empty() ? "" : "|").append(rule.key);
    }
  }
  return "^(?!(" + words + ")$)" + (kName + 1);
}

Json foreach_map_or_cases() {
  Json schema = level(Level::kForeach);
  schema["type"] = Json::array({"object", "array"});
  schema["patternProperties"][names_beside(Level::kForeach)] = definition("foreach_value");
  schema["minProperties"] = 1;
  schema["items"] = map_of(text(), names_beside(Level::kForeach));
  schema["minItems"] = 1;
  return schema;
}

// Beside the table: what the spec declares under `limits`.
Json resources() {
  Json schema = level(Level::kResources);
  schema["patternProperties"][names_beside(Level::kResources)] = amount();
  return schema;
}

// The default's type follows the param's.
Json param() {
  Json schema = level(Level::kParam);
  Json number = of_types({"number", "string"});
  number["pattern"] = R"(^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$)";
  Json whole = of_types({"integer", "string"});
  whole["pattern"] = kInteger;
  const std::vector<std::pair<const char*, Json>> types = {
      {"int", whole},
      {"float", number},
      {"bool", {{"enum", Json::array({true, false, "true", "false"})}}},
      {"string", text()},
      {"path", text()},
      {"list", list_of(text())}};
  for (const auto& [name, value] : types) {
    Json condition = {{"properties", {{"type", {{"const", name}}}}}, {"required", {"type"}}};
    schema["allOf"].push_back(
        {{"if", std::move(condition)}, {"then", {{"properties", {{"default", value}}}}}});
  }
  return schema;
}

// Any key of a task; none is needed.
Json defaults() {
  Json schema = level(Level::kTask);
  schema.erase("oneOf");
  return schema;
}

}  // namespace

std::string spec_json_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "a pipeline of Sluice"}};
  schema.update(level(Level::kTop));
  Json& definitions = schema["$defs"];
  definitions["param"] = param();
  definitions["task"] = level(Level::kTask);
  if (find_rule(Level::kTop, "defaults")->supported) {
    definitions["defaults"] = defaults();
  }
  definitions["foreach"] = foreach_map_or_cases();
  definitions["foreach_value"] = foreach_value();
  definitions["input"] = input();
  definitions["output"] = level(Level::kOutput);
  definitions["resources"] = resources();
  definitions["retry"] = level(Level::kRetry);
  definitions["cause"] = level(Level::kRetryCause);
  return schema.dump(2) + "\n";
}

}  // namespace sluice::io
