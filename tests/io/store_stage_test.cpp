#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>

#include "io/store.h"
#include "io/wire.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using io::Piece;
using scheduler::AttemptId;
using scheduler::ObjectId;
using scheduler::OutputKind;
using sluice::test::read_text;
using sluice::test::TemporaryFolder;
using sluice::test::write_text;
namespace fs = std::filesystem;

namespace {

constexpr AttemptId kAttempt = AttemptId::make(1, 1);

Piece text(const std::string& t) { return {Piece::Kind::kText, 0, t}; }
Piece input(uint32_t i) { return {Piece::Kind::kInput, i, ""}; }
Piece input_paths(uint32_t i) { return {Piece::Kind::kInputPaths, i, ""}; }
Piece output(uint32_t i) { return {Piece::Kind::kOutput, i, ""}; }

io::InputSpec one_file(const std::string& name, const std::string& file) {
  io::InputSpec spec;
  spec.name = name;
  spec.files.push_back({ObjectId(1), "", file, "", ""});
  return spec;
}
io::InputSpec values(const std::string& name, io::ValueType type, bool is_list,
                     const std::vector<std::string>& texts) {
  io::InputSpec spec;
  spec.name = name;
  spec.kind = OutputKind::kValue;
  spec.is_list = is_list;
  spec.value_type = type;
  if (is_list) spec.keys = {"k"};
  for (size_t i = 0; i < texts.size(); ++i) {
    spec.files.push_back({ObjectId(i), "", "", "k=" + std::to_string(i), texts[i]});
  }
  return spec;
}

struct Fixture {
  TemporaryFolder folder;
  io::Store store =
      std::move(io::Store::create({folder / "memory", folder / "node.disk"}, 1 << 20).value());
  io::AttemptSpec spec;
  std::vector<std::string> paths;

  Fixture() {
    spec.pipeline_folder = "/pipeline";
    io::AttemptOutput field;
    field.name = "field";
    field.file_name = "field.h5";
    spec.outputs = {field};
    spec.words = {{text("prog")}};
  }
  io::StagedAttempt stage() {
    auto staged = store.stage(kAttempt, spec, paths);
    REQUIRE_MESSAGE(staged.ok(), (staged.ok() ? "" : staged.error().message));
    return *staged;
  }
};

std::map<std::string, std::string> as_map(const io::StagedAttempt& staged) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : staged.environment) out[name] = value;
  return out;
}

}  // namespace

TEST_CASE("stage: the attempt's directory is empty but for links to its inputs") {
  Fixture f;
  write_text(f.folder / "data/mesh.h5", "mesh");
  f.spec.inputs = {one_file("mesh", "mesh.h5")};
  f.paths = {f.folder / "data/mesh.h5"};
  const auto staged = f.stage();
  const fs::path work = staged.working_directory;
  CHECK(read_text(work / "in/mesh/mesh.h5") == "mesh");
  CHECK(fs::read_symlink(work / "in/mesh/mesh.h5") == f.paths[0]);
  CHECK(std::distance(fs::directory_iterator(work), {}) == 1);
  auto variables = as_map(staged);
  CHECK(variables["IN_mesh"] == work / "in/mesh/mesh.h5");
  CHECK_FALSE(variables.contains("IN_mesh_ITEMS"));
  CHECK(variables["OUT_field"] == work / "field.h5");
  CHECK(staged.output_paths[0] == work / "field.h5");
  CHECK(variables["PIPELINE_DIR"] == "/pipeline");
}

// UC-018, UC-110
TEST_CASE("stage: 50 000 gathered inputs travel in one message and become one list, in order") {
  constexpr size_t kCount = 50'000;
  Fixture f;
  io::InputSpec parts;
  parts.name = "parts";
  parts.is_list = true;
  parts.keys = {"k"};
  for (size_t i = 0; i < kCount; ++i) {
    const std::string item = "k=" + std::to_string(i);
    parts.files.push_back({ObjectId(i), "", item + ".part.h5", item, ""});
    f.paths.push_back("/dev/shm/sluice.0.4242.123456789.0/o/" + std::to_string(i));
  }
  f.spec.inputs = {parts};
  io::message::Start start;
  start.decision.attempt = kAttempt;
  start.spec = f.spec;
  const auto arrived = io::decode(io::encode(start));
  REQUIRE(arrived.ok());
  f.spec = std::get<io::message::Start>(*arrived).spec;
  auto variables = as_map(f.stage());
  std::string list;
  std::string items = "k\tpath\n";
  for (size_t i = 0; i < kCount; ++i) {
    list += f.paths[i] + "\n";
    items += std::to_string(i) + "\t" + f.paths[i] + "\n";
  }
  CHECK(read_text(variables["IN_parts"]) == list);
  CHECK(read_text(variables["IN_parts_ITEMS"]) == items);
}

TEST_CASE("stage: TMPDIR is private, exists, is on node disk and not in the directory") {
  Fixture f;
  const auto staged = f.stage();
  const fs::path temporary = as_map(staged)["TMPDIR"];
  CHECK(fs::is_directory(temporary));
  CHECK(temporary.string().starts_with((f.folder / "node.disk").string()));
  CHECK(fs::is_empty(staged.working_directory));
  CHECK(fs::is_directory(staged.stream_directory));
}

TEST_CASE("stage: a TMPDIR that was left empty is used again, any other is removed") {
  Fixture f;
  const auto temporary = [&](uint32_t number) {
    const auto staged = f.store.stage(AttemptId::make(1, number), f.spec, f.paths);
    REQUIRE(staged.ok());
    return fs::path(as_map(*staged)["TMPDIR"]);
  };
  const auto clean = [&](uint32_t number) {
    REQUIRE(f.store.clean(AttemptId::make(1, number)).ok());
  };
  const fs::path first = temporary(1);
  CHECK(temporary(2) != first);  // both run
  clean(1);
  CHECK(temporary(3) == first);
  write_text(first / "left", "secret");
  clean(3);
  CHECK_FALSE(fs::exists(first));
  const fs::path next = temporary(4);
  CHECK(fs::is_empty(next));
  REQUIRE(::chmod(next.c_str(), 0755) == 0);  // others may enter: not as it was made
  clean(4);
  CHECK_FALSE(fs::exists(next));
  const fs::path gone = temporary(5);
  fs::remove(gone);
  clean(5);
  CHECK(fs::is_directory(temporary(6)));
}

TEST_CASE("stage: words are joined from their pieces") {
  Fixture f;
  f.spec.inputs = {one_file("mesh", "mesh.h5"), values("n", io::ValueType::kInt, false, {"64"})};
  f.paths = {"/data/mesh.h5", ""};
  f.spec.words = {{text("prog")}, {text("--in="), input(0), text(",x")}, {output(0)}, {input(1)}};
  const auto staged = f.stage();
  const std::string work = staged.working_directory;
  CHECK(staged.argv == std::vector<std::string>{"prog", "--in=" + work + "/in/mesh/mesh.h5,x",
                                                work + "/field.h5", "64"});
}

TEST_CASE("stage: a script runs by bash from a file, as it was written") {
  Fixture f;
  f.spec.words.clear();
  f.spec.script = "echo \"$IN_x\" | tr a b\n";
  const auto staged = f.stage();
  REQUIRE(staged.argv.size() == 6);
  CHECK(staged.argv[0].ends_with("bash"));
  CHECK(staged.argv[1] == "-euo");
  CHECK(staged.argv[2] == "pipefail");
  CHECK(staged.argv[3] == "-c");
  CHECK(read_text(staged.argv[5]) == f.spec.script);
  CHECK(staged.setup_state_path.empty());
  CHECK(fs::is_empty(staged.working_directory));
}

TEST_CASE("stage: setup runs before the words, which follow it") {
  Fixture f;
  f.spec.setup = "export A=1\n";
  f.spec.words = {{text("prog")}, {text("a b")}};
  const auto staged = f.stage();
  REQUIRE(staged.argv.size() == 8);
  CHECK(read_text(staged.argv[5]) == f.spec.setup);
  CHECK(staged.argv[6] == "prog");
  CHECK(staged.argv[7] == "a b");
  CHECK(fs::file_size(staged.setup_state_path) > 0);
  CHECK(staged.failed_line_path.empty());
}

TEST_CASE("stage: stdin is an input's file, its list file, or a file with the text of a value") {
  Fixture f;
  write_text(f.folder / "mesh.h5", "mesh");
  io::InputSpec list = values("list", io::ValueType::kInt, true, {"1", "2"});
  f.spec.inputs = {one_file("mesh", "mesh.h5"), list,
                   values("n", io::ValueType::kString, false, {"a b"})};
  f.paths = {f.folder / "mesh.h5", "", "", ""};
  SUBCASE("none") { CHECK(f.stage().stdin_path.empty()); }
  SUBCASE("file") {
    f.spec.stdin_input = 0;
    CHECK(read_text(f.stage().stdin_path) == "mesh");
  }
  SUBCASE("list") {
    f.spec.stdin_input = 1;
    CHECK(read_text(f.stage().stdin_path) == "1\n2\n");
  }
  SUBCASE("value") {
    f.spec.stdin_input = 2;
    CHECK(read_text(f.stage().stdin_path) == "a b\n");
  }
}

TEST_CASE("stage: stdout is the path of the output that it becomes") {
  Fixture f;
  CHECK(f.stage().stdout_path.empty());
  CHECK(f.store.clean(kAttempt));
  f.spec.stdout_output = 0;
  const auto staged = f.stage();
  CHECK(staged.stdout_path == staged.output_paths[0]);
}

TEST_CASE("stage: an input with a name of its own is at the top of the directory") {
  Fixture f;
  write_text(f.folder / "data/mesh.h5", "mesh");
  f.spec.inputs = {one_file("mesh", "mesh.h5")};
  f.spec.inputs[0].placed_as = "my mesh.h5";
  f.paths = {f.folder / "data/mesh.h5"};
  const auto staged = f.stage();
  const fs::path placed = fs::path(staged.working_directory) / "my mesh.h5";
  CHECK(read_text(placed) == "mesh");
  CHECK(as_map(staged)["IN_mesh"] == placed);
  CHECK(std::distance(fs::directory_iterator(staged.working_directory), {}) == 1);
}

TEST_CASE("stage: programs that start in the pipeline folder still write to the directory") {
  Fixture f;
  f.spec.in_pipeline_folder = true;
  const auto staged = f.stage();
  CHECK(staged.working_directory == "/pipeline");
  CHECK(staged.output_paths[0].ends_with("/w/field.h5"));
}

TEST_CASE("stage: a gather is a list file in item order, with its items beside it") {
  Fixture f;
  io::InputSpec fields = one_file("fields", "field.h5");
  fields.is_list = true;
  fields.keys = {"alpha", "name"};
  fields.files = {{ObjectId(1), "", "field.h5", "alpha=0.1,name=a%2Cb%3D%25", ""},
                  {ObjectId(2), "", "field.h5", "alpha=0.2,name=x%09", ""}};
  f.spec.inputs = {fields};
  f.paths = {"/store/o/1", "/store/o/2"};
  f.spec.words = {{text("prog")}, {input(0)}, {input_paths(0)}};
  const auto staged = f.stage();
  auto variables = as_map(staged);
  CHECK(read_text(variables["IN_fields"]) == "/store/o/1\n/store/o/2\n");
  CHECK(read_text(variables["IN_fields_ITEMS"]) ==
        "alpha\tname\tpath\n0.1\ta,b=%\t/store/o/1\n0.2\tx%09\t/store/o/2\n");
  CHECK(staged.argv ==
        std::vector<std::string>{"prog", variables["IN_fields"], "/store/o/1", "/store/o/2"});
  CHECK(fs::is_empty(staged.working_directory));
}

TEST_CASE("stage: an empty gather is an empty list and no words") {
  Fixture f;
  io::InputSpec fields = one_file("fields", "field.h5");
  fields.is_list = true;
  fields.files.clear();
  f.spec.inputs = {fields};
  f.spec.words = {{text("prog")}, {input_paths(0)}};
  const auto staged = f.stage();
  CHECK(staged.argv == std::vector<std::string>{"prog"});
  CHECK(fs::is_regular_file(as_map(staged)["IN_fields"]));
  CHECK(read_text(as_map(staged)["IN_fields"]).empty());
}

TEST_CASE("stage: a name with a line break is linked under an encoded one") {
  Fixture f;
  SUBCASE("one file") {
    f.spec.inputs = {one_file("x", "a\nb%.txt")};
    f.paths = {"/data/a\nb%.txt"};
    CHECK(as_map(f.stage())["IN_x"].ends_with("/in/x/a%0Ab%25.txt"));
  }
  SUBCASE("in a list, whose file has one path a line") {
    io::InputSpec list = one_file("x", "a\nb.txt");
    list.is_list = true;
    f.spec.inputs = {list};
    f.paths = {"/data/a\nb.txt"};
    const auto staged = f.stage();
    const std::string linked = staged.working_directory + "/in/x/0.a%0Ab.txt";
    CHECK(read_text(as_map(staged)["IN_x"]) == linked + "\n");
    CHECK(fs::read_symlink(linked) == f.paths[0]);
  }
}

TEST_CASE("stage: gathered values are JSON lines of their type") {
  Fixture f;
  f.spec.inputs = {values("i", io::ValueType::kInt, true, {"1", "-2"}),
                   values("s", io::ValueType::kString, true, {"a\"b", "two\nlines"}),
                   values("l", io::ValueType::kList, true, {"[1,\n 2]"}),
                   values("b", io::ValueType::kBool, true, {"true"})};
  f.paths = {"", "", "", "", "", ""};
  auto variables = as_map(f.stage());
  CHECK(read_text(variables["IN_i"]) == "1\n-2\n");
  CHECK(read_text(variables["IN_s"]) == "\"a\\\"b\"\n\"two\\nlines\"\n");
  CHECK(read_text(variables["IN_l"]) == "[1,  2]\n");
  CHECK(read_text(variables["IN_b"]) == "true\n");
  CHECK(read_text(variables["IN_i_ITEMS"]) == "k\tvalue\n0\t1\n1\t-2\n");
}

TEST_CASE("stage: a single value is the text itself") {
  Fixture f;
  f.spec.inputs = {values("s", io::ValueType::kString, false, {"two\nlines"})};
  f.paths = {""};
  CHECK(as_map(f.stage())["IN_s"] == "two\nlines");
}

TEST_CASE("stage: our variables come after the user's") {
  Fixture f;
  f.spec.environment = {{"TMPDIR", "/user"}, {"MINE", "1"}};
  auto variables = as_map(f.stage());
  CHECK(variables["MINE"] == "1");
  CHECK(variables["TMPDIR"] != "/user");
}

TEST_CASE("stage: an input without a copy on this node is named") {
  Fixture f;
  f.spec.inputs = {one_file("mesh", "mesh.h5")};
  f.paths = {""};
  const auto staged = f.store.stage(kAttempt, f.spec, f.paths);
  REQUIRE_FALSE(staged);
  CHECK(staged.error().message == "input 'mesh': no copy of 'mesh.h5' is on this node any more");
  CHECK(f.store.clean(kAttempt));
}

TEST_CASE("stage: paths beyond a command line are refused with the list file as remedy") {
  Fixture f;
  io::InputSpec list = one_file("x", "f");
  list.is_list = true;
  list.files.assign(1000, list.files[0]);
  f.spec.inputs = {list};
  f.spec.words = {{text("prog")}, {input_paths(0)}};
  SUBCASE("100 000 bytes pass") {
    f.paths.assign(1000, "/" + std::string(98, 'p'));
    CHECK(f.stage().argv.size() == 1001);
  }
  SUBCASE("more do not") {
    f.paths.assign(1000, "/" + std::string(99, 'p'));
    const auto staged = f.store.stage(kAttempt, f.spec, f.paths);
    REQUIRE_FALSE(staged);
    CHECK(staged.error().message ==
          "input 'x' has 1000 paths, 101000 bytes as words; at most 100000 fit on a command line: "
          "use ${{ in.x }}, a file with one path per line, instead of ${{ in.x.paths }}");
  }
}

TEST_CASE("stage: a word or variable that the system cannot pass is refused") {
  Fixture f;
  SUBCASE("word") {
    f.spec.words = {{text("prog")}, {text(std::string(131'072, 'x'))}};
    const auto staged = f.store.stage(kAttempt, f.spec, f.paths);
    REQUIRE_FALSE(staged);
    CHECK(staged.error().message.starts_with("word 2 of the command has 131072 bytes"));
    CHECK(staged.error().code == E2BIG);
  }
  SUBCASE("the longest word passes") {
    f.spec.words = {{text("prog")}, {text(std::string(131'071, 'x'))}};
    CHECK(f.stage().argv[1].size() == 131'071);
  }
  SUBCASE("variable") {
    f.spec.environment = {{"LONG", std::string(131'067, 'x')}};
    const auto staged = f.store.stage(kAttempt, f.spec, f.paths);
    REQUIRE_FALSE(staged);
    CHECK(staged.error().message.starts_with("the variable LONG has 131067 bytes"));
  }
}

TEST_CASE("stage: one attempt is staged once") {
  Fixture f;
  f.stage();
  CHECK_FALSE(f.store.stage(kAttempt, f.spec, f.paths));
}
