// retry: in the spec.
#include <doctest/doctest.h>

#include "tests/support/spec_folder.h"

using namespace sluice;
using scheduler::Cause;
using scheduler::RetryChange;

TEST_CASE("spec: a cause of retry may wait, and ask for more memory and time") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(R"(sluice: 1
params: {patience: {type: string, default: 1m30s}}
tasks:
  solve:
    run: solve
    resources: {memory: 4GiB}
    timeout: 10m
    retry:
      oom: {max: 3, memory: x1.5, timeout: x2}
      exit: {max: 5, codes: [75], delay: "${{ params.patience }}", memory: x100}
      signal: {max: 1, memory: x1.001}
)");
  CAPTURE(folder.printed);
  REQUIRE(pipeline.has_value());
  const scheduler::RetryPolicy& retry = pipeline->graph.task(scheduler::TaskId(0)).retry;
  const auto change = [&](Cause cause) { return retry.change[static_cast<size_t>(cause)]; };
  CHECK(change(Cause::kOom) == RetryChange{{}, 1500, 2000});
  CHECK(change(Cause::kExit) == RetryChange{scheduler::seconds(90), 100'000, 0});
  CHECK(change(Cause::kSignal) == RetryChange{{}, 1001, 0});
  CHECK(change(Cause::kTimeout) == RetryChange{});
  CHECK(retry.max[static_cast<size_t>(Cause::kExit)] == 5);
}
