#include "engine/resume.h"

#include <doctest/doctest.h>

#include <iostream>

#include "io/manifest.h"
#include "io/sources.h"
#include "io/spec.h"
#include "tests/support/temporary_folder.h"

namespace sluice::engine {
namespace {

using io::record::DoneRecord;
using io::record::Durable;
using Facts = io::JournalState::InstanceFacts;
using scheduler::Hash128;
using scheduler::InstanceId;

const std::filesystem::path kRun = "/run";

// parts x2 --gather--> sum (a result), and a value of each part
constexpr const char* kSpec = R"(sluice: 1
name: sums
tasks:
  part:
    foreach: {k: [1, 2]}
    sh: echo "$ITEM_k" | tee "$OUT_number" > "$OUT_data"
    outputs: {data: {file: data.txt}, number: {value: int}}
  sum:
    sh: cat $(cat "$IN_parts") > "$OUT_total"
    inputs: {parts: part.data}
    outputs: {total: {file: total.txt}}
)";

io::Pipeline read_spec(const std::string& text) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "sums.yaml", text);
  io::FileSourceIds sources;
  io::Diagnostics diagnostics;
  auto pipeline = io::read_pipeline({folder / "sums.yaml", {}, {}}, sources, diagnostics);
  if (!pipeline) diagnostics.print(std::cerr);
  REQUIRE(pipeline.has_value());
  return std::move(*pipeline);
}

// A run directory in memory and what its journal says.
struct World {
  io::FakeFiles files;
  io::JournalState journal;

  Facts& facts(const std::string& task, const std::string& item) {
    return journal.instances[{task, item}];
  }
  void done(const std::string& item) {
    Facts& f = facts("part", item);
    f.done = DoneRecord{};
    f.done->key = {1, 1};
    f.done->outputs = {{"number", io::hash_text(item), 0, true, "7"},
                       {"data", io::hash_text("bytes of " + item), size(item), false, ""}};
    f.done_synced = true;
  }
  void durable(const std::string& item, const std::string& place, const std::string& temporary) {
    facts("part", item).durable["data"] = Durable{
        "part", item, "data", place, temporary, io::hash_text("bytes of " + item), size(item)};
  }
  void file(const std::string& item, const std::string& place) {
    REQUIRE(files.replace(kRun / place, "bytes of " + item).ok());
  }
  static int64_t size(const std::string& item) {
    return static_cast<int64_t>(("bytes of " + item).size());
  }
  Resume resume(const io::Pipeline& pipeline) {
    return engine::resume(journal, pipeline, kRun, files,
                          [this](const auto& path) -> Expected<Hash128> {
                            const auto content = files.read(path);
                            if (!content) return content.error();
                            return io::hash_text(*content);
                          });
  }
  bool exists(const std::string& place) { return files.size(kRun / place).ok(); }
};

// Of the only restored instance: is its file (output 0, 'data') durable?
bool data_is_durable(const Resume& resume) {
  REQUIRE(resume.restored.size() == 1);
  REQUIRE(resume.restored[0].durable.size() == 2);
  CHECK(resume.restored[0].durable[1]);  // the value always is
  return resume.restored[0].durable[0];
}

bool says(const Resume& resume, const std::string& part) {
  for (const std::string& message : resume.messages) {
    if (message.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("resume: an empty journal restores nothing") {
  World world;
  const Resume resume = world.resume(read_spec(kSpec));
  CHECK(resume.restored.empty());
  CHECK(resume.messages.empty());
}

TEST_CASE("resume: a finished instance comes back in the spec's order of outputs") {
  const io::Pipeline pipeline = read_spec(kSpec);
  World world;
  world.done("k=2");
  world.done("k=1");
  const Resume resume = world.resume(pipeline);
  REQUIRE(resume.restored.size() == 2);
  CHECK(resume.restored[0].instance == pipeline.find("part", "k=1"));
  CHECK(resume.restored[1].instance == pipeline.find("part", "k=2"));
  const auto& first = resume.restored[0];
  CHECK(first.key == Hash128{1, 1});
  REQUIRE(first.outputs.size() == 2);
  CHECK(first.outputs[0].content == io::hash_text("bytes of k=1"));
  CHECK(first.outputs[0].bytes == World::size("k=1"));
  CHECK(first.outputs[1].value == "7");
  CHECK(first.durable == std::vector<bool>{false, true});
  CHECK(resume.messages.empty());  // nobody said that the file was durable
}

TEST_CASE("resume: a failed or unfinished instance is not restored") {
  World world;
  world.facts("part", "k=1").last_failure = std::make_unique<io::record::Attempt>();
  CHECK(world.resume(read_spec(kSpec)).restored.empty());
}

TEST_CASE("resume: a saved file is durable when it is there with its size") {
  const io::Pipeline pipeline = read_spec(kSpec);
  const scheduler::ObjectId object = pipeline.graph.object(pipeline.find("part", "k=1"), 0);
  const std::string place = pipeline.saved_path(object);
  World world;
  world.done("k=1");
  world.durable("k=1", place, "results/.tmp/1.5");
  SUBCASE("there") {
    world.file("k=1", place);
    const Resume resume = world.resume(pipeline);
    CHECK(data_is_durable(resume));
    CHECK(resume.durable_paths.at(object) == place);
    CHECK(resume.hashed_files == 0);
    CHECK(resume.moved.empty());
  }
  SUBCASE("missing") {
    const Resume resume = world.resume(pipeline);
    CHECK_FALSE(data_is_durable(resume));
    CHECK(says(resume, "'" + place + "' is missing; it is made again"));
  }
  SUBCASE("of another size") {
    REQUIRE(world.files.replace(kRun / place, "short").ok());
    const Resume resume = world.resume(pipeline);
    CHECK_FALSE(data_is_durable(resume));
    CHECK(says(resume, "'" + place + "' has 5 bytes, 12 were recorded"));
  }
  SUBCASE("of other content than the instance recorded") {
    world.file("k=1", place);
    world.facts("part", "k=1").durable["data"].content = {3, 3};
    CHECK_FALSE(data_is_durable(world.resume(pipeline)));
  }
}

// A directory is looked at where it really is.
TEST_CASE("resume: a saved directory is durable when all of it is there and nothing newer") {
  const io::Pipeline pipeline = read_spec(R"(sluice: 1
name: trees
tasks:
  make:
    sh: mkdir "$OUT_parts"
    outputs: {parts: {dir: parts}}
)");
  const test::TemporaryFolder run;
  const InstanceId make = pipeline.find("make", "");
  const std::string place = pipeline.result_path(pipeline.graph.object(make, 0));
  const std::string temporary = "results/.tmp/1.5";
  const auto put = [&run](const std::string& where) {
    std::filesystem::create_directories(run / where);
    test::write_text(run / where / "a", "one");
    test::write_text(run / where / "b/c", "three");
  };
  put("reference");
  io::JournalState journal;
  journal.last_time_ms = 9'000'000'000'000;  // far ahead of the files
  Facts& facts = journal.instances[{"make", ""}];
  facts.done = DoneRecord{};
  facts.done->outputs = {{"parts", *io::hash_object(run / "reference"), 8, false, ""}};
  facts.done_synced = true;
  facts.durable["parts"] =
      Durable{"make", "", "parts", place, temporary, facts.done->outputs[0].content, 8};
  const auto resumed = [&] { return engine::resume(journal, pipeline, run.path()); };
  const auto durable = [](const Resume& resume) { return resume.restored.at(0).durable.at(0); };
  SUBCASE("there") {
    put(place);
    const Resume resume = resumed();
    CHECK(durable(resume));
    CHECK(resume.hashed_files == 0);
  }
  SUBCASE("missing") { CHECK(says(resumed(), "'" + place + "' is missing")); }
  SUBCASE("a file of it is missing") {
    put(place);
    std::filesystem::remove(run / place / "a");
    const Resume resume = resumed();
    CHECK_FALSE(durable(resume));
    CHECK(says(resume, "'" + place + "' has 5 bytes, 8 were recorded"));
  }
  SUBCASE("a file is there instead") {
    test::write_text(run / place, "12345678");
    CHECK_FALSE(durable(resumed()));
  }
  SUBCASE("something in it was changed since, to the same size") {
    put(place);
    journal.last_time_ms = 0;
    CHECK(durable(resumed()));
    CHECK(resumed().hashed_files == 1);
    test::write_text(run / place / "b/c", "seven");
    CHECK_FALSE(durable(resumed()));
  }
  SUBCASE("a rename that was cut short, with an older directory in the way") {
    put(temporary);
    put(place);
    test::write_text(run / place / "a", "old");
    CHECK(durable(resumed()));
    CHECK(test::read_text(run / place / "a") == "one");
    CHECK_FALSE(std::filesystem::exists(run / temporary));
    CHECK(std::filesystem::is_empty((run / temporary).parent_path()));
  }
}

TEST_CASE("resume: a rename that was cut short is completed") {
  const io::Pipeline pipeline = read_spec(kSpec);
  const std::string place =
      pipeline.saved_path(pipeline.graph.object(pipeline.find("part", "k=1"), 0));
  World world;
  world.done("k=1");
  world.durable("k=1", place, "results/.tmp/1.5");
  world.file("k=1", "results/.tmp/1.5");
  SUBCASE("nothing was there before") {}
  SUBCASE("an older file of the same size lies there") {
    REQUIRE(world.files.replace(kRun / place, "BYTES of k=1").ok());
  }
  const Resume resume = world.resume(pipeline);
  CHECK(data_is_durable(resume));
  CHECK(*world.files.read(kRun / place) == "bytes of k=1");
  CHECK_FALSE(world.exists("results/.tmp/1.5"));
  CHECK(resume.moved.empty());  // it lies where the record says
}

TEST_CASE("resume: what no sync came after is hashed before it is trusted") {
  const io::Pipeline pipeline = read_spec(kSpec);
  const std::string place =
      pipeline.saved_path(pipeline.graph.object(pipeline.find("part", "k=1"), 0));
  World world;
  world.done("k=1");
  world.durable("k=1", place, "");
  SUBCASE("the done record") { world.facts("part", "k=1").done_synced = false; }
  SUBCASE("the durable record") { world.facts("part", "k=1").unsynced.insert("data"); }
  world.file("k=1", place);
  const Resume good = world.resume(pipeline);
  CHECK(data_is_durable(good));
  CHECK(good.hashed_files == 1);
  REQUIRE(world.files.replace(kRun / place, "BYTES of k=1").ok());
  const Resume bad = world.resume(pipeline);
  CHECK_FALSE(data_is_durable(bad));
  CHECK(says(bad, "has other bytes than recorded"));
}

TEST_CASE("resume: an intermediate that is a result now moves into results, once") {
  const io::Pipeline pipeline = read_spec(
      std::string(kSpec).replace(std::string(kSpec).find("data.txt}"), 9, "data.txt, keep: true}"));
  const scheduler::ObjectId object = pipeline.graph.object(pipeline.find("part", "k=1"), 0);
  const std::string wanted = pipeline.result_path(object);
  World world;
  world.done("k=1");
  world.durable("k=1", pipeline.saved_path(object), "");
  world.file("k=1", pipeline.saved_path(object));
  const Resume first = world.resume(pipeline);
  CHECK(data_is_durable(first));
  CHECK(world.exists(wanted));
  CHECK(first.durable_paths.at(object) == wanted);
  REQUIRE(first.moved.size() == 1);
  CHECK(first.moved[0].path == wanted);
  // Killed before the move was journalled: the file under its new name is hashed, then trusted.
  const Resume second = world.resume(pipeline);
  CHECK(data_is_durable(second));
  CHECK(second.hashed_files == 1);
  CHECK(second.moved.size() == 1);
}

TEST_CASE("resume: instances that the spec no longer has are counted and said once") {
  World world;
  world.done("k=8");
  world.done("k=9");
  world.durable("k=8", "objects/part/k=8.data.txt", "");
  world.durable("k=9", "results/part/k=9.data.txt", "");
  const Resume resume = world.resume(read_spec(kSpec));
  CHECK(resume.restored.empty());
  CHECK(resume.gone.size() == 2);
  CHECK(resume.orphans == std::vector<std::string>{"objects/part/k=8.data.txt"});
  REQUIRE(resume.messages.size() == 1);
  CHECK(says(resume, "2 finished instances are not in the spec any more (the first: 'part[k=8]')"));
  CHECK(says(resume, "1 intermediate files"));
}

TEST_CASE("resume: an instance whose outputs are others now is not restored") {
  World world;
  world.done("k=1");
  SUBCASE("one has no record") { world.facts("part", "k=1").done->outputs.pop_back(); }
  SUBCASE("one was a value") { world.facts("part", "k=1").done->outputs[1].is_value = true; }
  CHECK(world.resume(read_spec(kSpec)).restored.empty());
}

TEST_CASE("resume: many missing files are a few lines") {
  std::string items = "1";
  for (int i = 2; i <= 20; ++i) items += ", " + std::to_string(i);
  const io::Pipeline pipeline = read_spec(
      std::string(kSpec).replace(std::string(kSpec).find("[1, 2]"), 6, "[" + items + "]"));
  World world;
  for (int i = 1; i <= 20; ++i) {
    const std::string item = "k=" + std::to_string(i);
    world.done(item);
    world.durable(item, "objects/part/" + item + ".data.txt", "");
  }
  const Resume resume = world.resume(pipeline);
  CHECK(resume.restored.size() == 20);
  CHECK(resume.messages.size() == 6);
  CHECK(says(resume, "and 15 more"));
}

}  // namespace sluice::engine
