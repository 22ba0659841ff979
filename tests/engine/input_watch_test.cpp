#include "engine/input_watch.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "io/sources.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using scheduler::AttemptId;
using scheduler::ObjectId;
using scheduler::OutputKind;
using sluice::test::TemporaryFolder;
using sluice::test::write_text;
namespace fs = std::filesystem;

namespace {

// An object of the store as input 'part', a result of the run directory as input 'old'.
struct Fixture {
  TemporaryFolder folder;
  io::Store store{
      std::move(io::Store::create({folder / "memory", folder / "node.disk"}, 1 << 20).value())};
  io::AttemptSpec spec;
  std::vector<std::string> paths;
  engine::InputWatch watch;

  Fixture() {
    make();
    write_text(folder / "old.txt", "an older result");
    paths = {store.object_path(ObjectId(1)), folder / "old.txt", "/not/looked/at"};
    spec.inputs = {input("part", ObjectId(1)), input("old", ObjectId(2)), input("source", {})};
  }
  void make() {
    io::AttemptSpec producer;
    producer.label = "producer";
    producer.words = {{{io::Piece::Kind::kText, 0, "/bin/true"}}};
    producer.outputs.resize(1);
    producer.outputs[0].file_name = "part.txt";
    producer.outputs[0].object = ObjectId(1);
    const AttemptId attempt = AttemptId::make(1, ++attempts);
    write_text(store.stage(attempt, producer, {}).value().output_paths.at(0), "sealed bytes");
    REQUIRE(store.seal(attempt, producer, 0));
    store.remember_content(ObjectId(1), io::hash_text("sealed bytes"));
  }
  static io::InputSpec input(const std::string& name, ObjectId object) {
    io::InputSpec in;
    in.name = name;
    in.files.resize(1);
    in.files[0].object = object;
    in.files[0].file_name = name + ".txt";
    return in;
  }
  void write(size_t i, const std::string& text) const {
    REQUIRE(::chmod(paths[i].c_str(), 0644) == 0);
    write_text(paths[i], text);
  }
  uint32_t attempts = 0;
};

}  // namespace

TEST_CASE("input watch: nothing was changed, nothing is said") {
  Fixture f;
  CHECK(f.watch.begin(f.store, f.spec, f.paths).empty());
  CHECK(f.watch.changed(f.store) == "");
  CHECK(f.watch.lost(f.store).empty());
}

TEST_CASE("input watch: who wrote into an object is told, and the object is lost") {
  Fixture f;
  CHECK(f.watch.begin(f.store, f.spec, f.paths).empty());
  f.write(0, "sealed bytes and mine");
  CHECK(f.watch.changed(f.store) ==
        "input 'part': 'part.txt' was written to while this attempt ran (12 bytes before, 21 now); "
        "inputs are shared with other tasks: copy what must be changed");
  CHECK(f.watch.lost(f.store) == std::vector<ObjectId>{ObjectId(1)});
  engine::InputWatch next;
  CHECK(next.begin(f.store, f.spec, f.paths) == std::vector<ObjectId>{ObjectId(1)});
}

TEST_CASE("input watch: who read an object that was changed and made anew meanwhile is told too") {
  Fixture f;
  CHECK(f.watch.begin(f.store, f.spec, f.paths).empty());
  // The old file keeps its number as long as something has it open.
  const auto open = io::open_file(f.paths[0], O_RDONLY);
  f.write(0, "changed byte");
  f.make();
  CHECK(f.watch.changed(f.store) != "");
  CHECK(f.watch.lost(f.store).empty());
}

TEST_CASE("input watch: a result that is read in place is known by its size") {
  Fixture f;
  CHECK(f.watch.begin(f.store, f.spec, f.paths).empty());
  f.write(1, "one that is longer than before");
  CHECK(f.watch.changed(f.store).starts_with("input 'old': 'old.txt' was written to"));
  CHECK(f.watch.lost(f.store).empty());
  fs::remove(f.paths[1]);
  CHECK(f.watch.changed(f.store).starts_with("input 'old': 'old.txt' was removed"));
}

TEST_CASE("input watch: values and source files are others' business") {
  Fixture f;
  f.spec.inputs[0].kind = OutputKind::kValue;
  f.spec.inputs[1].files[0].object = {};
  CHECK(f.watch.begin(f.store, f.spec, f.paths).empty());
  f.write(0, "x");
  f.write(1, "x");
  CHECK(f.watch.changed(f.store) == "");
}
