#include "io/command_list.h"

#include <doctest/doctest.h>

#include <set>
#include <sstream>

#include "io/spec.h"
#include "tests/support/temporary_folder.h"

namespace {

using namespace sluice;
using namespace sluice::io;
using scheduler::InstanceId;
using Texts = std::vector<std::string>;

struct List {
  explicit List(const std::string& text, CommandListOptions options = {}) {
    const auto path = folder / "list.txt";
    test::write_text(path, text);
    options.file = path;
    Diagnostics diagnostics;
    pipeline = read_command_list(options, diagnostics);
    std::ostringstream out;
    diagnostics.print(out);
    printed = out.str();
  }

  [[nodiscard]] Texts items() const {
    Texts out;
    for (size_t i = 0; i < pipeline->graph.instance_count(); ++i)
      out.push_back(pipeline->item(InstanceId(i)));
    return out;
  }
  [[nodiscard]] bool says(const std::string& text) const {
    return printed.find(text) != std::string::npos;
  }

  test::TemporaryFolder folder;
  std::optional<Pipeline> pipeline;
  std::string printed;
};

// What identifies an instance over submissions: its item and its key.
std::set<std::pair<std::string, std::string>> identities(const List& list) {
  std::set<std::pair<std::string, std::string>> out;
  for (size_t i = 0; i < list.pipeline->graph.instance_count(); ++i) {
    out.emplace(list.pipeline->item(InstanceId(i)),
                to_hex(list.pipeline->graph.static_key(InstanceId(i))));
  }
  return out;
}

Texts texts(const AttemptSpec& spec) {
  Texts out;
  for (const Word& word : spec.words) out.push_back(word.front().text);
  return out;
}

}  // namespace

TEST_CASE("command_list: each line is a command, blank lines and comments are none") {
  const List list("echo one\n\n  # a comment\n\t echo two \necho three");
  REQUIRE(list.pipeline);
  CHECK(list.items() == Texts{"line=echo one", "line=echo two", "line=echo three"});
  CHECK(list.pipeline->label(InstanceId(0)) == "command[line=echo one]");
  CHECK(list.pipeline->command_text(InstanceId(1)) == "echo two");
  CHECK(list.pipeline->name == "list");
  CHECK(list.printed.empty());
}

TEST_CASE("command_list: reordering lines changes no identity") {
  const List before("a 1\nb 2\na 1\nc 3\n");
  const List after("# moved\nc 3\na 1\na 1\n\nb 2\n");
  REQUIRE(before.pipeline);
  REQUIRE(after.pipeline);
  CHECK(identities(before) == identities(after));
}

TEST_CASE("command_list: editing one line changes one identity") {
  const List before("a 1\nb 2\nc 3\n");
  const List after("a 1\nb 4\nc 3\n");
  auto gone = identities(before);
  for (const auto& one : identities(after)) gone.erase(one);
  CHECK(gone.size() == 1);
  CHECK(gone.begin()->first == "line=b 2");
}

TEST_CASE("command_list: equal lines are told apart by their occurrence") {
  const List list("work\nwork\nother\nwork\n");
  REQUIRE(list.pipeline);
  CHECK(list.items() == Texts{"line=work", "line=#2 work", "line=other", "line=#3 work"});
  CHECK(list.pipeline->command_text(InstanceId(3)) == "work");
  CHECK(list.pipeline->find("command", "line=#2 work") == InstanceId(1));
}

TEST_CASE("command_list: an occurrence is never taken for a line") {
  // What would look like the second 'work' begins with # and so is a comment.
  const List list("work\n#2 work\nwork\n");
  CHECK(list.items() == Texts{"line=work", "line=#2 work"});
}

TEST_CASE("command_list: carriage returns are dropped with one warning") {
  const List list("echo a\r\necho b\r\n");
  REQUIRE(list.pipeline);
  CHECK(list.items() == Texts{"line=echo a", "line=echo b"});
  CHECK(list.says("list.txt:1:1: warning: 2 lines end with a carriage return"));
  CHECK(list.printed.find("carriage") == list.printed.rfind("carriage"));
}

TEST_CASE("command_list: mistakes name their line") {
  const List continued("echo a\necho b \\\n  c\n");
  CHECK_FALSE(continued.pipeline);
  CHECK(continued.says("list.txt:2:8: error: the line ends with '\\'"));
  const List binary(std::string("echo a\necho \0b\n", 15));
  CHECK_FALSE(binary.pipeline);
  CHECK(binary.says("list.txt:2:6: error: the line holds a NUL byte"));
  const List empty("# nothing\n\n");
  CHECK_FALSE(empty.pipeline);
  CHECK(empty.says("the list holds no command"));
}

TEST_CASE("command_list: an empty file and one that is not there are told apart") {
  CHECK(List("").says("the list holds no command"));
  Diagnostics diagnostics;
  CHECK_FALSE(read_command_list({"/nowhere/list.txt", 1, 0, {}, 0}, diagnostics));
  std::ostringstream out;
  diagnostics.print(out);
  CHECK(out.str().find("there is no such file") != std::string::npos);
}

TEST_CASE("command_list: what only a shell understands gets one, the rest is started directly") {
  CHECK(line_words("prog -a  'b c' \"d e\"") == Texts{"prog", "-a", "b c", "d e"});
  CHECK(line_words("echo done") == Texts{"echo", "done"});
  for (const char* line :
       {"a | b",    "a > b",   "a $HOME",  "a `b`",  "a *.dat",  "a; b",   "a && b", "cd x",
        "N=3 prog", "a \\n",   "a \"$x\"", "a '$x'", "a {1,2}",  "a ~/b",  "(a)",    "! a",
        "a # b",    "a 'open", "time a",   "a [b]",  "source x", "A+=1 b", "if true"}) {
    CAPTURE(line);
    CHECK(line_words(line) == Texts{"bash", "-euo", "pipefail", "-c", line});
  }
}

TEST_CASE("command_list: each command gets what the options say") {
  CommandListOptions options;
  options.cpus = 3;
  options.memory_bytes = 5;
  options.timeout = scheduler::seconds(7);
  options.retries = 2;
  const List list("a\n", options);
  const auto& task = list.pipeline->graph.task(scheduler::TaskId(0));
  CHECK(list.pipeline->graph.requests()[task.request].resources == scheduler::Resources{3, 5});
  CHECK(task.timeout == scheduler::seconds(7));
  CHECK(task.retry.max[static_cast<size_t>(scheduler::Cause::kExit)] == 2);
}

TEST_CASE("command_list: a rendered command is the line's, or a script when no word can hold it") {
  const std::string large(120'000, 'x');
  const List list("echo a\necho $x" + large + "\n./run.sh 1\n");
  REQUIRE(list.pipeline);
  const std::string none;
  const auto value = [&](scheduler::ObjectId) -> const std::string& { return none; };
  const auto first = list.pipeline->render(InstanceId(0), value);
  REQUIRE(first);
  CHECK(texts(*first) == Texts{"echo", "a"});
  CHECK(first->in_pipeline_folder);
  CHECK(first->outputs.empty());
  const auto second = list.pipeline->render(InstanceId(1), value);
  CHECK(second->words.empty());
  CHECK(second->script == "echo $x" + large);
  const auto third = list.pipeline->render(InstanceId(2), value);
  CHECK(texts(*third)[0] == (list.folder / "run.sh").string());
}
