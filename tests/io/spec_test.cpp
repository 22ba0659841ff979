#include "io/spec.h"

#include <doctest/doctest.h>

#include <cstdlib>
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

const std::string kPlate = R"(sluice: 1
name: plate-sweep
params:
  tol:   {type: float, default: 1.0e-4}
  grids: {type: list, default: [64, 128]}
limits: {licence: 5}
x-note: anything {here}
tasks:
  mesh:
    run: mkmesh --out ${{ out.mesh }}
    outputs: {mesh: {h5: mesh.h5}}
    resources: {cpus: 4, memory: 8GiB, licence: 2}
  simulate:
    foreach: {grid: "${{ params.grids }}", alpha: [0.1, 0.2, 0.5]}
    run: plate --grid ${{ item.grid }} --alpha ${{ item.alpha }} ${{ in.mesh }} ${{ out.field }}
    inputs: {mesh: mesh.mesh}
    outputs: {field: {h5: field.h5}, score: {value: float}}
    timeout: 45m
    retry: {exit: {max: 2, codes: [75, 76]}, timeout: {max: 1}}
    priority: 3
    on_failure: stop
  mean:
    foreach: {grid: "${{ params.grids }}"}
    sh: |
      h5mean --list "$IN_fields" "$OUT_mean" --tol $PARAM_tol
    inputs: {fields: simulate.field}
    outputs: {mean: {h5: mean.h5}}
    grace: 30s
)";

// What kPlate has not: products, exceptions, files as items, rules of joins.
const std::string kRules = R"(sluice: 1
tasks:
  train:
    foreach:
      product: [{grid: [64, 128]}, [{seed: 0, kind: base}, {seed: 1, kind: new}]]
      except: [{grid: 128, seed: 1}, {kind: new}]
      allow_empty: true
    run: train ${{ item.grid }} ${{ out.model }}
    outputs: {model: {file: model}, score: {value: float}}
  use:
    foreach: {grid: [64, 128], f: {glob: "*.yaml"}, s: {lines: p.yaml}, i: {range: [0, 0]}, allow_empty: true}
    run: use ${{ in.all.paths }} ${{ in.base }} ${{ len(in.scores) }}
    inputs:
      all: {from: train.model, join: all}
      base: {from: train.model, where: {seed: 0, kind: base}}
      scores: {from: train.score, join: [grid], missing: skip}
)";

std::vector<std::string> objects_of_input(const Pipeline& p, InstanceId instance, size_t input) {
  std::vector<std::string> labels;
  for (const auto object : p.graph.group_objects(p.graph.inputs(instance)[input])) {
    labels.push_back(p.label(p.graph.producer(object)));
  }
  return labels;
}

using Texts = std::vector<std::string>;

std::string task(const std::string& body) { return "sluice: 1\ntasks:\n" + body; }

}  // namespace

// mesh --> simulate[grid x alpha] --> mean[grid]
TEST_CASE("spec: the plate sweep becomes a graph of 1 + 6 + 2 instances") {
  SpecFolder folder;
  const auto p = folder.read(kPlate);
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(folder.printed.empty());
  CHECK(p->name == "plate-sweep");
  CHECK(p->folder == folder.path());
  CHECK(p->graph.task_count() == 3);
  CHECK(p->graph.instance_count() == 9);
  CHECK(p->graph.object_count() == 1 + 6 * 2 + 2);
  // The last key is the fastest.
  CHECK(p->label(InstanceId(0)) == "mesh");
  CHECK(p->label(InstanceId(1)) == "simulate[grid=64,alpha=0.1]");
  CHECK(p->label(InstanceId(2)) == "simulate[grid=64,alpha=0.2]");
  CHECK(p->label(InstanceId(4)) == "simulate[grid=128,alpha=0.1]");
  CHECK(p->item(InstanceId(8)) == "grid=128");
  CHECK(p->find("simulate", "grid=128,alpha=0.1") == InstanceId(4));
  CHECK_FALSE(p->find("simulate", "grid=1,alpha=0.1").valid());
  CHECK_FALSE(p->find("nothing", "").valid());
}

TEST_CASE("spec: joins are broadcast, gather and one-to-one by the keys both sides have") {
  SpecFolder folder;
  const auto p = folder.read(kPlate + R"(  copy:
    foreach: {alpha: [0.1, 0.2, 0.5], grid: [64, 128]}
    run: cp ${{ in.field }} ${{ out.x }}
    inputs: {field: simulate.field}
    outputs: {x: {file: x}}
  all:
    run: report ${{ in.fields }} ${{ in.scores }}
    inputs: {fields: simulate.field, scores: simulate.score}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  const TaskInput& mesh = p->tasks[1].inputs[0];
  CHECK(mesh.join == JoinKind::kBroadcast);
  CHECK_FALSE(mesh.is_list);
  CHECK(objects_of_input(*p, InstanceId(3), 0) == Texts{"mesh"});
  const TaskInput& fields = p->tasks[2].inputs[0];
  CHECK(fields.join == JoinKind::kGather);
  CHECK(fields.is_list);
  CHECK(fields.over == Texts{"alpha"});
  CHECK(objects_of_input(*p, p->find("mean", "grid=128"), 0) ==
        Texts{"simulate[grid=128,alpha=0.1]", "simulate[grid=128,alpha=0.2]",
              "simulate[grid=128,alpha=0.5]"});
  // The keys in another order are the same keys.
  CHECK(p->tasks[3].inputs[0].join == JoinKind::kOneToOne);
  CHECK(objects_of_input(*p, p->find("copy", "alpha=0.2,grid=128"), 0) ==
        Texts{"simulate[grid=128,alpha=0.2]"});
  CHECK(p->tasks[4].inputs[1].over == Texts{"grid", "alpha"});
  CHECK(objects_of_input(*p, p->find("all", ""), 1).size() == 6);
  // A join costs |A| + |B|: one group for mesh, 2 for mean, 6 for copy, 2 for all.
  CHECK(p->graph.group_count() == 1 + 2 + 6 + 2);
}

TEST_CASE("spec: resources, limits, retry, timeout and priority reach the scheduler") {
  SpecFolder folder;
  const auto p = folder.read(kPlate);
  REQUIRE_MESSAGE(p, folder.printed);
  const auto& request = p->graph.requests()[p->graph.task(TaskId(0)).request];
  CHECK(request.resources.cpus == 4);
  CHECK(request.resources.memory_bytes == int64_t{8} << 30U);
  REQUIRE(request.limits.size() == 1);
  CHECK(request.limits[0].amount == 2 * scheduler::kAmountUnit);
  CHECK(p->graph.limits()[0].name == "licence");
  CHECK(p->graph.limits()[0].total == 5 * scheduler::kAmountUnit);
  const auto& simulate = p->graph.task(TaskId(1));
  CHECK(simulate.timeout == scheduler::seconds(2700));
  CHECK(simulate.retry.max[static_cast<size_t>(scheduler::Cause::kExit)] == 2);
  CHECK(simulate.retry.max[static_cast<size_t>(scheduler::Cause::kTimeout)] == 1);
  CHECK(simulate.retry.max[static_cast<size_t>(scheduler::Cause::kOom)] == 0);
  CHECK(simulate.retry.exit_codes == std::vector<int32_t>{75, 76});
  CHECK(simulate.priority == 3);
  CHECK(simulate.on_failure == scheduler::OnFailure::kStop);
  CHECK(p->graph.task(TaskId(2)).grace == scheduler::seconds(30));
}

TEST_CASE("spec: what no task reads is a result, and what is kept") {
  SpecFolder folder;
  const auto p = folder.read(task(R"(  a:
    run: a
    outputs: {x: {file: x}, y: {file: y, keep: true}, z: {file: z}}
  b:
    run: b
    inputs: {x: a.x, y: a.y}
)"));
  REQUIRE_MESSAGE(p, folder.printed);
  const auto& outputs = p->graph.task(TaskId(0)).outputs;
  CHECK_FALSE(outputs[0].result);
  CHECK(outputs[1].result);
  CHECK(outputs[2].result);
}

TEST_CASE("spec: items are the text that was typed") {
  SpecFolder folder;
  const auto p = folder.read(task(R"(  a:
    foreach: {v: [no, 3.10, 3.1, 010, null, ~, "a b", 'x,y=z']}
    run: a ${{ item.v }}
)"));
  REQUIRE_MESSAGE(p, folder.printed);
  Texts values;
  for (const auto& item : p->tasks[0].items) {
    values.push_back(item[0]);
  }
  CHECK(values == Texts{"no", "3.10", "3.1", "010", "null", "~", "a b", "x,y=z"});
  CHECK(p->item(InstanceId(7)) == "v=x%2Cy%3Dz");
  CHECK(p->find("a", "v=x%2Cy%3Dz") == InstanceId(7));
}

TEST_CASE("spec: foreach takes ranges, cases and params") {
  SpecFolder folder;
  const auto p = folder.read(R"(sluice: 1
params: {n: {type: int, default: 3}}
tasks:
  r:
    foreach: {i: {range: [0, "${{ params.n }}"]}, x: {range: [0, 1, 0.5]}}
    run: r
  c:
    foreach:
    - {name: small, size: 1}
    - {size: 2, name: large}
    run: c
)");
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(p->tasks[0].items.size() == 6);
  CHECK(p->item(InstanceId(5)) == "i=2,x=0.5");
  CHECK(p->item(p->graph.instance(TaskId(1), 1)) == "name=large,size=2");
}

TEST_CASE("spec: --set replaces a default and its type is checked") {
  SpecFolder folder;
  auto p = folder.read(kPlate, {{"tol", "1e-5"}, {"grids", "[32, 64,96]"}});
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(p->params == std::vector<std::pair<std::string, std::string>>{{"tol", "1e-5"},
                                                                      {"grids", "[32, 64, 96]"}});
  CHECK(p->tasks[1].items.size() == 9);
  CHECK_FALSE(folder.read(kPlate, {{"tol", "small"}, {"grid", "1"}}));
  CHECK(folder.printed.find("--set tol=small: 'small' is not of type float") != std::string::npos);
  CHECK(
      folder.printed.find("--set grid=1: there is no param 'grid'\nhint: did you mean 'grids'?") !=
      std::string::npos);
}

TEST_CASE("spec: params are substituted before types are checked") {
  SpecFolder folder;
  const std::string spec = R"(sluice: 1
params: {n: {type: int, default: 4}, m: {type: string, default: 2GiB}}
tasks:
  a: {run: a, resources: {cpus: "${{ params.n * 2 }}", memory: "${{ params.m }}"}}
)";
  const auto p = folder.read(spec);
  REQUIRE_MESSAGE(p, folder.printed);
  const auto& request = p->graph.requests()[p->graph.task(TaskId(0)).request];
  CHECK(request.resources.cpus == 8);
  CHECK(request.resources.memory_bytes == int64_t{2} << 30U);
  CHECK_FALSE(folder.read(spec, {{"m", "2"}}));
  CHECK(folder.printed.find("'2' has no unit of memory (from '${{ params.m }}')") !=
        std::string::npos);
}

TEST_CASE("spec: a damaged spec is refused or read, never a crash") {
  const char* given = std::getenv("SLUICE_SEED");
  const unsigned long seed = given != nullptr ? std::stoul(given) : 20260101;
  MESSAGE("SLUICE_SEED=" << seed);
  std::mt19937_64 random(seed);
  const std::string bits = "{}[]:,#&*!|>'\"%@`- \n\t$x1.~?\\";
  SpecFolder folder;
  const char* rounds = std::getenv("SLUICE_ROUNDS");
  for (int round = rounds != nullptr ? std::stoi(rounds) : 150; round > 0; --round) {
    std::string text = round % 2 == 0 ? kPlate : kRules;
    for (uint64_t edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 8);
          break;
        case 1:
          text.insert(at, 1, bits[random() % bits.size()]);
          break;
        case 2:
          text[at] = bits[random() % bits.size()];
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
      }
    }
    const auto p = folder.read(text);
    const bool refused = folder.printed.find(" error") != std::string::npos;
    CHECK_MESSAGE(refused != p.has_value(), text);
    for (uint32_t i = 0; p && i < p->graph.instance_count(); ++i) {
      static const std::string kValue = "1";
      const auto spec = p->render(InstanceId(i),
                                  [](scheduler::ObjectId) -> const std::string& { return kValue; });
      CHECK((spec.ok() || !spec.error().message.empty()));
    }
  }
}

TEST_CASE("spec: a result's path is the item, encoded, cut and in buckets") {
  SpecFolder folder;
  const auto p = folder.read(task(R"(  one: {run: a, outputs: {x: {file: x.h5}}}
  few:
    foreach: {p: [a/b, ")" + std::string(300, 'l') +
                                  R"("], q: [0.1]}
    run: a
    outputs: {x: {file: x.h5}}
  many:
    foreach: {i: {range: [0, 1500]}}
    run: a
    outputs: {x: {file: x.h5}}
)"));
  REQUIRE_MESSAGE(p, folder.printed);
  const auto path = [&](const char* task, const std::string& item) {
    return p->result_path(p->graph.object(p->find(task, item), 0));
  };
  CHECK(path("one", "") == "results/one/x.h5");
  CHECK(path("few", "p=a/b,q=0.1") == "results/few/p=a%2Fb,q=0.1.x.h5");
  const std::string cut = path("few", "p=" + std::string(300, 'l') + ",q=0.1");
  CHECK(cut.size() == std::string("results/few/").size() + 200);
  CHECK(cut.find("~") != std::string::npos);
  CHECK(cut.substr(cut.size() - 5) == ".x.h5");
  CHECK(path("many", "i=7") == "results/many/00000/i=7.x.h5");
  CHECK(path("many", "i=1007") == "results/many/00001/i=1007.x.h5");
  CHECK(p->saved_path(p->graph.object(p->find("one", ""), 0)) == "objects/one/x.h5");
}

TEST_CASE("spec: thousands of items are joined through as many groups, not their product") {
  SpecFolder folder;
  const auto p = folder.read(task(R"(  a:
    foreach: {i: {range: [0, 5000]}}
    run: a ${{ item.i }} ${{ out.x }}
    outputs: {x: {file: x}}
  b:
    foreach: {i: {range: [0, 5000]}}
    run: b ${{ in.x }}
    inputs: {x: a.x}
  c:
    run: c ${{ in.x }}
    inputs: {x: a.x}
)"));
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(p->graph.group_count() == 5'001);
}
