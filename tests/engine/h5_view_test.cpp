// What sluice-h5 makes of HDF5 files, and how an attempt gets it.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "engine/input_views.h"
#include "io/checker.h"
#include "tests/support/h5_programs.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using engine::ViewRequest;
using io::H5View;
using sluice::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

void make_h5(const std::string& kind, const fs::path& file) {
  test::make_h5(SLUICE_MAKE_H5, kind, file);
}

io::AttemptSpec attempt_with(const H5View& view, size_t files) {
  io::AttemptSpec spec;
  io::InputSpec input;
  input.name = "u";
  input.kind = scheduler::OutputKind::kH5;
  input.view = view;
  for (size_t i = 0; i < files; ++i) {
    input.files.push_back({scheduler::ObjectId(i), "", "f.h5", "n=" + std::to_string(i), ""});
  }
  spec.inputs = {input};
  return spec;
}

H5View view_of(const std::string& dataset, int64_t first, int64_t end) {
  H5View view;
  view.dataset = dataset;
  view.first_row = first;
  view.end_row = end;
  return view;
}

H5View gathered(H5View::Gather gather) {
  H5View view;
  view.gather = gather;
  return view;
}

// Exit status of sluice-h5 for the attempt's only view; `made` is where that is.
int make(const io::AttemptSpec& spec, const std::vector<std::string>& paths, const fs::path& folder,
         fs::path& made) {
  const auto views = engine::prepare_views(spec, paths, folder);
  REQUIRE(views.ok());
  REQUIRE(views->size() == 1);
  made = views->front().request.path;
  const int status =
      test::wait_for(test::spawn({SLUICE_H5, "--view", io::encode(views->front().request)}));
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Where `numbers` lie as doubles in the file, at a multiple of 4 KiB; -1: nowhere.
int64_t place_of(const std::vector<double>& numbers, const fs::path& file) {
  const std::string bytes = bytes_of(file);
  const size_t size = numbers.size() * sizeof(double);
  for (size_t at = 0; at + size <= bytes.size(); at += 4096) {
    if (std::memcmp(bytes.data() + at, numbers.data(), size) == 0) return static_cast<int64_t>(at);
  }
  return -1;
}

std::vector<double> numbers(int first, int end) {
  std::vector<double> all;
  for (int i = first; i < end; ++i) all.push_back(i);
  return all;
}

}  // namespace

TEST_CASE("h5 view: rows of a dataset are contiguous and begin at a page") {
  const TemporaryFolder folder;
  make_h5("plain", folder.path() / "f.h5");
  fs::path made;
  REQUIRE(make(attempt_with(view_of("/u", 10, 20), 1), {folder.path() / "f.h5"}, folder.path(),
               made) == 0);
  CHECK(made == folder.path() / "u" / "f.h5");
  CHECK(place_of(numbers(10 * 64, 20 * 64), made) > 0);
  CHECK(fs::file_size(made) < 16384);  // and nothing else
  CHECK((fs::status(made).permissions() & fs::perms::all) ==
        (fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read));
}

TEST_CASE("h5 view: of a compressed dataset come the numbers themselves") {
  const TemporaryFolder folder;
  make_h5("compressed", folder.path() / "f.h5");
  fs::path made;
  REQUIRE(make(attempt_with(view_of("/u", 150, 350), 1), {folder.path() / "f.h5"}, folder.path(),
               made) == 0);
  CHECK(place_of(numbers(150 * 70, 350 * 70), made) > 0);
}

TEST_CASE("h5 view: the same sources give the same bytes") {
  const TemporaryFolder folder;
  make_h5("plain", folder.path() / "f.h5");
  make_h5("strings", folder.path() / "s.h5");
  for (const char* file : {"f.h5", "s.h5"}) {
    fs::path one;
    fs::path two;
    for (fs::path* made : {&one, &two}) {
      const fs::path own = folder.path() / (std::string(file) + (made == &one ? ".1" : ".2"));
      fs::create_directories(own);
      const std::string source = folder.path() / file;
      REQUIRE(make(attempt_with(gathered(H5View::Gather::kConcat), 2), {source, source}, own,
                   *made) == 0);
    }
    CHECK(bytes_of(one) == bytes_of(two));
  }
}

TEST_CASE("h5 view: files are gathered in their order, by rows or on a new axis") {
  const TemporaryFolder folder;
  make_h5("plain", folder.path() / "f.h5");
  const std::string source = folder.path() / "f.h5";
  for (const H5View::Gather gather : {H5View::Gather::kConcat, H5View::Gather::kStack}) {
    const fs::path own = folder.path() / std::to_string(static_cast<int>(gather));
    fs::create_directories(own);
    fs::path made;
    REQUIRE(make(attempt_with(gathered(gather), 3), {source, source, source}, own, made) == 0);
    CHECK(made.filename() == "u.h5");
    std::vector<double> thrice;
    for (int i = 0; i < 3; ++i) {
      const std::vector<double> once = numbers(0, 64 * 64);
      thrice.insert(thrice.end(), once.begin(), once.end());
    }
    CHECK(place_of(thrice, made) > 0);
  }
}

TEST_CASE("h5 view: more files can be gathered than may be open at a time") {
  const TemporaryFolder folder;
  make_h5("plain", folder.path() / "f.h5");
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  struct rlimit few = before;
  few.rlim_cur = 40;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  H5View view = gathered(H5View::Gather::kStack);
  view.dataset = "/g/v";
  fs::path made;
  const int status =
      make(attempt_with(view, 100),
           std::vector<std::string>(100, (folder.path() / "f.h5").string()), folder.path(), made);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(status == 0);
}

TEST_CASE("h5 view: what cannot be made leaves no file") {
  const TemporaryFolder folder;
  make_h5("plain", folder.path() / "f.h5");
  make_h5("compressed", folder.path() / "other.h5");
  const std::string source = folder.path() / "f.h5";
  const std::string other = folder.path() / "other.h5";
  fs::path made;
  CHECK(make(attempt_with(view_of("/w", 0, 1), 1), {source}, folder.path(), made) == 1);
  CHECK_FALSE(fs::exists(made));
  H5View view = gathered(H5View::Gather::kConcat);
  view.dataset = "/u";  // of another width in the second
  CHECK(make(attempt_with(view, 2), {source, other}, folder.path(), made) == 1);
  CHECK_FALSE(fs::exists(made));
}

TEST_CASE("h5 view: the attempt gets the made file in the place of those it is made of") {
  const TemporaryFolder folder;
  io::AttemptSpec spec = attempt_with(gathered(H5View::Gather::kStack), 2);
  io::InputSpec plain;
  plain.name = "plain";
  plain.files = {{scheduler::ObjectId(7), "", "p.txt", "", ""}};
  spec.inputs.insert(spec.inputs.begin(), plain);
  spec.inputs.push_back(plain);
  std::vector<std::string> paths = {"/p", "/a", "/b", "/q"};
  const auto views = engine::prepare_views(spec, paths, folder.path());
  REQUIRE(views.ok());
  REQUIRE(views->size() == 1);
  engine::use_views(*views, spec, paths);
  const std::string made = folder.path() / "u" / "u.h5";
  CHECK(paths == std::vector<std::string>{"/p", made, "/q"});
  REQUIRE(spec.inputs[1].files.size() == 1);
  CHECK(spec.inputs[1].files[0].source_path == made);
  CHECK_FALSE(spec.inputs[1].files[0].object.valid());
  CHECK_FALSE(engine::has_views(spec));
}

TEST_CASE("h5 view: a file that is on this node no more, and a gather of none, are named") {
  const TemporaryFolder folder;
  const auto gone =
      engine::prepare_views(attempt_with(view_of("/u", 0, 1), 1), {""}, folder.path());
  REQUIRE_FALSE(gone.ok());
  CHECK(gone.error().message == "input 'u': no copy of 'f.h5 of [n=0]' is on this node any more");
  const auto none =
      engine::prepare_views(attempt_with(gathered(H5View::Gather::kStack), 0), {}, folder.path());
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message == "input 'u' gathers no files; expected at least one");
}
