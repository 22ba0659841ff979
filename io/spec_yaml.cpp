#include "io/spec_yaml.h"

#include "io/spec_syntax.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

namespace sluice::io {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

Mark to_mark(const YAML::Mark& mark) {
  return {static_cast<uint32_t>(mark.line + 1), static_cast<uint32_t>(mark.column + 1)};
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_space(char c) { return is_blank(c) || c == '\n'; }

// Length of the null word at the beginning of `text` ("~", "null", ...), 0 if there is none.
size_t null_word(std::string_view text) {
  for (const std::string_view word : {"~", "null", "Null", "NULL"}) {
    if (text.substr(0, word.size()) == word) {
      return word.size();
    }
  }
  return 0;
}

// The first byte that does not belong to UTF-8 text, or npos.
size_t bad_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xC2 && lead < 0xE0 ? 2
                          : lead >= 0xE0 && lead < 0xF0 ? 3
                          : lead >= 0xF0 && lead < 0xF5 ? 4
                                                        : 0;
    if (length == 0 || i + length > text.size()) {
      return i;
    }
    for (size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0U) != 0x80U) {
        return i;
      }
    }
    i += length;
  }
  return std::string_view::npos;
}

// An escape of a double-quoted text.
struct Escape {
  size_t source_bytes = 0;  // with the backslash
  size_t text_bytes = 0;    // of what it stands for
};

size_t utf8_bytes(uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

// `source` begins with a backslash.
Escape read_escape(std::string_view source) {
  const char kind = source.size() > 1 ? source[1] : ' ';
  const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
  if (digits > 0) {
    uint32_t code = 0;
    for (const char c : source.substr(2, digits)) {
      const auto digit = static_cast<uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
      code = code * 16 + digit;
    }
    return {2 + digits, utf8_bytes(code)};
  }
  if (kind == '\n') {  // the line goes on: its indentation does not count
    return {std::min(source.find_first_not_of(" \t", 2), source.size()), 0};
  }
  if (kind == 'N' || kind == '_') {
    return {2, 2};
  }
  return {2, kind == 'L' || kind == 'P' ? size_t{3} : size_t{1}};
}

}  // namespace

std::vector<NodeIndex> YamlTree::children(NodeIndex parent) const {
  std::vector<NodeIndex> out;
  out.reserve(nodes_[parent].count);
  for (NodeIndex i = nodes_[parent].first; i != kNoNode; i = nodes_[i].next) {
    out.push_back(i);
  }
  return out;
}

NodeIndex YamlTree::find(NodeIndex map, std::string_view key) const {
  if (nodes_[map].kind != YamlNode::Kind::kMap) {
    return kNoNode;
  }
  for (NodeIndex i = nodes_[map].first; i != kNoNode; i = nodes_[i].next) {
    if (nodes_[i].key == key) {
      return i;
    }
  }
  return kNoNode;
}

void YamlTree::inherit(NodeIndex map, NodeIndex entry, bool deep) {
  const NodeIndex own = find(map, nodes_[entry].key);
  if (own == kNoNode) {
    const auto copy = static_cast<NodeIndex>(nodes_.size());
    nodes_.push_back(YamlNode(nodes_[entry]));  // its children are shared
    nodes_[copy].next = kNoNode;
    const std::vector<NodeIndex> others = children(map);
    (others.empty() ? nodes_[map].first : nodes_[others.back()].next) = copy;
    ++nodes_[map].count;
  } else if (deep && nodes_[own].kind == YamlNode::Kind::kMap &&
             nodes_[entry].kind == YamlNode::Kind::kMap) {
    for (const NodeIndex child : children(entry)) {
      inherit(own, child, false);
    }
  }
}

size_t YamlTree::source_offset(Mark mark) const {
  if (mark.line == 0 || mark.line > line_begins_.size()) {
    return source_.size();
  }
  return std::min(line_begins_[mark.line - 1] + mark.column - 1, source_.size());
}

Mark YamlTree::mark_at(size_t source_offset) const {
  const auto after = std::upper_bound(line_begins_.begin(), line_begins_.end(), source_offset);
  const auto line = static_cast<size_t>(after - line_begins_.begin());
  return {static_cast<uint32_t>(line),
          static_cast<uint32_t>(source_offset - line_begins_[line - 1] + 1)};
}

// Walks text and source together: white space of the source that the text lacks is skipped
// (indentation, folding), and so are the second quote of '' and the parts of escapes.
size_t YamlTree::offset_of(NodeIndex scalar, size_t text_offset) const {
  const YamlNode& node = nodes_[scalar];
  size_t at = source_offset(node.mark);
  if (node.style == YamlNode::Style::kBlock) {
    at = source_.find('\n', at);  // after the header: "|-"
    at = at == std::string::npos ? source_.size() : at + 1;
  } else if (node.style != YamlNode::Style::kPlain) {
    ++at;
  }
  const std::string& text = node.text;
  size_t i = 0;
  if (text.empty()) {
    return source_offset(node.mark);
  }
  while (
      i < std::min(text_offset, text.size()) ||
      (at < source_.size() && i < text.size() && text[i] != source_[at] && is_space(source_[at]))) {
    if (at >= source_.size()) {
      return source_offset(node.mark);
    }
    if (node.style == YamlNode::Style::kDoubleQuoted && source_[at] == '\\') {
      const Escape escape = read_escape(std::string_view(source_).substr(at));
      if (i + escape.text_bytes > std::min(text_offset, text.size())) {
        return at;  // within a character
      }
      at = std::min(at + escape.source_bytes, source_.size());
      i += escape.text_bytes;
    } else if (text[i] == source_[at]) {
      const bool doubled = node.style == YamlNode::Style::kSingleQuoted && text[i] == '\'';
      at += doubled ? 2 : 1;
      ++i;
    } else if (is_space(source_[at])) {
      ++at;
    } else if (is_space(text[i])) {
      ++i;
    } else {
      return source_offset(node.mark);  // the scalar's beginning must do
    }
  }
  return at;
}

Mark YamlTree::place(NodeIndex scalar, size_t offset) const {
  const YamlNode& node = nodes_[scalar];
  if (node.kind != YamlNode::Kind::kScalar || node.style == YamlNode::Style::kAbsent) {
    return node.mark;
  }
  return mark_at(offset_of(scalar, offset));
}

std::optional<Mark> YamlTree::comment_behind(NodeIndex scalar) const {
  const YamlNode& node = nodes_[scalar];
  if (node.kind != YamlNode::Kind::kScalar || node.style != YamlNode::Style::kPlain) {
    return std::nullopt;
  }
  size_t at = offset_of(scalar, node.text.size());
  const size_t end_of_text = at;
  while (at < source_.size() && is_blank(source_[at])) {
    ++at;
  }
  if (at == end_of_text || at >= source_.size() || source_[at] != '#') {
    return std::nullopt;
  }
  return mark_at(at);
}

// Turns yaml-cpp's events into the tree, and reports what the spec does not allow.
class YamlBuilder final : public YAML::EventHandler {
 public:
  YamlBuilder(YamlTree& tree, Diagnostics& diagnostics) : tree_(tree), diagnostics_(diagnostics) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_anchor(mark, anchor);
    YamlNode node;
    node.mark = to_mark(mark);
    const size_t length =
        was_written(node.mark)
            ? null_word(std::string_view(tree_.source_).substr(tree_.source_offset(node.mark)))
            : 0;
    node.style = length == 0 ? YamlNode::Style::kAbsent : YamlNode::Style::kPlain;
    node.text = tree_.source_.substr(tree_.source_offset(node.mark), length);
    if (length == 0 && !open_.empty()) {
      node.mark = open_.back().has_key ? open_.back().key_mark : before(node.mark);
    }
    add(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse_anchors(mark, "an alias ('*')");
    YamlNode node;
    node.mark = to_mark(mark);
    add(std::move(node));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_anchor(mark, anchor);
    check_tag(mark, tag);
    YamlNode node;
    node.mark = to_mark(mark);
    node.text = value;
    node.style = style_at(node.mark, tag);
    if (value.find('\0') != std::string::npos) {
      diagnostics_.error(node.mark, "this text holds a NUL character ('\\0')",
                         "no program can be given one: take it out");
    }
    add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  // A list or map whose end has not come yet.
  struct Open {
    NodeIndex node = kNoNode;
    NodeIndex last = kNoNode;
    bool has_key = false;  // a map: the next node is a value
    std::string key;
    Mark key_mark;
    std::map<std::string, Mark> keys;
    bool is_key = false;  // a list or map in the place of a key: read, reported, not kept
  };

  void refuse_anchors(const YAML::Mark& mark, const std::string& what) {
    diagnostics_.error(to_mark(mark), what + " of YAML is not allowed in a spec",
                       "repeat the keys instead");
  }
  void check_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) {
      refuse_anchors(mark, "an anchor ('&')");
    }
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag != "?" && tag != "!" && !tag.empty()) {
      diagnostics_.error(to_mark(mark), "a tag ('!') of YAML is not allowed in a spec",
                         "remove it: the type of a value follows from its key");
    }
  }

  // yaml-cpp gives an absent value the place of what follows, which may itself be a null word.
  [[nodiscard]] bool was_written(Mark mark) const {
    if (open_.empty()) {
      return true;
    }
    const Open& parent = open_.back();
    if (parent.has_key && mark.line == parent.key_mark.line &&
        mark.column == parent.key_mark.column) {
      return false;
    }
    const Mark begin = tree_.nodes_[parent.node].mark;
    const bool on_later_line = mark.line > (parent.has_key ? parent.key_mark.line : begin.line);
    return !(parent.has_key && on_later_line && mark.column <= begin.column);
  }

  // The last thing before a place: the dash or comma of an absent item.
  [[nodiscard]] Mark before(Mark mark) const {
    const size_t offset = tree_.source_offset(mark);
    const size_t at = offset == 0 ? 0 : tree_.source_.find_last_not_of(" \t\n", offset - 1);
    return at == std::string::npos ? mark : tree_.mark_at(at);
  }

  [[nodiscard]] YamlNode::Style style_at(Mark mark, const std::string& tag) const {
    if (tag != "!") {
      return YamlNode::Style::kPlain;
    }
    const size_t at = tree_.source_offset(mark);
    const char c = at < tree_.source_.size() ? tree_.source_[at] : ' ';
    return c == '\''  ? YamlNode::Style::kSingleQuoted
           : c == '"' ? YamlNode::Style::kDoubleQuoted
                      : YamlNode::Style::kBlock;
  }

  // Looks at the indentation only: a line may be as long as the file.
  void check_tab(Mark mark) {
    const size_t at = tree_.source_offset(mark);
    const size_t begin = tree_.line_begins_[mark.line - 1];
    if (tree_.source_.find_first_not_of(" \t", begin) < at) {
      return;
    }
    const size_t tab = std::string_view(tree_.source_).substr(begin, at - begin).find('\t');
    if (tab != std::string_view::npos) {
      diagnostics_.error({mark.line, static_cast<uint32_t>(tab + 1)},
                         "tab used for indentation, use spaces");
    }
  }

  void begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             YamlNode::Kind kind) {
    check_anchor(mark, anchor);
    check_tag(mark, tag);
    YamlNode node;
    node.kind = kind;
    node.mark = to_mark(mark);
    const bool is_key = in_map() && !open_.back().has_key;
    const NodeIndex index = add(std::move(node));
    Open open;
    open.node = index;
    open.is_key = is_key;
    open_.push_back(std::move(open));
  }

  [[nodiscard]] bool in_map() const {
    return !open_.empty() && tree_.nodes_[open_.back().node].kind == YamlNode::Kind::kMap;
  }

  NodeIndex add(YamlNode node) {
    check_tab(node.mark);
    if (in_map() && !open_.back().has_key) {
      return add_key(std::move(node));
    }
    const auto index = static_cast<NodeIndex>(tree_.nodes_.size());
    if (open_.empty()) {
      tree_.root_ = index;
      tree_.nodes_.push_back(std::move(node));
      return index;
    }
    Open& parent = open_.back();
    node.key = std::move(parent.key);
    node.key_mark = parent.key_mark;
    parent.has_key = false;
    YamlNode& owner = tree_.nodes_[parent.node];
    ++owner.count;
    (parent.last == kNoNode ? owner.first : tree_.nodes_[parent.last].next) = index;
    parent.last = index;
    tree_.nodes_.push_back(std::move(node));
    return index;
  }

  NodeIndex add_key(YamlNode node) {
    Open& parent = open_.back();
    parent.has_key = true;
    parent.key = node.text;
    parent.key_mark = node.mark;
    if (node.kind != YamlNode::Kind::kScalar) {
      const bool braces = tree_.source_.compare(tree_.source_offset(node.mark), 1, "{") == 0;
      diagnostics_.error(node.mark, "a key must be a text, found a list or a map",
                         braces ? "to insert a value write \"${{ name }}\", in quotes" : "");
      parent.key = kMergeKey;  // as little to be looked at
    } else if (node.text == kMergeKey) {
      refuse_anchors_at(node.mark);
    } else if (const auto [first, fresh] = parent.keys.emplace(node.text, node.mark); !fresh) {
      diagnostics_.error(node.mark,
                         "key '" + node.text + "' is written twice; the first is in line " +
                             std::to_string(first->second.line),
                         "remove one of them");
    }
    // Only lists and maps in a key's place need a node of their own, to hold their children.
    if (node.kind == YamlNode::Kind::kScalar) {
      return kNoNode;
    }
    tree_.nodes_.push_back(std::move(node));
    return static_cast<NodeIndex>(tree_.nodes_.size() - 1);
  }

  void refuse_anchors_at(Mark mark) {
    diagnostics_.error(mark, "the merge key '<<' of YAML is not allowed in a spec",
                       "repeat the keys instead");
  }

  YamlTree& tree_;
  Diagnostics& diagnostics_;
  std::vector<Open> open_;
};

namespace {

// Tells where a second document begins; its content does not matter.
class SecondDocument final : public YAML::EventHandler {
 public:
  std::optional<Mark> mark;
  void OnDocumentStart(const YAML::Mark& m) override { mark = to_mark(m); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

}  // namespace

std::string normalised_source(std::string source) {
  if (source.compare(0, kByteOrderMark.size(), kByteOrderMark) == 0) {
    source.erase(0, kByteOrderMark.size());
  }
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r' || i + 1 >= source.size() || source[i + 1] != '\n') {
      out += source[i];
    }
  }
  return out;
}

namespace {

void warn_of_carriage_returns(const std::string& source, Diagnostics& diagnostics) {
  const size_t first_crlf = source.find("\r\n");
  if (first_crlf == std::string::npos) {
    return;
  }
  const auto line = 1 + std::count(source.begin(),
                                   source.begin() + static_cast<std::ptrdiff_t>(first_crlf), '\n');
  diagnostics.warning({static_cast<uint32_t>(line), 1},
                      "lines end with carriage return and newline; the carriage returns are "
                      "ignored",
                      "save the file with unix line ends");
}

size_t bad_byte(const std::string& text) {
  return std::min(bad_utf8(text), text.find_first_of(std::string_view("\0\r", 2)));
}

}  // namespace

std::optional<YamlTree> read_yaml(std::string source, Diagnostics& diagnostics) {
  warn_of_carriage_returns(source, diagnostics);
  YamlTree tree;
  tree.source_ = normalised_source(std::move(source));
  tree.line_begins_ = {0};
  for (size_t i = 0; i < tree.source_.size(); ++i) {
    if (tree.source_[i] == '\n') {
      tree.line_begins_.push_back(i + 1);
    }
  }
  if (const size_t bad = bad_byte(tree.source_); bad != std::string::npos) {
    const char c = tree.source_[bad];
    diagnostics.error(tree.mark_at(bad),
                      c == '\r'   ? "a carriage return within a line"
                      : c == '\0' ? "a NUL byte within the text"
                                  : "this byte is not UTF-8 text",
                      c == '\r' || c == '\0' ? "remove it" : "save the file as UTF-8 text");
    return std::nullopt;
  }
  std::istringstream in(tree.source_);
  Diagnostics findings;  // dropped after a syntax error: what came before may be its consequence
  try {
    YAML::Parser parser(in);
    YamlBuilder builder(tree, findings);
    const bool any = parser.HandleNextDocument(builder);
    // At most two: on some damaged input yaml-cpp gives documents for ever.
    SecondDocument second;
    if (any && parser.HandleNextDocument(second)) {
      diagnostics.error(second.mark.value_or(Mark{}),
                        "a second document begins here, a spec is one document",
                        "remove the '---' before it");
    }
  } catch (const YAML::Exception& failure) {
    const Mark mark = failure.mark.is_null() ? Mark{} : to_mark(failure.mark);
    report_syntax(tree.source_, mark, failure.msg, diagnostics);
    return std::nullopt;
  }
  for (const Diagnostic& finding : findings.all()) {
    diagnostics.error(finding.mark, finding.text, finding.hint);
  }
  if (tree.root_ == kNoNode) {
    diagnostics.error({}, "the file is empty", "a spec begins with 'sluice: 1'");
    return std::nullopt;
  }
  return tree;
}

}  // namespace sluice::io
