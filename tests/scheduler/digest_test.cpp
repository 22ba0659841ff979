#include "scheduler/digest.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace sluice::scheduler;

namespace {
uint64_t digest_of(const std::vector<Decision>& decisions) {
  Digest digest;
  for (const Decision& decision : decisions) {
    digest.add(decision);
  }
  return digest.value();
}
}  // namespace

TEST_CASE("digest: equal decisions give equal digests, their order counts") {
  const Decision drop = decision::DropObject{WorkerId(1), ObjectId(2)};
  const Decision back = decision::TakeBack{WorkerId(1), AttemptId::make(1, 2)};
  CHECK(digest_of({drop, back}) == digest_of({drop, back}));
  CHECK(digest_of({drop, back}) != digest_of({back, drop}));
  CHECK(digest_of({drop}) != digest_of({drop, drop}));
}

TEST_CASE("digest: every member of a decision counts") {
  std::vector<decision::AttemptEnded> all(10);
  all[1].instance = InstanceId(1);
  all[2].report.worker = WorkerId(1);
  all[3].report.attempt = AttemptId::make(1, 1);
  all[4].report.cause = Cause::kOom;
  all[5].report.exit_code = -1;
  all[6].report.signal = 9;
  all[7].report.detail = "x";
  all[8].report.stderr_tail = "x";
  all[9].final = true;
  std::set<uint64_t> digests;
  for (const decision::AttemptEnded& it : all) {
    digests.insert(digest_of({it}));
  }
  CHECK(digests.size() == all.size());
}

TEST_CASE("digest: kinds with equal members differ") {
  const AttemptId attempt = AttemptId::make(1, 2);
  CHECK(digest_of({decision::TakeBack{WorkerId(1), attempt}}) !=
        digest_of({decision::StopAttempt{WorkerId(1), attempt}}));
}

TEST_CASE("digest: where inputs are found counts") {
  decision::StartAttempt start;
  start.inputs = {{ObjectId(1), WorkerId(1)}};
  const uint64_t local = digest_of({start});
  start.inputs[0].source = WorkerId();
  CHECK(digest_of({start}) != local);
}

TEST_CASE("digest: the order of what waits at a worker counts") {
  decision::StartAttempt start;
  const uint64_t usual = digest_of({start});
  start.priority = -1;
  CHECK(digest_of({start}) != usual);
}
