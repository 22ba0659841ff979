#include "engine/key_parts.h"

#include <doctest/doctest.h>

#include <map>

#include "tests/support/spec_folder.h"

using namespace sluice;
using engine::differing_parts;
using engine::key_part_names;
using engine::KeyParts;
using scheduler::Hash128;
using scheduler::InstanceId;
using scheduler::ObjectId;
using scheduler::TaskId;
using Names = std::vector<std::string>;

namespace {

constexpr const char* kSpec = R"(sluice: 1
params: {tol: {type: string, default: "1"}}
tasks:
  make:
    foreach: {n: [1, 2]}
    run: ./make.sh ${{ item.n }} ${{ out.part }}
    outputs: {part: {file: part}}
  sum:
    sh: |
      echo "$PARAM_tol" >"$OUT_s"
    inputs: {parts: make.part, obs: {file: obs}}
    outputs: {s: {file: s}}
    uses: [lib.py]
    env: {LEVEL: "3"}
)";

// The digits of `sum` (or another instance) with the contents 1, 2, … of the objects.
std::string digits_of(const io::Pipeline& pipeline, const std::string& task, uint64_t first = 1) {
  KeyParts parts(pipeline, [&](ObjectId object) { return Hash128{first, object.value + 1U}; });
  const InstanceId instance = pipeline.find(task, task == "make" ? "n=1" : "");
  return parts.digits(instance);
}

Names changed(test::SpecFolder& folder, const std::string& before, const std::string& after,
              const std::string& task, uint64_t other_contents = 1) {
  const auto old = folder.read(before);
  REQUIRE_MESSAGE(old, folder.printed);
  const TaskId id = old->graph.task_of(old->find(task, task == "make" ? "n=1" : ""));
  const Names old_names = key_part_names(*old, id);
  const std::string old_digits = digits_of(*old, task);
  const auto now = folder.read(after);
  REQUIRE_MESSAGE(now, folder.printed);
  return differing_parts(old_names, old_digits, key_part_names(*now, id),
                         digits_of(*now, task, other_contents));
}

std::string with(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

// UC-085, UC-086, UC-087
TEST_CASE("key parts: what changed is named, and only that") {
  test::SpecFolder folder;
  folder.write_program("make.sh", "#!/bin/sh\n");
  folder.write("obs", "1");
  folder.write("lib.py", "1");
  const auto same = [&](const std::string& after, const std::string& task) {
    return changed(folder, kSpec, after, task);
  };
  const std::string spec = kSpec;
  CHECK(same(spec, "sum").empty());
  CHECK(same(with(spec, "  make:\n", "  make:  # a comment\n    priority: 3\n"), "make").empty());
  CHECK(same(with(spec, "./make.sh ${{", "./make.sh  -v ${{"), "make") == Names{"command"});
  CHECK(same(with(spec, "{file: part}", "{file: other}"), "make") == Names{"outputs"});
  CHECK(same(with(spec, "echo", "printf %s"), "sum") == Names{"command"});
  CHECK(same(with(spec, "default: \"1\"", "default: \"2\""), "sum") == Names{"param tol"});
  CHECK(same(with(spec, "LEVEL: \"3\"", "LEVEL: \"4\""), "sum") == Names{"environment"});
  CHECK(same(with(spec, "    env: {LEVEL: \"3\"}\n", ""), "sum") == Names{"environment"});
  CHECK(same(with(spec, "    uses: [lib.py]\n", ""), "sum") == Names{"uses lib.py"});
  CHECK(changed(folder, kSpec, kSpec, "sum", 9) == Names{"input parts"});
}

// UC-086
TEST_CASE("key parts: a file whose content changed is named by what reads it") {
  test::SpecFolder folder;
  folder.write_program("make.sh", "#!/bin/sh\n");
  folder.write("obs", "1");
  folder.write("lib.py", "1");
  const auto old = folder.read(kSpec);
  REQUIRE_MESSAGE(old, folder.printed);
  folder.write_program("make.sh", "#!/bin/sh\ntrue\n");
  folder.write("obs", "2");
  folder.write("lib.py", "2");
  const auto now = folder.read(kSpec);
  REQUIRE_MESSAGE(now, folder.printed);
  const auto differing = [&](const std::string& task, TaskId id) {
    return differing_parts(key_part_names(*old, id), digits_of(*old, task),
                           key_part_names(*now, id), digits_of(*now, task));
  };
  CHECK(differing("make", TaskId(0)) == Names{"file in word 1"});
  CHECK(differing("sum", TaskId(1)) == Names{"uses lib.py", "input obs"});
}

TEST_CASE("key parts: an item with a part that others have not keeps the rows apart") {
  test::SpecFolder folder;
  folder.write_program("b.sh", "#!/bin/sh\n");
  const auto p = folder.read(R"(sluice: 1
tasks:
  t:
    foreach: [{w: /bin/a}, {w: ./b.sh}, {w: /bin/c}]
    run: ${{ item.w }}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(p->tasks[0].key_parts.size() * 3 == p->tasks[0].key_part_hashes.size());
  CHECK(key_part_names(*p, TaskId(0)).back() == "file in word 1");
  KeyParts parts(*p, [](ObjectId) { return Hash128{}; });
  CHECK(parts.digits(InstanceId(0)).ends_with("000000"));
  CHECK(!parts.digits(InstanceId(1)).ends_with("000000"));
  CHECK(parts.digits(InstanceId(2)).ends_with("000000"));
}

TEST_CASE("key parts: a content that is not known yet has zeros") {
  test::SpecFolder folder;
  folder.write_program("make.sh", "#!/bin/sh\n");
  folder.write("obs", "1");
  folder.write("lib.py", "1");
  const auto p = folder.read(kSpec);
  REQUIRE_MESSAGE(p, folder.printed);
  std::map<uint32_t, Hash128> known = {{0, {1, 1}}};
  KeyParts parts(*p, [&](ObjectId object) { return known[object.value]; });
  const InstanceId sum = p->find("sum", "");
  CHECK(parts.digits(sum).ends_with("000000"));
  known[1] = {2, 2};
  CHECK(!parts.digits(sum).ends_with("000000"));
}
