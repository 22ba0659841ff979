#include "io/spec_yaml.h"

#include <doctest/doctest.h>

#include <sstream>
#include <string>

namespace {

using namespace sluice::io;

struct Read {
  explicit Read(const std::string& text) {
    diagnostics.set_source("a.yaml", normalised_source(text));
    tree = read_yaml(text, diagnostics);
  }
  std::string printed() const {
    std::ostringstream out;
    diagnostics.print(out);
    return out.str();
  }
  const YamlNode& at(std::string_view key) const {
    REQUIRE(tree);
    const NodeIndex index = tree->find(tree->root(), key);
    REQUIRE(index != kNoNode);
    return (*tree)[index];
  }
  Diagnostics diagnostics;
  std::optional<YamlTree> tree;
};

std::string place(const Read& read, std::string_view key, std::string_view what) {
  const NodeIndex index = read.tree->find(read.tree->root(), key);
  const std::string& text = (*read.tree)[index].text;
  const Mark mark = read.tree->place(index, text.find(what));
  return std::to_string(mark.line) + ":" + std::to_string(mark.column);
}

}  // namespace

TEST_CASE("spec_yaml: scalars keep the text as typed") {
  const Read read("a: no\nb: 3.10\nc: 010\nd: null\ne: ~\nf:\ng: 12:30:45\nh: 'it''s'\n");
  CHECK(read.at("a").text == "no");
  CHECK(read.at("b").text == "3.10");
  CHECK(read.at("c").text == "010");
  CHECK(read.at("d").text == "null");
  CHECK(read.at("d").style == YamlNode::Style::kPlain);
  CHECK(read.at("e").text == "~");
  CHECK(read.at("f").style == YamlNode::Style::kAbsent);
  CHECK(read.at("g").text == "12:30:45");
  CHECK(read.at("h").text == "it's");
  CHECK(read.at("h").style == YamlNode::Style::kSingleQuoted);
  CHECK(read.printed().empty());
}

TEST_CASE("spec_yaml: an absent value is not the null word that follows it") {
  const Read read("a:\nnull: 3\nb: {c: , d: null}\nx: [null, ~]\n");
  CHECK(read.at("a").style == YamlNode::Style::kAbsent);
  CHECK(read.at("null").text == "3");
  const auto b = read.tree->children(read.tree->find(read.tree->root(), "b"));
  REQUIRE(b.size() == 2);
  CHECK((*read.tree)[b[0]].style == YamlNode::Style::kAbsent);
  CHECK((*read.tree)[b[1]].text == "null");
  const auto x = read.tree->children(read.tree->find(read.tree->root(), "x"));
  CHECK((*read.tree)[x[1]].text == "~");
}

TEST_CASE("spec_yaml: places inside a scalar are exact in every style") {
  const Read read(
      "plain: abc MARK\n"
      "single: 'it''s MARK'\n"
      "double: \"say \\\"x\\\" MARK\"\n"
      "literal: |\n"
      "  first\n"
      "\n"
      "    second MARK\n"
      "folded: >-\n"
      "  first\n"
      "  then MARK\n"
      "long: abc\n"
      "  def MARK\n");
  CHECK(place(read, "plain", "MARK") == "1:12");
  CHECK(place(read, "single", "MARK") == "2:16");
  CHECK(place(read, "double", "MARK") == "3:20");
  CHECK(place(read, "literal", "MARK") == "7:12");
  CHECK(place(read, "folded", "MARK") == "10:8");
  CHECK(place(read, "long", "MARK") == "12:7");
}

TEST_CASE("spec_yaml: a comment behind plain text is seen, one behind quotes is nobody's loss") {
  const Read read("run: prog --tag #3\nquoted: 'prog' # fine\nplain: prog\nglued: a#b\n");
  const auto mark = read.tree->comment_behind(read.tree->find(read.tree->root(), "run"));
  REQUIRE(mark);
  CHECK(mark->column == 17);
  for (const char* key : {"quoted", "plain", "glued"}) {
    CHECK_FALSE(read.tree->comment_behind(read.tree->find(read.tree->root(), key)));
  }
}

TEST_CASE("spec_yaml: a key written twice names both lines, at any depth") {
  const Read read("a: 1\nb: {c: 1, c: 2}\na: 2\n");
  CHECK(read.printed() ==
        "a.yaml:2:11: error: key 'c' is written twice; the first is in line 2\n"
        "  b: {c: 1, c: 2}\n"
        "            ^\n"
        "hint: remove one of them\n"
        "a.yaml:3:1: error: key 'a' is written twice; the first is in line 1\n"
        "  a: 2\n"
        "  ^\n"
        "hint: remove one of them\n"
        "2 errors\n");
}

TEST_CASE("spec_yaml: anchors, aliases, merge keys and tags are refused, all at once") {
  const Read read("a: &x {b: 1}\nc: {<<: *x}\nd: !!int 3\n");
  const std::string text = read.printed();
  CHECK(text.find("a.yaml:1:4: error: an anchor ('&')") != std::string::npos);
  CHECK(text.find("a.yaml:2:5: error: the merge key '<<'") != std::string::npos);
  CHECK(text.find("a.yaml:2:9: error: an alias ('*')") != std::string::npos);
  CHECK(text.find("a.yaml:3:4: error: a tag ('!')") != std::string::npos);
  CHECK(text.find("4 errors") != std::string::npos);
}

TEST_CASE("spec_yaml: a second document is refused and reading always ends") {
  CHECK(Read("a: 1\n---\nb: 2\n").printed().find("a.yaml:2:1: error: a second document") !=
        std::string::npos);
  CHECK(Read(",").diagnostics.errors() > 0);
  CHECK(Read("").printed() ==
        "a.yaml: error: the file is empty\nhint: a spec begins with 'sluice: 1'\n1 error\n");
}

TEST_CASE("spec_yaml: a tab in the indentation is named, a tab elsewhere is not") {
  const std::string text = Read("a:\n\tb: 1\n").printed();
  CHECK(text.find("a.yaml:2:1: error: tab used for indentation, use spaces\n  →b: 1") !=
        std::string::npos);
  CHECK(Read("a: 1\t# a note\nb:\t2\nc: |\n  x\n  \ty\n").printed().empty());
  CHECK(Read("c: |\n\techo\n").printed().find("a.yaml:2:1: error: tab used") != std::string::npos);
}

TEST_CASE("spec_yaml: carriage returns and a byte-order mark vanish with one warning") {
  const Read read(
      "\xEF\xBB\xBF"
      "a: x\r\nb: |\r\n  one\r\n  two\r\n");
  CHECK(read.at("a").text == "x");
  CHECK(read.at("b").text == "one\ntwo\n");
  CHECK(read.diagnostics.all().size() == 1);
  CHECK(read.diagnostics.errors() == 0);
}

TEST_CASE("spec_yaml: what is not UTF-8 text is refused at its place") {
  CHECK(Read("a: \xFF\n").printed().find("a.yaml:1:4: error: this byte is not UTF-8") !=
        std::string::npos);
  CHECK(Read(std::string("a: \0b\n", 7)).printed().find("a NUL byte") != std::string::npos);
  CHECK(Read("a: x\ry\n").printed().find("a carriage return within") != std::string::npos);
}

TEST_CASE("spec_yaml: unquoted ${{ }} in a flow collection gets the remedy") {
  CHECK(Read("a: {grid: ${{ params.grids }}}\n").printed().find("into double quotes") !=
        std::string::npos);
  CHECK(Read("a: {{ n }}\n").printed().find("write \"${{ name }}\"") != std::string::npos);
}

TEST_CASE("spec_yaml: ten thousand items on one line are read") {
  std::string text = "a: [0";
  for (int i = 1; i < 10'000; ++i) {
    text += ", " + std::to_string(i);
  }
  const Read read(text + "]\n");
  CHECK(read.at("a").count == 10'000);
  CHECK(read.diagnostics.errors() == 0);
}

TEST_CASE("spec_yaml: deep nesting is an error, not a crash") {
  const Read read("a: " + std::string(20'000, '['));
  CHECK(read.diagnostics.errors() == 1);
}

TEST_CASE("yaml: a map inherits what it lacks, and what its maps lack, each with its own place") {
  Read read("from: {a: 1, m: {x: 2, y: 3}, n: {z: 1}}\nto: {m: {y: 9}, n: {w: 1}}\nempty: {}\n");
  REQUIRE(read.tree);
  YamlTree& tree = *read.tree;
  const NodeIndex from = tree.find(tree.root(), "from");
  const NodeIndex to = tree.find(tree.root(), "to");
  const NodeIndex empty = tree.find(tree.root(), "empty");
  for (const NodeIndex entry : tree.children(from)) {
    tree.inherit(to, entry, tree[entry].key == "m");
    tree.inherit(empty, entry, true);
  }
  CHECK(tree[tree.find(to, "a")].text == "1");
  CHECK(tree[tree.find(to, "a")].mark.line == 1);
  const NodeIndex m = tree.find(to, "m");
  CHECK(tree[m].count == 2);
  CHECK(tree[tree.find(m, "y")].text == "9");
  CHECK(tree[tree.find(m, "x")].text == "2");
  CHECK(tree.find(tree.find(to, "n"), "z") == kNoNode);
  CHECK(tree.children(empty).size() == 3);
  CHECK(tree.children(from).size() == 3);
  CHECK(tree.children(tree.find(from, "m")).size() == 2);
}
