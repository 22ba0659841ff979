// foreach: which items a task has. The rules that are broken: tests/io/golden/mistakes/foreach*.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/spec_folder.h"

namespace {

using namespace sluice;
using namespace sluice::io;
using scheduler::InstanceId;
using scheduler::TaskId;
using test::SpecFolder;
using Texts = std::vector<std::string>;

std::string task_with(const std::string& foreach) {
  return "sluice: 1\nparams: {none: {type: list, default: []}}\ntasks:\n  a:\n    foreach: " +
         foreach + "\n    run: a\n";
}

Texts items(SpecFolder& folder, const std::string& foreach) {
  const auto p = folder.read(task_with(foreach));
  REQUIRE_MESSAGE(p, folder.printed);
  Texts all;
  for (size_t i = 0; i < p->graph.instance_count(); ++i) {
    all.push_back(p->item(InstanceId(i)));
  }
  return all;
}

}  // namespace

TEST_CASE("foreach: factors are multiplied, the last one fastest") {
  SpecFolder folder;
  CHECK(items(folder, "{product: [{g: [1, 2]}, [{n: x, s: 1}, {s: 9, n: y}]]}") ==
        Texts{"g=1,n=x,s=1", "g=1,n=y,s=9", "g=2,n=x,s=1", "g=2,n=y,s=9"});
  CHECK(items(folder, "{product: [{g: [1, 2], h: [3, 4]}, {i: [5]}]}") ==
        Texts{"g=1,h=3,i=5", "g=1,h=4,i=5", "g=2,h=3,i=5", "g=2,h=4,i=5"});
  CHECK(items(folder, "{product: [[{n: x}, {n: y}]]}") == Texts{"n=x", "n=y"});
}

TEST_CASE("foreach: except leaves out the items that have all the values of one of its maps") {
  SpecFolder folder;
  CHECK(items(folder, "{g: [1, 2], a: [x, y, z], except: [{g: 1, a: x}, {a: z}]}") ==
        Texts{"g=1,a=y", "g=2,a=x", "g=2,a=y"});
  CHECK(items(folder, "{product: [[{n: x, s: 1}, {n: y, s: 2}]], except: [{n: x}]}") ==
        Texts{"n=y,s=2"});
  // What two entries match is left out once, and both have matched.
  CHECK(items(folder, "{g: [1, 2], except: [{g: 1}, {g: 1}]}") == Texts{"g=2"});
}

// UC-001, UC-002
TEST_CASE("foreach: except compares the texts as typed") {
  SpecFolder folder;
  CHECK(items(folder, "{v: [no, 3.1, 3.10], except: [{v: 3.10}, {v: no}]}") == Texts{"v=3.1"});
  CHECK_FALSE(folder.read(task_with("{v: [0.1, 0.2], except: [{v: 0.10}]}")));
  CHECK(folder.printed.find("the same number is written '0.1' there") != std::string::npos);
}

// UC-094
TEST_CASE("foreach: zero items are fine where allow_empty says so") {
  SpecFolder folder;
  folder.write("nothing.txt", "\n\n");
  for (const char* foreach :
       {"{g: [], allow_empty: true}", "{g: [1, 2], h: [], allow_empty: true}",
        "{g: \"${{ params.none }}\", allow_empty: true}", "{g: {range: [0, 0]}, allow_empty: true}",
        "{g: {glob: \"*.no\"}, allow_empty: true}", "{g: {lines: nothing.txt}, allow_empty: true}",
        "{product: [[], {g: [1]}], allow_empty: true}",
        "{g: [1], except: [{g: 1}], allow_empty: true}",
        "{g: [], except: [{g: 1}], allow_empty: true}"}) {
    CAPTURE(foreach);
    CHECK(items(folder, foreach).empty());
  }
}

TEST_CASE("foreach: params may stand in patterns, files and except") {
  SpecFolder folder;
  folder.write("s.txt", "s1\ns2\n");
  folder.write("x.dat", "");
  const auto p = folder.read(R"(sluice: 1
params: {list: {type: path, default: s.txt}, end: {type: string, default: dat}}
tasks:
  a:
    foreach: {s: {lines: "${{ params.list }}"}, f: {glob: "*.${{ params.end }}"}}
    run: a
)");
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(p->item(InstanceId(1)) == "s=s2,f=x.dat");
  CHECK(p->tasks[0].item_sources.size() == 2);
}

// UC-011
TEST_CASE("foreach: a param and a foreach key of one name stay two things") {
  SpecFolder folder;
  const auto p = folder.read(R"(sluice: 1
params: {P: {type: int, default: 1}}
tasks:
  a:
    foreach: {P: [1, 2, 3]}
    run: a ${{ params.P }} ${{ item.P }}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(p->graph.instance_count() == 3);
  CHECK(p->command_text(InstanceId(2)) == "a 1 3");
}

// UC-014
TEST_CASE("foreach: each file of a pattern is one input, whatever its name") {
  SpecFolder folder;
  const Texts names = {"a b.dat", "it's.dat",          "x(1).dat",
                       "-n.dat",  "q;touch pwned.dat", "new\nline.dat"};
  std::filesystem::create_directory(folder.path() / "data");
  for (const std::string& name : names) {
    folder.write("data/" + name, name);
  }
  const auto p = folder.read(R"(sluice: 1
tasks:
  a:
    foreach: {f: {glob: "data/*"}}
    run: wc -c ${{ in.f }}
    inputs: {f: {file: "${{ item.f }}"}}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  REQUIRE(p->graph.instance_count() == names.size());
  Texts sources;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto spec = p->render(InstanceId(i), [](scheduler::ObjectId) -> const std::string& {
      static const std::string kNone;
      return kNone;
    });
    REQUIRE(spec.ok());
    sources.push_back(spec->inputs[0].files[0].source_path);
    CHECK(p->find("a", p->item(InstanceId(i))) == InstanceId(i));
  }
  for (const std::string& name : names) {
    CHECK(std::count(sources.begin(), sources.end(), (folder.path() / "data" / name).string()) ==
          1);
  }
}

// UC-107
TEST_CASE("foreach: a pattern that covers the run directory is warned of and does not read there") {
  SpecFolder folder;
  folder.write("a.dat", "");
  std::filesystem::create_directories(folder.path() / "p.run/results/a");
  folder.write("p.run/results/a/b.dat", "");
  CHECK(items(folder, "{f: {glob: \"**/*.dat\"}}") == Texts{"f=a.dat"});
  CHECK(folder.printed.find("also covers the run directory 'p.run'") != std::string::npos);
}

// UC-008
TEST_CASE("foreach: carriage returns of a list are dropped with one warning") {
  SpecFolder folder;
  folder.write("s.txt", "\xEF\xBB\xBFs1\r\ns2\r\n");
  const auto p = folder.read(R"(sluice: 1
tasks:
  a: {foreach: {s: {lines: s.txt}}, run: a}
  b: {foreach: {s: {lines: s.txt}}, run: b}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(p->item(InstanceId(0)) == "s=s1");
  CHECK(p->item(InstanceId(3)) == "s=s2");
  const size_t first = folder.printed.find("carriage returns are ignored");
  CHECK(first != std::string::npos);
  CHECK(folder.printed.find("carriage returns are ignored", first + 1) == std::string::npos);
}

// UC-009
TEST_CASE("foreach: many items are the same in one line, one a line and in a file") {
  SpecFolder folder;
  std::string flow = "{s: [";
  std::string block = "\n      s:\n";
  std::string lines;
  for (int i = 0; i < 20'000; ++i) {
    const std::string item = "sample-" + std::to_string(i);
    flow += (i == 0 ? "" : ", ") + item;
    block += "      - " + item + "\n";
    lines += item + "\n";
  }
  folder.write("s.txt", lines);
  const Texts all = items(folder, flow + "]}");
  CHECK(all.size() == 20'000);
  CHECK(all.back() == "s=sample-19999");
  CHECK(items(folder, block) == all);
  CHECK(items(folder, "{s: {lines: s.txt}}") == all);
}

namespace {

using Item = std::map<std::string, std::string>;

uint64_t below(std::mt19937_64& random, uint64_t end) { return random() % end; }

// A random factor: its text in the spec and its rows, made here in the most simple way.
std::pair<std::string, std::vector<Item>> random_factor(std::mt19937_64& random, char& next_key) {
  const bool cases = below(random, 2) == 0;
  const uint64_t key_count = 1 + below(random, 2);
  std::vector<Item> rows = {{}};
  Texts keys;
  std::string text;
  for (uint64_t k = 0; k < key_count; ++k) {
    keys.emplace_back(1, next_key++);
    const uint64_t values = 1 + below(random, 3);
    std::vector<Item> longer;
    text += (text.empty() ? "{" : ", ") + keys.back() + ": [";
    for (uint64_t v = 0; v < values; ++v) {
      text += (v == 0 ? "" : ", ") + std::to_string(v);
    }
    text += "]";
    for (const Item& row : rows) {
      for (uint64_t v = 0; v < values; ++v) {
        longer.push_back(row);
        longer.back()[keys.back()] = std::to_string(v);
      }
    }
    rows = longer;
  }
  text += "}";
  if (cases) {
    std::shuffle(rows.begin(), rows.end(), random);
    text = "[";
    for (const Item& row : rows) {
      text += text.size() > 1 ? ", {" : "{";
      for (const auto& [key, value] : row) {
        text += (key == row.begin()->first ? "" : ", ") + key + ": " + value;
      }
      text += "}";
    }
    text += "]";
  }
  return {text, rows};
}

}  // namespace

TEST_CASE("foreach: products and exceptions are those of a naive enumeration") {
  const char* given = std::getenv("SLUICE_SEED");
  const unsigned long seed = given != nullptr ? std::stoul(given) : 20261130;
  MESSAGE("SLUICE_SEED=" << seed);
  std::mt19937_64 random(seed);
  SpecFolder folder;
  for (int round = 0; round < 200; ++round) {
    char next_key = 'a';
    std::string product;
    std::vector<Item> wanted = {{}};
    for (uint64_t f = 1 + below(random, 3); f > 0; --f) {
      const auto [text, rows] = random_factor(random, next_key);
      product += (product.empty() ? "" : ", ") + text;
      std::vector<Item> longer;
      for (const Item& item : wanted) {
        for (const Item& row : rows) {
          longer.push_back(item);
          longer.back().insert(row.begin(), row.end());
        }
      }
      wanted = longer;
    }
    // Some keys of an item that is there: such an entry always matches.
    std::string except;
    std::vector<Item> partials;
    for (uint64_t e = below(random, 3); e > 0; --e) {
      Item partial;
      for (const auto& [key, value] : wanted[below(random, wanted.size())]) {
        if (below(random, 2) == 0) {
          partial[key] = value;
        }
      }
      if (partial.empty()) {
        continue;
      }
      except += except.empty() ? ", except: [{" : ", {";
      for (const auto& [key, value] : partial) {
        except += (key == partial.begin()->first ? "" : ", ") + key + ": " + value;
      }
      except += "}";
      partials.push_back(partial);
    }
    Texts expected;
    for (const Item& item : wanted) {
      const bool left_out = std::any_of(partials.begin(), partials.end(), [&](const Item& partial) {
        return std::all_of(partial.begin(), partial.end(),
                           [&](const auto& pair) { return item.at(pair.first) == pair.second; });
      });
      std::string text;
      for (const auto& [key, value] : item) {  // keys are letters in the order of the factors
        text += (text.empty() ? "" : ",") + key + "=" + value;
      }
      if (!left_out) {
        expected.push_back(text);
      }
    }
    const std::string foreach = "{product: [" + product + "]" + except +
                                (except.empty() ? "" : "]") + ", allow_empty: true}";
    CAPTURE(foreach);
    CHECK(items(folder, foreach) == expected);
  }
}
