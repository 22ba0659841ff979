#include "engine/item_lists.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/spec_folder.h"

namespace {

using namespace sluice;
using namespace sluice::engine;
using Texts = std::vector<std::string>;

const std::string kCount = R"(sluice: 1
tasks:
  count: {foreach: {f: {glob: "data/*"}, k: [1]}, run: count}
  plain: {foreach: {k: [1, 2]}, run: plain}
)";

class Submissions {
 public:
  Submissions() { std::filesystem::create_directory(folder_.path() / "data"); }
  void add(const std::string& name) { folder_.write("data/" + name, ""); }
  void remove(const std::string& name) { std::filesystem::remove(folder_.path() / "data" / name); }
  Texts submit(const std::string& spec = kCount) {
    const auto pipeline = folder_.read(spec);
    REQUIRE_MESSAGE(pipeline, folder_.printed);
    return keep_item_lists(*pipeline, directory_, files_);
  }
  io::FakeFiles files_;
  RunDirectory directory_{"/run"};

 private:
  test::SpecFolder folder_;
};

}  // namespace

// UC-107
TEST_CASE("item_lists: a later submission names what is new and what is gone") {
  Submissions runs;
  runs.add("a");
  runs.add("b,\nc");
  CHECK(runs.submit().empty());
  CHECK(runs.submit().empty());
  runs.remove("a");
  runs.add("d");
  runs.add("e");
  CHECK(runs.submit() ==
        Texts{"task 'count': 2 new items ([f=data/d,k=1], [f=data/e,k=1]), 1 gone ([f=data/a,k=1]) "
              "since the last submission, from data/*"});
  CHECK(runs.submit().empty());
  CHECK(*runs.files_.list("/run/items") == Texts{"count"});
}

TEST_CASE("item_lists: of many changes a few are named") {
  Submissions runs;
  runs.add("a");
  (void)runs.submit();
  for (int i = 0; i < 50; ++i) {
    runs.add("x" + std::to_string(i));
  }
  CHECK(runs.submit() ==
        Texts{"task 'count': 50 new items ([f=data/x0,k=1], [f=data/x1,k=1], [f=data/x10,k=1], "
              "...) since the last submission, from data/*"});
}

TEST_CASE("item_lists: a task whose items are written in the spec is forgotten") {
  Submissions runs;
  runs.add("a");
  (void)runs.submit();
  CHECK(runs.submit("sluice: 1\ntasks:\n  count: {foreach: {f: [1]}, run: count}\n").empty());
  CHECK(runs.files_.list("/run/items")->empty());
}

TEST_CASE("item_lists: a list that cannot be kept is told, and the run goes on") {
  Submissions runs;
  runs.add("a");
  runs.files_.set_capacity(0);
  const Texts messages = runs.submit();
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find("the next submission cannot tell which items are new") !=
        std::string::npos);
}
