// Whole runs in which many things go wrong at once (tests/sim/saboteurs.h), again and again from
// what the last submission left, until a last one is left in peace. Whatever happened on the way,
// the referee has nothing to say, and each instance ends as it would have anyway.
//
// 500 compositions; 20 000 with SLUICE_LONG=1. One is repeated by the command that a failure
// prints.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/saboteurs.h"
#include "tests/sim/simulation.h"

namespace sluice::tests {
namespace {

using engine::PlantedBug;
using engine::SimulatedRunDirectory;
using engine::SimulationOptions;
using engine::SimulationResult;
using scheduler::Cause;
using scheduler::Graph;
using scheduler::InstanceId;
using scheduler::InstanceState;
using scheduler::ObjectId;
using scheduler::Outcome;

constexpr uint64_t kSeedsUsual = 500;
constexpr uint64_t kSeedsLong = 20'000;

// What was met in all compositions, so that it is seen when a saboteur no longer does anything.
struct Met {
  size_t crashes = 0;
  size_t workers_lost = 0;
  size_t damaged = 0;
  size_t fetches_failed = 0;
  size_t exact_minima = 0;
  std::map<Outcome, size_t> outcomes;
  std::map<Cause, size_t> causes;

  void add(const SimulationResult& result) {
    workers_lost += result.workers_lost;
    damaged += result.damaged;
    fetches_failed += result.fetches_failed;
    if (result.outcome) {
      ++outcomes[*result.outcome];
    } else {
      ++crashes;
    }
    for (const std::optional<Cause>& cause : result.failed_by) {
      if (cause) ++causes[*cause];
    }
  }
};

bool complete(const SimulationResult& result) {
  return result.outcome == Outcome::kAllDone || result.outcome == Outcome::kFailed;
}

// Plays one composition and collects what must not be.
class Play {
 public:
  Play(uint64_t seed, PlantedBug planted, Met& met)
      : composition_(seed),
        graph_(composition_.graph()),
        fates_(graph_, doomed(composition_)),
        planted_(planted),
        met_(met) {}

  void run() {
    undisturbed();
    const uint64_t rounds = composition_.below(5);
    for (uint64_t round = 0; round < rounds && problems_.empty(); ++round) {
      disturbed(composition_.disturbed(calm_result_.ended, calm_result_.events));
    }
    if (problems_.empty()) in_peace();
    if (problems_.empty()) once_more();
  }
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  static std::vector<bool> doomed(const Composition& composition) {
    const engine::ExecutorModel model = engine::model_of(composition.calm());
    std::vector<bool> all;
    for (size_t i = 0; i < composition.graph().instance_count(); ++i) {
      all.push_back(model.doomed(InstanceId(i)));
    }
    return all;
  }

  void problem(const std::string& where, const std::string& what) {
    problems_.push_back(where + ": " + what);
  }
  SimulationResult simulate(const std::string& where, const SimulationOptions& options,
                            SimulatedRunDirectory& directory) {
    text_ = composition_.text() + history_ + "; here: " + where;
    SimulationResult result = engine::simulate(graph_, options, directory);
    for (const std::string& what : result.problems) problem(where, what);
    return result;
  }
  void check_fates(const std::string& where, const SimulationResult& result,
                   const Fates::Excuses& excuses) {
    for (const std::string& what : fates_.unexplained(result, excuses)) problem(where, what);
  }
  // A task that stops the run when it fails leaves others without their turn.
  [[nodiscard]] bool ends_early(const SimulationResult& result) const {
    return composition_.may_stop() && result.counts.failed > 0;
  }

  void undisturbed() {
    calm_result_ = simulate("undisturbed", composition_.calm(), calm_directory_);
    if (!complete(calm_result_)) problem("undisturbed", "it is not complete");
    check_fates("undisturbed", calm_result_, {{}, ends_early(calm_result_), nullptr});
  }

  void disturbed(Submission submission) {
    history_ += "; then:" + submission.text;
    const SimulationOptions& options = submission.options;
    const std::vector<bool> minimum = minimum_from(graph_, directory_);
    std::optional<SimulatedRunDirectory> copy;
    if (composition_.chance(10)) copy = directory_;
    const SimulationResult result = simulate("disturbed", options, directory_);
    met_.add(result);
    if (copy && engine::simulate(graph_, options, *copy).digest != result.digest) {
      problem("disturbed", "the same again has another digest");
    }
    check_outcome(options, result);
    if (result.workers_lost > 0 && !may_lose_workers(options, result)) {
      problem("disturbed", "a worker was lost that was there all the time");
    }
    if (complete(result)) {
      check_fates("disturbed", result,
                  {excuses(options, result), options.core.failures_max > 0 || ends_early(result),
                   options.selected.empty() ? nullptr : &options.selected});
    }
    if (options.forced.empty()) check_runs("disturbed", options, result, minimum);
    if (!result.outcome) damage(submission);
  }

  // Causes that saboteurs may give rise to, beyond what retries make good.
  static std::set<Cause> excuses(const SimulationOptions& options, const SimulationResult& result) {
    std::set<Cause> causes;
    if (result.workers_lost >= static_cast<size_t>(scheduler::kLostAttemptsMax)) {
      causes.insert(Cause::kLost);
    }
    if (!options.sabotage.full.empty()) causes.insert(Cause::kDisk);
    if (result.fetches_failed > 10) causes.insert(Cause::kStaging);
    const bool broken = std::any_of(options.workers.begin(), options.workers.end(),
                                    [](const engine::WorkerPlan& plan) { return plan.broken; });
    if (broken) causes.insert(Cause::kExit);
    return causes;
  }

  // Neither a pause of rank 0 nor a jump of its clock is a silence of others.
  static bool may_lose_workers(const SimulationOptions& options, const SimulationResult& result) {
    const scheduler::Duration long_silence = options.core.lost_after - scheduler::seconds(6);
    const auto dies_or_stalls = [&](const engine::WorkerPlan& plan) {
      return plan.dies != scheduler::Instant::never() || plan.stall > long_silence;
    };
    // Cuts may follow on each other.
    return result.damaged > 0 || options.sabotage.cuts.size() > 1 ||
           std::any_of(options.workers.begin(), options.workers.end(), dies_or_stalls) ||
           std::any_of(options.sabotage.cuts.begin(), options.sabotage.cuts.end(),
                       [&](const io::NetworkCut& cut) {
                         return cut.until - cut.from + options.sabotage.slow_max > long_silence;
                       });
  }

  void check_outcome(const SimulationOptions& options, const SimulationResult& result) {
    const auto only_if = [&](Outcome outcome, bool may_be, const char* what) {
      if (result.outcome == outcome && !may_be) problem("disturbed", what);
    };
    const bool disk = !options.sabotage.full.empty() || options.model.save_failure_permille > 0;
    only_if(Outcome::kStuck, result.workers_lost > 0, "it is stuck though no worker was lost");
    only_if(Outcome::kStopped, options.stop_at != scheduler::Instant::never(),
            "it is stopped though nobody asked");
    only_if(Outcome::kDisk, disk, "its disk is said to be full and was not");
    if (!result.outcome && options.core_crash_after_events == 0 && result.problems.empty()) {
      problem("disturbed", "it has no outcome");
    }
  }

  // What ran against what had to. Where no bytes are lost on the way, nothing else may have run.
  void check_runs(const std::string& where, const SimulationOptions& options,
                  const SimulationResult& result, const std::vector<bool>& minimum) {
    const engine::Sabotage& sabotage = options.sabotage;
    const bool bytes_stay = result.workers_lost == 0 && result.fetches_failed == 0 &&
                            sabotage.full.empty() && options.model.save_failure_permille == 0;
    const bool bytes_needed = complete(result) && result.counts.done == minimum.size();
    if (bytes_stay && bytes_needed) ++met_.exact_minima;
    for (size_t i = 0; i < minimum.size(); ++i) {
      const std::string who = "instance " + std::to_string(i);
      if (bytes_stay && result.launches[i] > 0 && !minimum[i]) {
        problem(where, who + " ran though nothing that it made was needed");
      }
      if (bytes_needed && result.states[i] == InstanceState::kDone && minimum[i] &&
          result.launches[i] == 0) {
        problem(where, who + " had to run and did not");
      }
    }
  }

  void damage(const Submission& submission) {
    if (submission.cut_records) {
      const uint64_t loose = directory_.length() - directory_.synced();
      directory_.cut(directory_.length() - composition_.below(loose + 1));
    }
    if (submission.damage_record && directory_.length() > 0) {
      directory_.damage_record(composition_.below(directory_.length()));
    }
    for (uint32_t i = 0; i < submission.damaged_files; ++i) {
      directory_.damage_file(ObjectId(composition_.below(graph_.object_count())));
    }
  }

  void in_peace() {
    const std::vector<bool> minimum = minimum_from(graph_, directory_);
    SimulationOptions options = composition_.calm();
    options.sabotage.planted = planted_;
    if (planted_ != PlantedBug::kNone) options.time_max = scheduler::seconds(1800);
    const SimulationResult result = simulate("in peace", options, directory_);
    if (!complete(result)) problem("in peace", "it is not complete");
    check_fates("in peace", result, {{}, ends_early(result), nullptr});
    check_runs("in peace", options, result, minimum);
    if (result.outcome != calm_result_.outcome) problem("in peace", "it has another outcome");
    if (!ends_early(result)) check_same_results();
  }

  void check_same_results() {
    for (size_t o = 0; o < graph_.object_count(); ++o) {
      const ObjectId object(o);
      if (!graph_.output(object).result) continue;
      const engine::StoredObject* expected = calm_directory_.file(object);
      const engine::StoredObject* found = directory_.file(object);
      const bool same = (expected == nullptr) == (found == nullptr) &&
                        (expected == nullptr || expected->content == found->content);
      if (!same) problem("in peace", "result object " + std::to_string(o) + " is another");
    }
  }

  // What is done stays done.
  void once_more() {
    const SimulationResult result = simulate("once more", composition_.calm(), directory_);
    for (size_t i = 0; i < result.launches.size(); ++i) {
      if (result.launches[i] > 0 && fates_.of(i) == InstanceState::kDone && !ends_early(result)) {
        problem("once more", "instance " + std::to_string(i) + " ran again");
      }
    }
  }

  Composition composition_;
  const Graph& graph_;
  Fates fates_;
  PlantedBug planted_;
  Met& met_;
  SimulatedRunDirectory calm_directory_;
  SimulatedRunDirectory directory_;
  SimulationResult calm_result_;
  std::string history_;
  std::string text_;
  std::vector<std::string> problems_;
};

// An assertion of the core or an agent ends the process, and doctest then logs nothing.
const Play* playing = nullptr;
uint64_t playing_seed = 0;
using SignalHandler = void (*)(int);
SignalHandler doctest_handler = SIG_DFL;

std::string command(uint64_t seed) {
  return "SLUICE_SEED=" + std::to_string(seed) +
         " build/release/tests/test_sim --test-case='saboteurs*'";
}

void say_what_was_played(int signal) {
  if (playing != nullptr) {
    std::fprintf(stderr, "repeat with %s\n%s\n", command(playing_seed).c_str(),
                 playing->text().c_str());
  }
  std::signal(signal, doctest_handler);
  std::raise(signal);
}

void play_and_check(uint64_t seed, Met& met) {
  Play play(seed, PlantedBug::kNone, met);
  INFO(command(seed));
  INFO(play.text());
  playing = &play;
  playing_seed = seed;
  play.run();
  playing = nullptr;
  for (const std::string& problem : play.problems()) FAIL_CHECK(problem);
}

TEST_CASE("saboteurs: whatever goes wrong together, each instance ends as if nothing had") {
  const uint64_t seeds = number_from_environment("SLUICE_LONG", 0) > 0 ? kSeedsLong : kSeedsUsual;
  Met met;
  uint64_t played = 0;
  doctest_handler = std::signal(SIGABRT, say_what_was_played);
  for_each_seed(
      [&](uint64_t seed) {
        play_and_check(seed, met);
        ++played;
      },
      seeds);
  std::signal(SIGABRT, doctest_handler);
  if (played < kSeedsUsual) return;  // one alone meets little
  CHECK(met.crashes > 0);
  CHECK(met.workers_lost > 0);
  CHECK(met.damaged > 0);
  CHECK(met.fetches_failed > 0);
  CHECK(met.exact_minima > 0);
  CHECK(met.outcomes.size() == 5);
  CHECK(met.causes[Cause::kDisk] > 0);
}

// The oracle of the case above can fail: each of these bugs is found in some composition, and named
// for what it is.
TEST_CASE("saboteurs: bugs that are planted are found") {
  const std::map<PlantedBug, std::string> bugs = {
      {PlantedBug::kReportDropped, "the run did not end"},
      {PlantedBug::kFetchFlipped, "has a wrong content"},
      {PlantedBug::kSaveFlipped, "has a wrong content"},
      {PlantedBug::kCommitForgotten, "is not in the run directory"},
      {PlantedBug::kRecordForgotten, "ran again"},
      {PlantedBug::kDropForgotten, "is left on worker"},
      {PlantedBug::kRunTwice, "is given twice"},
  };
  CHECK(bugs.size() + 1 == engine::kPlantedBugCount);
  constexpr uint64_t kSeedsPlanted = 40;
  for (const auto& planted : bugs) {
    const PlantedBug bug = planted.first;
    const std::string& words = planted.second;
    CAPTURE(words);
    size_t found = 0;
    for (uint64_t seed = 1; seed <= kSeedsPlanted; ++seed) {
      Met met;
      Play play(seed, bug, met);
      play.run();
      found += static_cast<size_t>(std::any_of(
          play.problems().begin(), play.problems().end(),
          [&](const std::string& what) { return what.find(words) != std::string::npos; }));
    }
    CHECK(found > 0);
  }
}

}  // namespace
}  // namespace sluice::tests
