#include "engine/cli.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace sluice::engine;

namespace {

int parse(std::vector<std::string> words, Options& options) {
  std::vector<char*> argv;
  words.insert(words.begin(), "sluice");
  for (std::string& word : words) argv.push_back(word.data());
  return parse_command_line(static_cast<int>(argv.size()), argv.data(), options);
}

}  // namespace

TEST_CASE("cli: run takes the pipeline, parameters and a run directory") {
  Options options;
  CHECK(parse({"run", "p.yaml", "--set", "tol=1e-5", "--set", "name=a=b", "--run-dir", "r"},
              options) == -1);
  CHECK(options.verb == Verb::kRun);
  CHECK(options.spec == "p.yaml");
  REQUIRE(options.set.size() == 2);
  CHECK(options.set[0] == std::pair<std::string, std::string>{"tol", "1e-5"});
  CHECK(options.set[1] == std::pair<std::string, std::string>{"name", "a=b"});
  CHECK(options.directory().path.filename() == "r");
  CHECK(options.command == "sluice run p.yaml --set tol=1e-5 --set name=a=b --run-dir r");
}

TEST_CASE("cli: a query names a run directory or its pipeline") {
  Options options;
  CHECK(parse({"status", "study/p.yaml", "--json"}, options) == -1);
  CHECK(options.json);
  CHECK(options.directory().path == std::filesystem::absolute("study/p.run"));
  Options other;
  CHECK(parse({"logs", "study/p.run", "make[n=1]", "--stderr"}, other) == -1);
  CHECK(other.target == "make[n=1]");
  CHECK(other.directory().path == std::filesystem::absolute("study/p.run"));
}

TEST_CASE("cli: usage errors are 2") {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"run"},
                                                {"fly"},
                                                {"run", "p.yaml", "--nonsense"},
                                                {"run", "p.yaml", "--set", "novalue"},
                                                {"run", "p.yaml", "--lost-after", "0"}}) {
    Options options;
    CHECK(parse(words, options) == 2);
  }
}

TEST_CASE("cli: a list of commands takes the pipeline's place") {
  Options options;
  CHECK(parse({"run", "--commands", "jobs/list.txt", "--cpus", "2", "--memory", "1GiB", "--timeout",
               "45m", "--retries", "1"},
              options) == -1);
  REQUIRE(options.command_list);
  CHECK(options.spec == "jobs/list.txt");
  CHECK(options.command_list->cpus == 2);
  CHECK(options.command_list->memory_bytes == 1 << 30);
  CHECK(options.command_list->timeout == sluice::scheduler::seconds(2700));
  CHECK(options.command_list->retries == 1);
  CHECK(options.directory().path == std::filesystem::absolute("jobs/list.run"));
  Options why;
  CHECK(parse({"why", "--commands", "list.txt", "command"}, why) == -1);
  CHECK(why.target == "command");
  CHECK(why.spec == "list.txt");
}

TEST_CASE("cli: what belongs to a list alone or to a pipeline alone is refused for the other") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "p.yaml", "--cpus", "2"},
        {"run", "p.yaml", "--commands", "list.txt"},
        {"run", "--commands", "list.txt", "--set", "a=b"},
        {"run", "--commands", "list.txt", "--memory", "12"},
        {"run", "--commands", "list.txt", "--cpus", "0"}}) {
    Options options;
    CHECK(parse(words, options) == 2);
  }
}

TEST_CASE("cli: the command to continue with is what was typed, quoted for a shell") {
  Options options;
  CHECK(parse({"run", "my study.yaml", "--set", "who=it's"}, options) == -1);
  CHECK(options.command == R"(sluice run 'my study.yaml' --set 'who=it'\''s')");
  CHECK(shell_words({"", "a~b", "plain/x=1"}) == "'' 'a~b' plain/x=1");
}
