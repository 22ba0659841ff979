// Joins: which instances of a producer an instance reads. The rules that are broken:
// tests/io/golden/mistakes/joins*.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "io/spec_describe.h"
#include "tests/support/spec_folder.h"

namespace {

using namespace sluice;
using namespace sluice::io;
using scheduler::InstanceId;
using scheduler::TaskId;
using test::SpecFolder;
using Texts = std::vector<std::string>;

// train[grid x seed] --model--> use, with the consumer's foreach and the input as given.
std::string spec(const std::string& consumer_foreach, const std::string& input) {
  return R"(sluice: 1
tasks:
  train:
    foreach: {grid: [64, 128], seed: [0, 1, 2]}
    run: train ${{ out.model }}
    outputs: {model: {file: model}}
  use:
    run: use
    inputs: {m: )" +
         input + "}\n" +
         (consumer_foreach.empty() ? "" : "    foreach: " + consumer_foreach + "\n");
}

// What instance `item` of `use` reads, as items of train.
Texts read_by(const Pipeline& p, const std::string& item) {
  Texts items;
  const InstanceId instance = p.find("use", item);
  REQUIRE(instance.valid());
  for (const auto object : p.graph.group_objects(p.graph.inputs(instance)[0])) {
    items.push_back(p.item(p.graph.producer(object)));
  }
  return items;
}

}  // namespace

TEST_CASE("joins: 'join: all' is a list of every instance, whatever keys both have") {
  SpecFolder folder;
  const auto p = folder.read(spec("{grid: [64, 32]}", "{from: train.model, join: all}"));
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(p->tasks[1].inputs[0].is_list);
  CHECK(read_by(*p, "grid=32").size() == 6);
  CHECK(read_by(*p, "grid=64").size() == 6);
  CHECK(describe(*p)[1].inputs[0].join == "gather over [grid, seed]");
  // One group serves all.
  CHECK(p->graph.group_count() == 1);
}

TEST_CASE("joins: 'join: all' of a task without foreach is a list of one") {
  SpecFolder folder;
  const auto p = folder.read(R"(sluice: 1
tasks:
  a: {run: a, outputs: {x: {file: x}}}
  b: {run: b, inputs: {x: {from: a.x, join: all}}}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(p->tasks[1].inputs[0].is_list);
  CHECK(p->tasks[1].inputs[0].join == JoinKind::kGather);
}

TEST_CASE("joins: 'join: [keys]' gathers over the producer's other keys") {
  SpecFolder folder;
  const auto p =
      folder.read(spec("{grid: [64, 128], seed: [7, 8]}", "{from: train.model, join: [grid]}"));
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(p->tasks[1].inputs[0].over == Texts{"seed"});
  CHECK(read_by(*p, "grid=128,seed=7") ==
        Texts{"grid=128,seed=0", "grid=128,seed=1", "grid=128,seed=2"});
}

TEST_CASE("joins: 'where' chooses items, and its keys count no more") {
  SpecFolder folder;
  auto p = folder.read(spec("{grid: [64, 128]}", "{from: train.model, where: {seed: 1}}"));
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK_FALSE(p->tasks[1].inputs[0].is_list);
  CHECK(read_by(*p, "grid=64") == Texts{"grid=64,seed=1"});
  CHECK(describe(*p)[1].inputs[0].join == "one-to-one where seed=1");
  p = folder.read(spec("", "{from: train.model, where: {seed: 1}}"));
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(read_by(*p, "") == Texts{"grid=64,seed=1", "grid=128,seed=1"});
  p = folder.read(spec("", "{from: train.model, where: {seed: 1, grid: 64}}"));
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK_FALSE(p->tasks[1].inputs[0].is_list);
  // Everybody is compared with seed 0, also seed 2.
  p = folder.read(spec("{grid: [64, 128], seed: [1, 2]}", "{from: train.model, where: {seed: 0}}"));
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(read_by(*p, "grid=64,seed=2") == Texts{"grid=64,seed=0"});
  CHECK(describe(*p)[1].inputs[0].join == "broadcast where seed=0");
}

TEST_CASE("joins: 'missing: skip' lets a list be empty and items stay unread") {
  SpecFolder folder;
  const auto p = folder.read(spec("{grid: [64, 32]}", "{from: train.model, missing: skip}"));
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(read_by(*p, "grid=32").empty());
  CHECK(read_by(*p, "grid=64").size() == 3);
}

TEST_CASE("joins: what some instance's output nobody reads is a result") {
  SpecFolder folder;
  const auto result = [&](const std::string& more) {
    const auto p = folder.read(spec("", "{from: train.model, where: {seed: 1}}") + more);
    REQUIRE_MESSAGE(p, folder.printed);
    return p->graph.task(TaskId(0)).outputs[0].result;
  };
  CHECK(result(""));
  CHECK(result("  other: {run: o, inputs: {m: {from: train.model, where: {seed: 0}}}}\n"));
  CHECK_FALSE(
      result("  other: {run: o, inputs: {m: {from: train.model, where: {seed: 0}}}}\n"
             "  third: {run: o, inputs: {m: {from: train.model, where: {seed: 2}}}}\n"));
  CHECK_FALSE(result("  other: {run: o, inputs: {m: train.model}}\n"));
}

// UC-094
TEST_CASE("joins: a list over zero items is empty, and nobody need read where nobody is") {
  SpecFolder folder;
  const auto p = folder.read(R"(sluice: 1
tasks:
  mesh: {run: mesh, outputs: {x: {file: x}}}
  part:
    foreach: {i: [], allow_empty: true}
    run: part
    inputs: {mesh: mesh.x}
    outputs: {x: {file: x}, v: {value: int}}
  next: {foreach: {i: [], allow_empty: true}, run: next, inputs: {x: part.x}}
  sum:
    run: sum ${{ in.xs.paths }} ${{ len(in.vs) }}
    inputs: {xs: part.x, vs: part.v}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(p->graph.instance_count() == 2);
  CHECK(p->graph.task(TaskId(0)).outputs[0].result);
  static const std::string kNone;
  const auto attempt =
      p->render(InstanceId(1), [](scheduler::ObjectId) -> const std::string& { return kNone; });
  REQUIRE(attempt.ok());
  CHECK(attempt->inputs[0].is_list);
  CHECK(attempt->inputs[0].files.empty());
  CHECK(attempt->words.back()[0].text == "0");
}

namespace {

using Item = std::map<std::string, std::string>;

struct RandomTask {
  std::vector<std::string> keys;
  std::vector<Item> items;
};

// Some of the items that three keys with two values can have.
RandomTask random_task(std::mt19937_64& random) {
  RandomTask task;
  for (const char* key : {"a", "b", "c"}) {
    if (random() % 3 > 0) {
      task.keys.emplace_back(key);
    }
  }
  std::vector<Item> all = {{}};
  for (const std::string& key : task.keys) {
    std::vector<Item> longer;
    for (const Item& item : all) {
      for (const char* value : {"0", "1"}) {
        longer.push_back(item);
        longer.back()[key] = value;
      }
    }
    all = longer;
  }
  const bool complete = random() % 2 == 0;
  for (const Item& item : all) {
    if (task.keys.empty() || complete || random() % 4 > 0) {
      task.items.push_back(item);
    }
  }
  if (task.items.empty()) {
    task.items.push_back(all[0]);
  }
  std::shuffle(task.items.begin(), task.items.end(), random);
  return task;
}

std::string text_of(const Item& item) {
  std::string text;
  for (const auto& [key, value] : item) {
    text += (text.empty() ? "" : ",") + key + "=" + value;
  }
  return text;
}

std::string foreach_of(const RandomTask& task) {
  std::string text;
  for (const Item& item : task.items) {
    text += text.empty() ? "    foreach: [{" : ", {";
    for (const auto& [key, value] : item) {
      text += (key == item.begin()->first ? "" : ", ") + key + ": " + value;
    }
    text += "}";
  }
  return task.keys.empty() ? "" : text + "]\n";
}

struct RandomJoin {
  bool all = false;
  std::set<std::string> keys;  // to join by
  Item where;
  bool skip = false;
  bool is_list = false;
  std::string text;
};

RandomJoin random_join(std::mt19937_64& random, const RandomTask& producer,
                       const RandomTask& consumer) {
  RandomJoin join;
  if (random() % 3 == 0) {  // the values of an item that is there
    for (const auto& [key, value] : producer.items[random() % producer.items.size()]) {
      if (random() % 2 == 0) {
        join.where[key] = value;
      }
    }
  }
  const uint64_t kind = random() % 4;
  join.all = kind == 0;
  std::string chosen;
  for (const std::string& key : producer.keys) {
    const bool both = std::count(consumer.keys.begin(), consumer.keys.end(), key) > 0;
    if (both && join.where.count(key) == 0 && kind != 0 && (kind != 1 || random() % 2 == 0)) {
      join.keys.insert(key);
      chosen += (chosen.empty() ? "" : ", ") + key;
    }
  }
  const bool listed = kind == 1 && !chosen.empty();
  if (kind == 1 && !listed) {  // an empty list is not allowed: join by equal keys
    for (const std::string& key : producer.keys) {
      if (std::count(consumer.keys.begin(), consumer.keys.end(), key) > 0 &&
          join.where.count(key) == 0) {
        join.keys.insert(key);
      }
    }
  }
  join.skip = random() % 3 == 0;
  join.is_list = join.all || producer.keys.size() > join.keys.size() + join.where.size();
  join.text = "{from: p.x";
  join.text += join.all ? ", join: all" : listed ? ", join: [" + chosen + "]" : "";
  for (const auto& [key, value] : join.where) {
    join.text += (key == join.where.begin()->first ? ", where: {" : ", ") + key + ": " + value;
  }
  join.text += join.where.empty() ? "" : "}";
  join.text += join.skip ? ", missing: skip}" : "}";
  return join;
}

bool agree(const RandomJoin& join, const Item& producer, const Item& consumer) {
  return std::all_of(join.where.begin(), join.where.end(),
                     [&](const auto& pair) { return producer.at(pair.first) == pair.second; }) &&
         std::all_of(join.keys.begin(), join.keys.end(),
                     [&](const std::string& key) { return producer.at(key) == consumer.at(key); });
}

bool selected(const RandomJoin& join, const Item& producer) {
  return std::all_of(join.where.begin(), join.where.end(),
                     [&](const auto& pair) { return producer.at(pair.first) == pair.second; });
}

}  // namespace

// Every pair of producer and consumer is asked whether they agree.
TEST_CASE("joins: groups and refusals are those of a comparison of all pairs") {
  const char* given = std::getenv("SLUICE_SEED");
  const unsigned long seed = given != nullptr ? std::stoul(given) : 20261130;
  MESSAGE("SLUICE_SEED=" << seed);
  std::mt19937_64 random(seed);
  SpecFolder folder;
  size_t accepted = 0;
  const size_t rounds = 600;
  for (size_t round = 0; round < rounds; ++round) {
    const RandomTask producer = random_task(random);
    const RandomTask consumer = random_task(random);
    const RandomJoin join = random_join(random, producer, consumer);
    const std::string text = "sluice: 1\ntasks:\n  p:\n    run: p\n    outputs: {x: {file: x}}\n" +
                             foreach_of(producer) +
                             "  use:\n    run: use\n    inputs: {m: " + join.text + "}\n" +
                             foreach_of(consumer);
    CAPTURE(text);
    std::map<std::string, Texts> wanted;
    bool refused = false;
    std::set<std::string> read;
    for (const Item& one : consumer.items) {
      Texts& list = wanted[text_of(one)];
      for (const Item& other : producer.items) {
        if (agree(join, other, one)) {
          list.push_back(text_of(other));
          read.insert(text_of(other));
        }
      }
      refused = refused || (list.empty() && !(join.skip && join.is_list));
    }
    for (const Item& other : producer.items) {
      refused = refused || (selected(join, other) && read.count(text_of(other)) == 0 && !join.skip);
    }
    const auto p = folder.read(text);
    CHECK_MESSAGE(p.has_value() != refused, folder.printed);
    if (!p || refused) {
      continue;
    }
    ++accepted;
    CHECK(p->tasks[1].inputs[0].is_list == join.is_list);
    CHECK(p->graph.task(TaskId(0)).outputs[0].result == (read.size() < producer.items.size()));
    for (const auto& [item, list] : wanted) {
      CHECK(read_by(*p, item) == list);
    }
  }
  CHECK(accepted > rounds / 5);
  CHECK(rounds - accepted > rounds / 20);
}
