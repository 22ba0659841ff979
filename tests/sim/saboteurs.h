// Everything that may go wrong, composed at random: a graph, its tasks' manners, and some
// submissions of it, each with saboteurs of several kinds at once. All is drawn from one seed;
// `text` says what was drawn, for whoever has to find out what happened. For tests only; pure.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/simulator.h"
#include "tests/sim/fates.h"
#include "tests/support/graph_shapes.h"

namespace sluice::tests {

// One submission of the pipeline, and what happens to its directory afterwards.
struct Submission {
  engine::SimulationOptions options;
  bool cut_records = false;    // a crash of the machine takes some that were not synced
  bool damage_record = false;  // one of any age cannot be read afterwards
  uint32_t damaged_files = 0;
  std::string text;
};

class Composition {
 public:
  explicit Composition(uint64_t seed) : seed_(seed), random_(seed) {
    draw_manners();
    draw_graph();
    draw_machine();
  }

  [[nodiscard]] const scheduler::Graph& graph() const { return graph_; }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool may_stop() const { return shape_.stop_percent > 0; }
  // Nothing goes wrong but what the tasks themselves do.
  [[nodiscard]] const engine::SimulationOptions& calm() const { return calm_; }

  uint64_t below(uint64_t bound) { return random_() % bound; }
  bool chance(uint64_t percent) { return below(100) < percent; }

  // `until`: how long the run takes when nothing disturbs it; `events`: how many those are.
  Submission disturbed(scheduler::Instant until, uint64_t events) {
    Submission next;
    next.options = calm_;
    until_ = until;
    disturb_workers(next);
    disturb_network(next);
    disturb_clocks(next);
    fill_tiers(next);
    disturb_tasks(next);
    disturb_run(next, events);
    if (next.text.empty()) next.text = " nothing";
    return next;
  }

 private:
  using Instant = scheduler::Instant;
  using Duration = scheduler::Duration;

  Instant some_time() {
    return {static_cast<int64_t>(below(static_cast<uint64_t>(until_.ns) + 1))};
  }
  Duration from_to(int64_t low_ms, int64_t high_ms) {
    const auto span = static_cast<uint64_t>(high_ms - low_ms) + 1;
    return scheduler::milliseconds(low_ms + static_cast<int64_t>(below(span)));
  }
  scheduler::WorkerId some_worker() { return scheduler::WorkerId(1 + below(calm_.workers.size())); }
  static std::string ms(Duration duration) {
    return std::to_string(duration.ns / 1'000'000) + "ms";
  }
  static std::string ms(Instant at) { return "@" + ms(at - Instant{}); }
  static void say(Submission& next, const std::string& what) { next.text += " " + what + ";"; }

  // Either attempts fail now and then and are tried again until they succeed, or some instances
  // always fail and few attempts are granted: so it is known how each instance has to end.
  void draw_manners() {
    shape_.seed = seed_;
    shape_.cpus_max = 1 + static_cast<int32_t>(below(3));
    shape_.priority_max = chance(50) ? 3 : 0;
    shape_.memory_max = chance(30) ? 100 : 0;
    calm_.seed = seed_;
    calm_.core.failures_without_success_max = 1'000'000;
    if (chance(35)) {
      shape_.retry.max.fill(static_cast<uint8_t>(below(3)));
      calm_.model.doomed_permille = 80;
      shape_.ignore_percent = chance(30) ? 40 : 0;
      shape_.stop_percent = chance(20) ? 20 : 0;
    } else {
      shape_.retry.max.fill(200);
      shape_.timeout = scheduler::seconds(6);
      if (chance(40)) calm_.model.crash_permille = 150;
      if (chance(30)) calm_.model.hang_permille = 40;
      if (chance(30)) calm_.model.ignores_stop_permille = 300;
      if (chance(30)) calm_.model.bad_output_permille = 60;
    }
    if (chance(30)) shape_.retry.change.fill({from_to(0, 900), 0, 1250});
  }

  // Most are small: what goes wrong does so with few instances, and can be followed there.
  void draw_graph() {
    GraphShapes shapes(shape_);
    const uint64_t scale = chance(75) ? 1 : 3;
    switch (below(6)) {
      case 0:
        graph_ = shapes.chain(1 + number(5 * scale));
        break;
      case 1:
        graph_ = shapes.fork_join(1 + number(12 * scale));
        break;
      case 2:
        graph_ = shapes.tree(1 + number(9 * scale));
        break;
      case 3:
        graph_ = shapes.join(1 + number(6 * scale), 1 + number(6 * scale));
        break;
      default:
        graph_ = shapes.layered(2 + number(1 + 2 * scale), 2 + number(4 * scale));
    }
  }
  uint32_t number(uint64_t bound) { return static_cast<uint32_t>(below(bound)); }

  void draw_machine() {
    const size_t workers = 1 + below(5);
    for (size_t i = 0; i < workers; ++i) {
      engine::WorkerPlan plan;
      plan.resources = {3 + static_cast<int32_t>(below(3)), 100 + static_cast<int64_t>(below(200))};
      calm_.workers.push_back(plan);
    }
    calm_.core.dispatch_ahead = chance(80);
    if (chance(25)) {  // many things at one instant
      calm_.latency_min = calm_.latency_max = {};
      calm_.model.exact = chance(50);
      calm_.model.run_min = calm_.model.run_max = scheduler::milliseconds(500);
    }
    calm_.time_max = scheduler::seconds(4 * 3600);
    calm_.steps_max = 2'000'000;
    text_ = std::to_string(graph_.instance_count()) + " instances of " +
            std::to_string(graph_.task_count()) + " tasks on " + std::to_string(workers) +
            " workers, doomed " + std::to_string(calm_.model.doomed_permille) + ", crash " +
            std::to_string(calm_.model.crash_permille) + ", hang " +
            std::to_string(calm_.model.hang_permille);
  }

  void disturb_workers(Submission& next) {
    std::vector<engine::WorkerPlan>& workers = next.options.workers;
    const size_t spared = chance(90) ? below(workers.size()) : workers.size();
    const bool everybody = spared == workers.size();
    const bool deaths = chance(35);
    const bool stalls = chance(25);
    for (size_t i = 0; i < workers.size(); ++i) {
      engine::WorkerPlan& plan = workers[i];
      const std::string who = " w" + std::to_string(i + 1);
      if (chance(10)) {
        plan.joins = some_time();
        say(next, "late" + who + ms(plan.joins));
      }
      if (deaths && i != spared && chance(60)) {
        plan.dies = some_time();
        plan.death_reported = chance(50);
        if (everybody && i == 0) {  // a run nobody ever joined waits for ever
          plan.dies = std::max(plan.dies, plan.joins + scheduler::milliseconds(10));
          plan.death_reported = false;
        }
        say(next, (plan.death_reported ? "death of" : "unseen death of") + who + ms(plan.dies));
      }
      if (stalls && chance(40)) {
        plan.stalls = some_time();
        plan.stall = chance(60) ? from_to(100, 9000) : from_to(29'000, 70'000);
        say(next, "stall of" + who + ms(plan.stalls) + " for " + ms(plan.stall));
      }
    }
    if (workers.size() > 2 && chance(8)) {
      workers[below(workers.size())].broken = true;
      say(next, "a broken worker");
    }
  }

  void disturb_network(Submission& next) {
    engine::Sabotage& sabotage = next.options.sabotage;
    const uint64_t cuts = chance(40) ? 1 + below(3) : 0;
    for (uint64_t i = 0; i < cuts; ++i) {
      io::NetworkCut cut;
      cut.end = chance(15) ? scheduler::WorkerId(0) : some_worker();
      cut.from = some_time();
      cut.until = cut.from + (chance(50) ? from_to(10, 15'000) : from_to(29'000, 80'000));
      sabotage.cuts.push_back(cut);
      say(next, "cut of " + std::to_string(cut.end.value) + ms(cut.from) + " to " + ms(cut.until));
    }
    sabotage.late_reports_again = chance(60);
    if (chance(25)) {
      sabotage.slow_permille = 1 + number(200);
      sabotage.slow_max = from_to(1, 5000);
      say(next, "slow messages");
    }
    if (chance(15)) {
      sabotage.damaged_permille = 2 + number(20);
      sabotage.damaged_max = 1 + number(2);
      say(next, "damaged messages");
    }
  }

  void disturb_clocks(Submission& next) {
    engine::Sabotage& sabotage = next.options.sabotage;
    for (uint64_t jumps = chance(25) ? 1 + below(3) : 0; jumps > 0; --jumps) {
      const scheduler::WorkerId end = chance(50) ? scheduler::WorkerId(0) : some_worker();
      const engine::ClockJump jump{end, some_time(), from_to(1, 600'000)};
      sabotage.jumps.push_back(jump);
      say(next, "clock of " + std::to_string(end.value) + ms(jump.at) + " by " + ms(jump.by));
    }
    for (uint64_t pauses = chance(20) ? 1 + below(2) : 0; pauses > 0; --pauses) {
      const engine::Pause pause{some_time(), from_to(10, 90'000)};
      sabotage.pauses.push_back(pause);
      say(next, "pause" + ms(pause.at) + " for " + ms(pause.lasts));
    }
  }

  void fill_tiers(Submission& next) {
    constexpr uint64_t kSteps = 5;
    for (uint64_t full = chance(25) ? 1 + below(3) : 0; full > 0; --full) {
      engine::FullTier tier;
      tier.step = static_cast<engine::FullTier::Step>(below(kSteps));
      if (chance(70)) tier.worker = some_worker();
      if (tier.step >= engine::FullTier::Step::kCommitting) tier.worker = {};
      tier.window.from = some_time();
      tier.window.until = tier.window.from + from_to(1, 4000);
      next.options.sabotage.full.push_back(tier);
      say(next, "full tier " + std::to_string(static_cast<int>(tier.step)) + ms(tier.window.from) +
                    " to " + ms(tier.window.until));
    }
  }

  void disturb_tasks(Submission& next) {
    engine::ModelOptions& model = next.options.model;
    if (chance(20)) {
      model.fetch_failure_permille = 1 + number(150);
      say(next, "failing fetches");
    }
    if (chance(10)) {
      model.save_failure_permille = 1 + number(150);
      say(next, "failing saves");
    }
    if (chance(10) && shape_.retry.max[0] > 100) {
      model.stage_failure_permille = 1 + number(100);
      say(next, "failing stages");
    }
    if (chance(30)) {
      model.partial_permille = 1 + number(1000);
      say(next, "parts of inputs");
    }
  }

  void disturb_run(Submission& next, uint64_t events) {
    engine::SimulationOptions& options = next.options;
    if (chance(45)) {
      options.core_crash_after_events = 1 + below(events + events / 2);
      say(next, "crash after " + std::to_string(options.core_crash_after_events) + " events");
    } else if (chance(20)) {
      options.stop_at = some_time();
      say(next, "stop" + ms(options.stop_at));
    }
    if (chance(15)) {
      options.core.failures_max = 1 + number(3);
      say(next, "failures max " + std::to_string(options.core.failures_max));
    }
    if (chance(12)) {
      options.selected = selection();
      say(next, "selection");
    }
    if (chance(8)) {
      options.forced.emplace_back(below(graph_.instance_count()));
      say(next, "forced " + std::to_string(options.forced[0].value));
    }
    next.cut_records = chance(60);
    next.damage_record = chance(10);
    next.damaged_files = chance(15) ? 1 + number(2) : 0;
    if (next.damage_record) say(next, "damaged record");
    if (next.damaged_files > 0) say(next, "damaged files");
  }

  // Some instances and all that they need.
  std::vector<bool> selection() {
    std::vector<bool> marked(graph_.instance_count());
    for (size_t i = 0; i < marked.size(); ++i) marked[i] = chance(30);
    for (bool changed = true; changed;) {
      changed = false;
      const auto mark = [&](scheduler::InstanceId id) {
        if (!marked[id.index()]) marked[id.index()] = changed = true;
      };
      for (size_t i = 0; i < marked.size(); ++i) {
        if (!marked[i]) continue;
        for (const scheduler::InstanceId before : predecessors(graph_, scheduler::InstanceId(i))) {
          mark(before);
        }
      }
    }
    return marked;
  }

  uint64_t seed_;
  std::mt19937_64 random_;
  ShapeOptions shape_;
  scheduler::Graph graph_;
  engine::SimulationOptions calm_;
  Instant until_;
  std::string text_;
};

}  // namespace sluice::tests
