#include "scheduler/agent.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <tuple>
#include <vector>

namespace sluice::scheduler {
namespace {

constexpr WorkerId kSelf{2};
constexpr WorkerId kPeer{7};
constexpr WorkerId kOtherPeer{8};
constexpr WorkerId kDurable{};

AttemptId attempt(uint32_t number) { return AttemptId::make(1, number); }
std::string number(AttemptId id) { return std::to_string(id.number()); }
std::string number(ObjectId id) { return id.valid() ? std::to_string(id.value) : "none"; }
std::string number(WorkerId id) { return id.valid() ? std::to_string(id.value) : "none"; }

// -- events and effects as short texts, so that a case reads as a list of what happened

struct EventText {
  std::string operator()(const event::Heartbeat&) const { return "heartbeat"; }
  std::string operator()(const event::AttemptStarted& e) const {
    return "started " + number(e.attempt);
  }
  std::string operator()(const event::AttemptFinished& e) const {
    return "finished " + number(e.attempt);
  }
  std::string operator()(const event::AttemptFailed& e) const {
    return "failed " + number(e.attempt) + " " + cause_text(e.cause);
  }
  std::string operator()(const event::AttemptReturned& e) const {
    return "returned " + number(e.attempt) +
           (e.missing.valid() ? " missing " + number(e.missing) + " from " + number(e.source) : "");
  }
  std::string operator()(const event::AttemptStopped& e) const {
    return "stopped " + number(e.attempt);
  }
  std::string operator()(const event::ReplicaAdded& e) const { return "added " + number(e.object); }
  std::string operator()(const event::ReplicaLost& e) const { return "lost " + number(e.object); }
  std::string operator()(const event::ObjectSaved& e) const {
    return "saved " + number(e.object) + " as " + number(e.save);
  }
  std::string operator()(const event::ObjectSaveFailed& e) const {
    return "unsaved " + number(e.object) + " as " + number(e.save) + ": " + e.reason;
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return "an event that no worker reports";
  }
  static std::string cause_text(Cause cause) {
    const std::vector<std::string> names = {"exit",   "signal", "timeout", "oom",     "lost",
                                            "output", "setup",  "start",   "staging", "disk"};
    return names.at(static_cast<size_t>(cause));
  }
};

struct EffectText {
  std::string operator()(const effect::Fetch& e) const {
    return "fetch " + number(e.object) + " from " + number(e.source);
  }
  std::string operator()(const effect::FetchPart& e) const {
    return "part of " + number(e.object) + " for " + number(e.attempt) + " from " +
           number(e.source);
  }
  std::string operator()(const effect::Stage& e) const { return "stage " + number(e.attempt); }
  std::string operator()(const effect::Launch& e) const {
    std::string text = "launch " + number(e.attempt) + " on";
    for (const int32_t core : e.cores) text += " " + std::to_string(core);
    return text;
  }
  std::string operator()(const effect::Signal& e) const {
    return (e.kill ? "kill " : "stop ") + number(e.attempt);
  }
  std::string operator()(const effect::Check& e) const { return "check " + number(e.attempt); }
  std::string operator()(const effect::Clean& e) const {
    return "clean " + number(e.attempt) + (e.failed ? " keeping a copy" : "");
  }
  std::string operator()(const effect::SaveObject& e) const {
    return "save " + number(e.object) + " as " + number(e.save);
  }
  std::string operator()(const effect::RemoveObject& e) const {
    return "remove " + number(e.object);
  }
  std::string operator()(const effect::Report& e) const { return std::visit(EventText{}, e.event); }
  std::string operator()(const effect::Left&) const { return "left"; }
};

using Texts = std::vector<std::string>;

struct Place {
  uint32_t object;
  WorkerId source;
};

class Bench {
 public:
  explicit Bench(Resources resources = {4, 100}) : agent_(options(resources)) {}

  Texts give(const AgentInput& in) {
    std::vector<Effect> effects;
    agent_.apply(now, in, effects);
    agent_.check_invariants();
    Texts texts;
    for (const Effect& effect : effects) texts.push_back(std::visit(EffectText{}, effect));
    last = std::move(effects);
    return texts;
  }

  Texts start(uint32_t id, std::initializer_list<Place> places = {}, Resources request = {1, 0}) {
    input::Start in = start_input(id, request);
    for (const Place& place : places) {
      in.decision.inputs.push_back({ObjectId(place.object), place.source});
    }
    return give(in);
  }
  // An attempt with a file and a value as outputs: objects 10 × id and 10 × id + 1.
  // Of each place only a part is read.
  Texts start_partial(uint32_t id, std::initializer_list<Place> places) {
    input::Start in = start_input(id);
    for (const Place& place : places) {
      in.decision.inputs.push_back({ObjectId(place.object), place.source});
      in.partial.push_back(true);
    }
    return give(in);
  }
  static input::Start start_input(uint32_t id, Resources request = {1, 0}) {
    input::Start in;
    in.decision.worker = kSelf;
    in.decision.attempt = attempt(id);
    in.request = request;
    in.grace = seconds(10);
    in.outputs = {OutputKind::kFile, OutputKind::kValue};
    in.first_object = ObjectId(10 * id);
    return in;
  }
  Texts staged(uint32_t id) { return give(input::Staged{attempt(id)}); }
  Texts exited(uint32_t id, int32_t code = 0, int32_t signal = 0, bool in_setup = false) {
    input::Exited gone{attempt(id), code, signal, {seconds(1), {}, 0}, "tail"};
    gone.in_setup = in_setup;
    return give(gone);
  }
  Texts checked(uint32_t id) {
    return give(input::Checked{attempt(id), {OutputReport{}, OutputReport{}}});
  }
  Texts fetched(uint32_t object) { return give(input::Fetched{ObjectId(object)}); }
  Texts fetch_failed(uint32_t object) { return give(input::FetchFailed{ObjectId(object), "gone"}); }
  Texts drop(uint32_t object) { return give(input::Drop{ObjectId(object)}); }
  Texts save(uint32_t object, uint32_t id) {
    return give(input::Save{ObjectId(object), attempt(id), Destination::kResults});
  }
  Texts tick(Instant at) {
    now = at;
    return give(input::Tick{});
  }
  void run(uint32_t id, Resources request = {1, 0}) {
    start(id, {}, request);
    staged(id);
  }
  void finish(uint32_t id) {
    run(id);
    exited(id);
    checked(id);
  }
  template <class E>
  E last_event() const {
    for (const Effect& effect : last) {
      const auto* report = std::get_if<effect::Report>(&effect);
      if (report != nullptr && std::holds_alternative<E>(report->event)) {
        return std::get<E>(report->event);
      }
    }
    FAIL("no such report");
    return {};
  }
  [[nodiscard]] const Agent& agent() const { return agent_; }

  Instant now;
  std::vector<Effect> last;

 private:
  static AgentOptions options(Resources resources) {
    AgentOptions options;
    options.worker = kSelf;
    options.resources = resources;
    return options;
  }
  Agent agent_;
};

// -- the ordinary way

TEST_CASE("agent: an attempt without inputs is staged, launched, checked and reported") {
  Bench bench;
  CHECK(bench.start(1, {}, {2, 10}) == Texts{"stage 1"});
  CHECK(bench.staged(1) == Texts{"started 1", "launch 1 on 0 1"});
  CHECK(bench.agent().running() == 1);
  CHECK(bench.exited(1) == Texts{"check 1"});
  CHECK(bench.checked(1) == Texts{"finished 1", "clean 1"});
  CHECK(bench.last_event<event::AttemptFinished>().usage.wall == seconds(1));
  CHECK(bench.last_event<event::AttemptFinished>().outputs.size() == 2);
  CHECK(bench.agent().attempts() == 0);
}

TEST_CASE("agent: the cores are free as soon as the process is gone, before the check") {
  Bench bench({1, 0});
  bench.run(1);
  bench.start(2);
  CHECK(bench.staged(2) == Texts{});
  CHECK(bench.exited(1) == Texts{"check 1", "started 2", "launch 2 on 0"});
}

TEST_CASE("agent: attempts are staged while all slots are busy") {
  Bench bench({1, 0});
  bench.run(1);
  CHECK(bench.start(2) == Texts{"stage 2"});
}

TEST_CASE("agent: it is supplied while as many attempts wait as run") {
  Bench bench({2, 0});
  CHECK_FALSE(bench.agent().supplied());
  bench.run(1);
  bench.run(2);
  CHECK_FALSE(bench.agent().supplied());
  bench.start(3);
  CHECK_FALSE(bench.agent().supplied());
  bench.start(4);
  CHECK(bench.agent().supplied());
  bench.staged(3);
  bench.exited(1);  // 3 runs instead, and only 4 waits
  CHECK_FALSE(bench.agent().supplied());
  bench.exited(2);
  CHECK(bench.agent().supplied());  // 3 runs and 4 waits to be staged
}

TEST_CASE("agent: a staged attempt that does not fit is not overtaken by a smaller one") {
  Bench bench({4, 0});
  bench.run(1, {2, 0});
  bench.run(2, {4, 0});
  bench.start(3, {}, {1, 0});
  CHECK(bench.staged(3) == Texts{});
  CHECK(bench.exited(1) == Texts{"check 1", "started 2", "launch 2 on 0 1 2 3"});
  CHECK(bench.exited(2) == Texts{"check 2", "started 3", "launch 3 on 0"});
}

TEST_CASE("agent: an attempt that waits for its inputs is overtaken") {
  Bench bench({1, 0});
  bench.start(1, {{5, kPeer}});
  bench.start(2);
  CHECK(bench.staged(2) == Texts{"started 2", "launch 2 on 0"});
}

TEST_CASE("agent: what is more important starts before what came earlier, also a wide one") {
  Bench bench({4, 0});
  bench.run(1, {2, 0});
  bench.start(2, {}, {4, 0});
  CHECK(bench.staged(2) == Texts{});
  bench.start(3);
  CHECK(bench.staged(3) == Texts{});  // as important as 2, which waits for two more cores
  input::Start important = Bench::start_input(4);
  important.decision.priority = 5;
  CHECK(bench.give(important) == Texts{"stage 4"});
  CHECK(bench.staged(4) == Texts{"started 4", "launch 4 on 2"});
  CHECK(bench.exited(4) == Texts{"check 4"});
  CHECK(bench.exited(1) == Texts{"check 1", "started 2", "launch 2 on 0 1 2 3"});
  CHECK(bench.exited(2) == Texts{"check 2", "started 3", "launch 3 on 0"});
}

TEST_CASE("agent: memory limits what runs together") {
  Bench bench({4, 100});
  bench.run(1, {1, 60});
  bench.start(2, {}, {1, 60});
  CHECK(bench.staged(2) == Texts{});
  CHECK(bench.exited(1) == Texts{"check 1", "started 2", "launch 2 on 0"});
}

// -- inputs

TEST_CASE("agent: inputs are fetched, and staged when the last one is there") {
  Bench bench;
  CHECK(bench.start(1, {{5, kPeer}, {6, kDurable}}) ==
        Texts{"fetch 5 from 7", "fetch 6 from none"});
  CHECK(bench.fetched(6) == Texts{});
  CHECK(bench.fetched(5) == Texts{"added 5", "stage 1"});
}

TEST_CASE("agent: an object is fetched once for all attempts that need it") {
  Bench bench;
  CHECK(bench.start(1, {{5, kPeer}}) == Texts{"fetch 5 from 7"});
  CHECK(bench.start(2, {{5, kOtherPeer}}) == Texts{});
  CHECK(bench.fetched(5) == Texts{"added 5", "stage 1", "stage 2"});
  CHECK(bench.start(3, {{5, kPeer}}) == Texts{"stage 3"});
  CHECK(bench.start(4, {{5, kSelf}}) == Texts{"stage 4"});
}

TEST_CASE("agent: an object that was changed goes, with who has not started to read it") {
  Bench bench({1, 0});
  bench.finish(1);
  bench.start(2, {{10, kSelf}});
  bench.staged(2);
  bench.start(3, {{10, kSelf}});
  bench.start(4, {{5, kPeer}, {10, kSelf}});
  bench.start(5);
  const auto lost = [&bench] { return bench.give(input::ObjectLost{ObjectId(10)}); };
  CHECK(lost() == Texts{"lost 10", "returned 3 missing 10 from 2", "clean 3",
                        "returned 4 missing 10 from 2", "clean 4"});
  CHECK(lost() == Texts{});  // said once
  // Who reads it keeps it; when that one has ended it goes, and who comes late is told.
  CHECK(bench.exited(2, 1) == Texts{"failed 2 exit", "clean 2 keeping a copy", "remove 10"});
  CHECK(bench.start(6, {{10, kSelf}}) ==
        Texts{"lost 10", "returned 6 missing 10 from 2", "clean 6"});
  CHECK(bench.fetched(5) == Texts{"added 5"});
  CHECK(lost() == Texts{});
}

TEST_CASE("agent: an output is held once it was checked, a value never is") {
  Bench bench;
  bench.finish(1);
  CHECK(bench.start(2, {{10, kSelf}}) == Texts{"stage 2"});
  CHECK(bench.start(3, {{11, kSelf}}) ==
        Texts{"lost 11", "returned 3 missing 11 from 2", "clean 3"});
}

TEST_CASE("agent: a part is brought for each attempt that reads it, and held for none") {
  Bench bench;
  CHECK(bench.start_partial(1, {{5, kPeer}}) == Texts{"part of 5 for 1 from 7"});
  CHECK(bench.start_partial(2, {{5, kPeer}}) == Texts{"part of 5 for 2 from 7"});
  CHECK(bench.give(input::PartFetched{attempt(1), ObjectId(5)}) == Texts{"stage 1"});
  CHECK(bench.start(3, {{5, kPeer}}) == Texts{"fetch 5 from 7"});
  CHECK(bench.drop(5) == Texts{});
}

TEST_CASE("agent: where all of an object is, or comes anyway, no part of it is asked for") {
  Bench bench;
  bench.start(1, {{5, kPeer}});
  CHECK(bench.start_partial(2, {{5, kPeer}}) == Texts{});
  CHECK(bench.fetched(5) == Texts{"added 5", "stage 1", "stage 2"});
  CHECK(bench.start_partial(3, {{5, kSelf}}) == Texts{"stage 3"});
  CHECK(bench.start_partial(4, {{6, kDurable}}) == Texts{"fetch 6 from none"});
}

TEST_CASE("agent: a part that cannot be made lets all of the object come") {
  Bench bench;
  bench.start_partial(1, {{5, kPeer}, {6, kPeer}});
  CHECK(bench.give(input::PartFailed{attempt(1), ObjectId(5)}) == Texts{"fetch 5 from 7"});
  CHECK(bench.fetched(5) == Texts{"added 5"});
  CHECK(bench.give(input::PartFetched{attempt(1), ObjectId(6)}) == Texts{"stage 1"});
}

TEST_CASE("agent: a part whose source is lost gives the attempt back") {
  Bench bench;
  bench.start_partial(1, {{5, kPeer}});
  CHECK(bench.give(input::PartFailed{attempt(1), ObjectId(5), true}) ==
        Texts{"returned 1 missing 5 from 7", "clean 1"});
  CHECK(bench.give(input::PartFailed{attempt(1), ObjectId(5)}) == Texts{});
  CHECK(bench.give(input::PartFetched{attempt(1), ObjectId(5)}) == Texts{});
}

TEST_CASE("agent: a durable file is looked up for each attempt and held for none") {
  Bench bench;
  CHECK(bench.start(1, {{5, kDurable}}) == Texts{"fetch 5 from none"});
  CHECK(bench.fetched(5) == Texts{"stage 1"});
  CHECK(bench.start(2, {{5, kDurable}}) == Texts{"fetch 5 from none"});
  CHECK(bench.save(5, 100) == Texts{"unsaved 5 as 100: the worker does not hold it"});
  CHECK(bench.drop(5) == Texts{});
}

TEST_CASE("agent: who was told of a peer fetches although another reads the durable file") {
  Bench bench;
  bench.start(1, {{5, kDurable}});
  CHECK(bench.start(2, {{5, kPeer}}) == Texts{});
  CHECK(bench.fetched(5) == Texts{"stage 1", "fetch 5 from 7"});
  CHECK(bench.fetched(5) == Texts{"added 5", "stage 2"});
}

TEST_CASE("agent: a failed fetch gives back every attempt that needs the object") {
  Bench bench;
  bench.start(1, {{5, kPeer}, {6, kPeer}});
  bench.start(2, {{5, kPeer}});
  bench.start(3, {{6, kPeer}});
  CHECK(bench.fetch_failed(5) ==
        Texts{"returned 1 missing 5 from 7", "clean 1", "returned 2 missing 5 from 7", "clean 2"});
  CHECK(bench.fetched(6) == Texts{"added 6", "stage 3"});
  CHECK(bench.start(4, {{5, kOtherPeer}}) == Texts{"fetch 5 from 8"});
}

TEST_CASE("agent: a durable file that cannot be read gives the attempt back") {
  Bench bench;
  bench.start(1, {{5, kDurable}});
  CHECK(bench.fetch_failed(5) == Texts{"returned 1 missing 5 from none", "clean 1"});
}

TEST_CASE("agent: an input that should be here and is not gives the attempt back at once") {
  Bench bench;
  CHECK(bench.start(1, {{4, kPeer}, {5, kSelf}}) ==
        Texts{"lost 5", "returned 1 missing 5 from 2", "clean 1"});
  CHECK(bench.agent().attempts() == 0);
}

// -- taking back, stopping, timing out

TEST_CASE("agent: only an attempt that has not started is taken back") {
  Bench bench({1, 0});
  bench.run(1);
  bench.run(2);
  CHECK(bench.give(input::TakeBack{attempt(2)}) == Texts{"returned 2", "clean 2"});
  CHECK(bench.give(input::TakeBack{attempt(1)}) == Texts{});
  CHECK(bench.give(input::TakeBack{attempt(9)}) == Texts{});
}

TEST_CASE("agent: an attempt taken back during its fetch leaves the object held") {
  Bench bench;
  bench.start(1, {{5, kPeer}});
  bench.give(input::TakeBack{attempt(1)});
  CHECK(bench.fetched(5) == Texts{"added 5"});
  CHECK(bench.drop(5) == Texts{"remove 5"});
}

TEST_CASE("agent: a wide attempt that is taken back no longer holds up the others") {
  Bench bench({2, 0});
  bench.run(1);
  bench.run(2, {2, 0});
  bench.run(3);
  CHECK(bench.give(input::TakeBack{attempt(2)}) ==
        Texts{"returned 2", "clean 2", "started 3", "launch 3 on 1"});
}

TEST_CASE("agent: a stop signals, kills after the grace, and reports when the process is gone") {
  Bench bench;
  bench.run(1);
  CHECK(bench.give(input::Stop{attempt(1)}) == Texts{"stop 1"});
  CHECK(bench.give(input::Stop{attempt(1)}) == Texts{});
  CHECK(bench.tick({seconds(9).ns}) == Texts{"heartbeat"});
  CHECK(bench.tick({seconds(10).ns}) == Texts{"kill 1", "heartbeat"});
  CHECK(bench.exited(1, 0, 9) == Texts{"stopped 1", "clean 1"});
}

TEST_CASE("agent: an attempt that ends well after the stop signal is stopped, not finished") {
  Bench bench;
  bench.run(1);
  bench.give(input::Stop{attempt(1)});
  CHECK(bench.exited(1) == Texts{"stopped 1", "clean 1"});
}

TEST_CASE("agent: an attempt whose process ended before the stop came goes on to its check") {
  Bench bench;
  bench.run(1);
  bench.exited(1);
  CHECK(bench.give(input::Stop{attempt(1)}) == Texts{});
  CHECK(bench.checked(1) == Texts{"finished 1", "clean 1"});
}

TEST_CASE("agent: stopping a queued attempt gives it back") {
  Bench bench;
  bench.start(1);
  CHECK(bench.give(input::Stop{attempt(1)}) == Texts{"returned 1", "clean 1"});
  CHECK(bench.staged(1) == Texts{});
}

TEST_CASE("agent: a timeout stops, kills after the grace, and is reported as its cause") {
  Bench bench;
  input::Start in = Bench::start_input(1);
  in.timeout = milliseconds(100);
  in.grace = milliseconds(50);
  bench.give(in);
  bench.now = {milliseconds(1000).ns};
  bench.staged(1);
  CHECK(bench.agent().next_deadline() == Instant{milliseconds(1100).ns});
  CHECK(bench.tick({milliseconds(1099).ns}) == Texts{});
  CHECK(bench.tick({milliseconds(1100).ns}) == Texts{"stop 1"});
  CHECK(bench.agent().next_deadline() == Instant{milliseconds(1150).ns});
  CHECK(bench.tick({milliseconds(1150).ns}) == Texts{"kill 1"});
  CHECK(bench.exited(1, 0, 9) == Texts{"failed 1 timeout", "clean 1 keeping a copy"});
  CHECK(bench.last_event<event::AttemptFailed>().detail ==
        "ran longer than its timeout of 0.100 s");
}

TEST_CASE("agent: an attempt that ends well after its time was up has timed out all the same") {
  Bench bench;
  input::Start in = Bench::start_input(1);
  in.timeout = milliseconds(100);
  bench.give(in);
  bench.staged(1);
  bench.tick({milliseconds(100).ns});
  CHECK(bench.exited(1) == Texts{"failed 1 timeout", "clean 1 keeping a copy"});
}

TEST_CASE("agent: without a grace the stop signal and the kill come together") {
  Bench bench;
  input::Start in = Bench::start_input(1);
  in.timeout = milliseconds(100);
  in.grace = {};
  bench.give(in);
  bench.staged(1);
  CHECK(bench.tick({milliseconds(100).ns}) == Texts{"stop 1", "kill 1"});
}

// -- failures

// UC-072
TEST_CASE("agent: whatever the status, a failure while memory ran out has that cause") {
  for (const auto& [code, signal] : {std::pair{1, 0}, std::pair{137, 0}, std::pair{0, 9}}) {
    Bench bench;
    bench.run(1);
    input::Exited gone{attempt(1), code, signal, {}, ""};
    gone.memory_ran_out = true;
    bench.give(gone);
    const auto failed = bench.last_event<event::AttemptFailed>();
    CHECK(failed.cause == Cause::kOom);
    CHECK(failed.exit_code == code);
    CHECK(failed.detail.find("for want of memory") != std::string::npos);
  }
}

TEST_CASE("agent: what ends in setup has failed by setup, whatever its status") {
  for (const auto& [code, signal, detail] :
       {std::tuple{9, 0, "setup exited with 9"}, std::tuple{0, 0, "setup exited with 0"},
        std::tuple{0, 9, "setup ended by signal 9"}}) {
    Bench bench;
    bench.run(1);
    CHECK(bench.exited(1, code, signal, true) == Texts{"failed 1 setup", "clean 1 keeping a copy"});
    CHECK(bench.last_event<event::AttemptFailed>().detail == detail);
  }
}

TEST_CASE("agent: exit status and signal are told apart") {
  Bench bench;
  bench.run(1);
  CHECK(bench.exited(1, 3) == Texts{"failed 1 exit", "clean 1 keeping a copy"});
  const auto failed = bench.last_event<event::AttemptFailed>();
  CHECK(failed.exit_code == 3);
  CHECK(failed.stderr_tail == "tail");
  CHECK(failed.worker == kSelf);
  CHECK(failed.usage.wall == seconds(1));
  CHECK(failed.detail == "exited with 3");
  bench.run(2);
  CHECK(bench.exited(2, 0, 11) == Texts{"failed 2 signal", "clean 2 keeping a copy"});
  CHECK(bench.last_event<event::AttemptFailed>().signal == 11);
}

TEST_CASE("agent: staging, start and output failures keep their cause and free the cores") {
  Bench bench({1, 0});
  bench.start(1);
  CHECK(bench.give(input::StageFailed{attempt(1), Cause::kDisk, "full"}) ==
        Texts{"failed 1 disk", "clean 1"});
  bench.run(2);
  CHECK(bench.give(input::StartFailed{attempt(2), "no such program"}) ==
        Texts{"failed 2 start", "clean 2 keeping a copy"});
  bench.run(3);
  bench.exited(3);
  CHECK(bench.give(input::CheckFailed{attempt(3), Cause::kOutput, "no file 'a'"}) ==
        Texts{"failed 3 output", "clean 3 keeping a copy"});
  CHECK(bench.last_event<event::AttemptFailed>().detail == "no file 'a'");
  CHECK(bench.last_event<event::AttemptFailed>().usage.wall == seconds(1));
  CHECK(bench.agent().slots().free() == Resources{1, 0});
}

// -- objects

TEST_CASE("agent: a dropped object goes at once, or when the last attempt that reads it ended") {
  Bench bench;
  bench.finish(1);
  CHECK(bench.drop(10) == Texts{"remove 10"});
  CHECK(bench.drop(10) == Texts{});
  bench.finish(2);
  bench.start(3, {{20, kSelf}});
  CHECK(bench.drop(20) == Texts{});
  CHECK(bench.give(input::TakeBack{attempt(3)}) == Texts{"returned 3", "clean 3", "remove 20"});
}

TEST_CASE("agent: an object asked for again before its drop was carried out is announced again") {
  Bench bench;
  bench.finish(1);
  bench.start(2, {{10, kSelf}});
  bench.drop(10);
  CHECK(bench.start(3, {{10, kPeer}}) == Texts{"added 10", "stage 3"});
  CHECK(bench.give(input::TakeBack{attempt(2)}) == Texts{"returned 2", "clean 2"});
  CHECK(bench.give(input::TakeBack{attempt(3)}) == Texts{"returned 3", "clean 3"});
  CHECK(bench.drop(10) == Texts{"remove 10"});
}

TEST_CASE("agent: an object dropped during its fetch goes as soon as it came") {
  Bench bench;
  bench.start(1, {{5, kPeer}});
  bench.give(input::TakeBack{attempt(1)});
  CHECK(bench.drop(5) == Texts{});
  CHECK(bench.fetched(5) == Texts{"remove 5"});
}

TEST_CASE("agent: a held object is saved, and stays until its save ended") {
  Bench bench;
  bench.finish(1);
  CHECK(bench.save(10, 100) == Texts{"save 10 as 100"});
  CHECK(bench.drop(10) == Texts{});
  CHECK(bench.give(input::Saved{ObjectId(10), attempt(100)}) ==
        Texts{"saved 10 as 100", "remove 10"});
}

TEST_CASE("agent: a save that fails is reported with its reason") {
  Bench bench;
  bench.finish(1);
  bench.save(10, 100);
  CHECK(bench.give(input::SaveFailed{ObjectId(10), attempt(100), "disk full"}) ==
        Texts{"unsaved 10 as 100: disk full"});
  CHECK(bench.save(5, 101) == Texts{"unsaved 5 as 101: the worker does not hold it"});
}

// -- time and the end

TEST_CASE("agent: a heartbeat is sent only when nothing else was reported") {
  Bench bench;
  CHECK(bench.agent().next_deadline() == Instant{milliseconds(500).ns});
  CHECK(bench.tick({milliseconds(499).ns}) == Texts{});
  CHECK(bench.tick({milliseconds(500).ns}) == Texts{"heartbeat"});
  bench.now = {milliseconds(800).ns};
  bench.run(1);
  CHECK(bench.tick({milliseconds(1000).ns}) == Texts{});
  CHECK(bench.agent().next_deadline() == Instant{milliseconds(1300).ns});
  CHECK(bench.tick({milliseconds(1300).ns}) == Texts{"heartbeat"});
}

TEST_CASE("agent: leaving gives back what is queued, kills what runs and waits for both") {
  Bench bench({1, 0});
  bench.run(1);
  bench.run(2);
  CHECK(bench.give(input::Leave{}) == Texts{"returned 2", "clean 2", "kill 1"});
  CHECK(bench.start(3) == Texts{"returned 3", "clean 3"});
  CHECK(bench.exited(1, 0, 9) == Texts{"stopped 1", "clean 1", "left"});
  CHECK(bench.agent().next_deadline() == Instant::never());
  CHECK(bench.tick({seconds(9).ns}) == Texts{});
}

TEST_CASE("agent: leaving waits for saves and checks that are under way") {
  Bench bench;
  bench.finish(1);
  bench.save(10, 100);
  bench.run(2);
  bench.exited(2);
  CHECK(bench.give(input::Leave{}) == Texts{});
  CHECK(bench.checked(2) == Texts{"finished 2", "clean 2"});
  CHECK(bench.give(input::Saved{ObjectId(10), attempt(100)}) == Texts{"saved 10 as 100", "left"});
}

TEST_CASE("agent: an idle worker leaves at once") {
  Bench bench;
  CHECK(bench.give(input::Leave{}) == Texts{"left"});
}

TEST_CASE("agent: answers for attempts that are gone are ignored") {
  Bench bench;
  bench.finish(1);
  CHECK(bench.staged(1) == Texts{});
  CHECK(bench.exited(1) == Texts{});
  CHECK(bench.checked(1) == Texts{});
  CHECK(bench.fetched(99) == Texts{});
  CHECK(bench.fetch_failed(99) == Texts{});
}

}  // namespace
}  // namespace sluice::scheduler
