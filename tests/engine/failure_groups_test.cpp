#include "engine/failure_groups.h"

#include <doctest/doctest.h>

using namespace sluice::engine;

namespace {

FailureLine failure(const std::string& label, const std::string& cause, const std::string& said,
                    const std::string& host = "n1") {
  FailureLine line;
  line.label = label;
  line.task = label.substr(0, label.find('['));
  line.cause = cause;
  line.host = host;
  line.stderr_tail = said;
  line.final = true;
  return line;
}

}  // namespace

// UC-099
TEST_CASE("failure_groups: three reasons among five thousand are three entries, most first") {
  FailureGroups groups;
  groups.add(failure("a[n=1]", "exit 1", "no licence\n"));
  for (int i = 0; i < 3; ++i)
    groups.add(failure("b[n=" + std::to_string(i) + "]", "timeout", "", "n" + std::to_string(i)));
  groups.add(failure("a[n=2]", "exit 1", "no licence\n", "n2"));
  CHECK(groups.text("sluice logs p.run") ==
        "  3 × b: timeout\n"
        "    b[n=0] and 2 more on n0 (1), n1 (1), n2 (1)\n"
        "      more: sluice logs p.run 'b[n=0]'\n"
        "  2 × a: exit 1\n"
        "    a[n=1] and 1 more with the same last lines on n1 (1), n2 (1)\n"
        "      | no licence\n"
        "      more: sluice logs p.run 'a[n=1]'\n");
}

TEST_CASE("failure_groups: texts that differ are shown apart, and only so many are kept") {
  FailureGroups groups;
  for (int i = 0; i < 100; ++i)
    groups.add(failure("a[n=" + std::to_string(i) + "]", "exit 1", std::to_string(i)));
  const std::string text = groups.text("sluice logs p.run");
  CHECK(text.find("100 × a: exit 1") != std::string::npos);
  CHECK(text.find("| 4\n") != std::string::npos);
  CHECK(text.find("| 5\n") == std::string::npos);
  CHECK(text.find("… and 95 more with other last lines") != std::string::npos);
}

TEST_CASE("failure_groups: what a program wrote cannot steer the terminal") {
  FailureGroups groups;
  groups.add(failure("a", "exit 1", "one\x1b[2J\rtwo\n"));
  const std::string text = groups.text("sluice logs p.run");
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find('\r') == std::string::npos);
}

TEST_CASE("failure_groups: of a long text only the last lines are shown") {
  std::string said;
  for (int i = 0; i < 100; ++i) said += "line " + std::to_string(i) + "\n";
  FailureGroups groups;
  groups.add(failure("a", "exit 1", said));
  const std::string text = groups.text("sluice logs p.run");
  CHECK(text.find("| line 99\n") != std::string::npos);
  CHECK(text.find("| line 90\n") != std::string::npos);
  CHECK(text.find("| line 89\n") == std::string::npos);
}
