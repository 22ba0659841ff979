// YAML as the spec needs it: a flat tree of texts with their places. Nothing is guessed: a scalar
// is the text that was typed (`no`, `3.10`, `010`, `null` survive). Duplicate keys, anchors,
// aliases, merge keys, tags, second documents, tabs in the indentation are findings; CR LF and a
// byte-order mark are removed. The only code that knows yaml-cpp is spec_yaml.cpp. Values; one
// thread. Test: tests/io/spec_yaml_test.cpp
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/diagnostic.h"

namespace sluice::io {

using NodeIndex = uint32_t;
constexpr NodeIndex kNoNode = UINT32_MAX;
constexpr std::string_view kMergeKey = "<<";  // refused by the reader; nobody needs to say more

struct YamlNode {
  enum class Kind : uint8_t { kScalar, kList, kMap };
  // kAbsent: nothing was written (`key:`). kBlock: | or >.
  enum class Style : uint8_t { kPlain, kSingleQuoted, kDoubleQuoted, kBlock, kAbsent };
  Kind kind = Kind::kScalar;
  Style style = Style::kPlain;
  Mark mark;
  std::string text;  // kScalar
  std::string key;   // of a value in a map
  Mark key_mark;
  NodeIndex first = kNoNode;  // kList, kMap: first child
  NodeIndex next = kNoNode;   // next child of the same parent
  uint32_t count = 0;         // number of children
};

class YamlTree {
 public:
  [[nodiscard]] const YamlNode& operator[](NodeIndex index) const { return nodes_[index]; }
  [[nodiscard]] NodeIndex root() const { return root_; }
  // Gives `map` the entry, of another map, unless it has that key. `deep`: when both are maps, what
  // it lacks of that. An inherited entry is found and reported where it was written.
  void inherit(NodeIndex map, NodeIndex entry, bool deep);
  [[nodiscard]] const std::string& source() const { return source_; }
  // The children of a list or map, in order.
  [[nodiscard]] std::vector<NodeIndex> children(NodeIndex parent) const;
  // The value of a key of a map, or kNoNode.
  [[nodiscard]] NodeIndex find(NodeIndex map, std::string_view key) const;
  // Where byte `offset` of a scalar's text stands in the source, escapes and folding considered.
  [[nodiscard]] Mark place(NodeIndex scalar, size_t offset) const;
  // Where a comment stands behind a plain scalar on its last line: `run: prog --tag #3`.
  [[nodiscard]] std::optional<Mark> comment_behind(NodeIndex scalar) const;

 private:
  friend class YamlBuilder;
  friend std::optional<YamlTree> read_yaml(std::string source, Diagnostics& diagnostics);
  [[nodiscard]] size_t source_offset(Mark mark) const;
  [[nodiscard]] Mark mark_at(size_t source_offset) const;
  [[nodiscard]] size_t offset_of(NodeIndex scalar, size_t text_offset) const;

  std::string source_;
  std::vector<size_t> line_begins_;
  std::vector<YamlNode> nodes_;
  NodeIndex root_ = kNoNode;
};

// None when the text cannot be read at all; otherwise a tree, perhaps with errors in `diagnostics`.
[[nodiscard]] std::optional<YamlTree> read_yaml(std::string source, Diagnostics& diagnostics);
// Without byte-order mark, CR LF as LF: the lines that diagnostics show.
[[nodiscard]] std::string normalised_source(std::string source);

}  // namespace sluice::io
