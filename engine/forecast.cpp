#include "engine/forecast.h"

#include <cerrno>
#include <memory>
#include <utility>

#include "engine/report.h"
#include "engine/resume.h"
#include "io/files.h"
#include "io/sources.h"
#include "scheduler/core.h"

namespace sluice::engine {

using scheduler::GroupId;
using scheduler::InstanceId;
using scheduler::InstanceState;
using scheduler::ObjectId;

namespace {

std::string attempt_text(scheduler::AttemptId attempt) {
  return std::to_string(attempt.epoch()) + "." + std::to_string(attempt.number());
}

// A forecast changes nothing: a rename that a run would complete is left to that run.
class ReadOnlyFiles final : public io::Files {
 public:
  Expected<std::unique_ptr<io::File>> open(const std::filesystem::path& path, Open) override {
    return refused(path);
  }
  Expected<std::string> read(const std::filesystem::path& path) override {
    return io::real_files().read(path);
  }
  Status replace(const std::filesystem::path& path, std::string_view) override {
    return refused(path);
  }
  Status rename(const std::filesystem::path& from, const std::filesystem::path&) override {
    return refused(from);
  }
  Status remove(const std::filesystem::path& path) override { return refused(path); }
  Status link(const std::filesystem::path& from, const std::filesystem::path&) override {
    return refused(from);
  }
  Expected<uint64_t> size(const std::filesystem::path& path) override {
    return io::real_files().size(path);
  }
  Expected<std::vector<std::string>> list(const std::filesystem::path& folder) override {
    return io::real_files().list(folder);
  }

 private:
  static Error refused(const std::filesystem::path& path) {
    return {"a forecast changes nothing, so '" + path.string() + "' stays as it is", EROFS};
  }
};

// One look at the core's answer for every instance.
class Judge {
 public:
  Judge(const io::Pipeline& pipeline, const io::JournalState& journal, const scheduler::Core& core)
      : pipeline_(pipeline), journal_(journal), core_(core) {}

  [[nodiscard]] Verdict judge(InstanceId instance) const {
    Verdict verdict;
    const auto* facts = find_facts(instance);
    const InstanceState state = core_.state(instance);
    if (state == InstanceState::kDone) {
      verdict.kind = Verdict::Kind::kUpToDate;
      verdict.reason = "its command, parameters and inputs are those of its last success";
    } else if (state == InstanceState::kWaiting) {
      verdict.kind = Verdict::Kind::kMayRun;
      verdict.reason =
          "it waits for " + waited_for(instance) +
          (facts != nullptr && facts->done ? "; it runs if that has other content then" : "");
      if (facts == nullptr || !facts->done) verdict.kind = Verdict::Kind::kWillRun;
    } else {
      verdict.reason = reason_to_run(instance, facts);
    }
    if (facts != nullptr) add_history(*facts, verdict.history);
    return verdict;
  }

 private:
  using Facts = io::JournalState::InstanceFacts;

  const Facts* find_facts(InstanceId instance) const {
    const auto& task = pipeline_.graph.task(pipeline_.graph.task_of(instance));
    const auto found = journal_.instances.find({task.name, pipeline_.item(instance)});
    return found == journal_.instances.end() ? nullptr : &found->second;
  }

  std::string reason_to_run(InstanceId instance, const Facts* facts) const {
    if (facts == nullptr || !facts->done) {
      if (facts != nullptr && facts->last_failure) return "its last attempt failed";
      return "it has never finished";
    }
    if (facts->done->static_key != pipeline_.graph.static_key(instance)) {
      return "its command, parameters or source files changed since its last success";
    }
    if (core_.key(instance) != facts->done->key)
      return "the content of its inputs changed since its last success";
    for (size_t i = 0; i < facts->done->outputs.size(); ++i) {
      const ObjectId object = pipeline_.graph.object(instance, i);
      if (pipeline_.graph.output(object).result && !core_.durable(object)) {
        return "its result '" + facts->done->outputs[i].name + "' is not in the run directory";
      }
    }
    return "an output that another instance needs is gone from node memory";
  }

  // The first producer whose content is unknown.
  std::string waited_for(InstanceId instance) const {
    for (const GroupId group : pipeline_.graph.inputs(instance)) {
      for (const ObjectId object : pipeline_.graph.group_objects(group)) {
        if (!core_.content(object).known())
          return pipeline_.label(pipeline_.graph.producer(object));
      }
    }
    return "an input";
  }

  static void add_history(const Facts& facts, std::vector<std::string>& history) {
    if (facts.done) {
      history.push_back("done by attempt " + attempt_text(facts.done->attempt) + " on worker " +
                        std::to_string(facts.done->worker) + ", " +
                        time_text(facts.done->unix_time_ms));
    }
    if (facts.last_failure) {
      const io::record::Attempt& failure = *facts.last_failure;
      std::string text = "attempt " + attempt_text(failure.attempt) + " failed: " + failure.cause;
      if (failure.cause == "exit") text += " " + std::to_string(failure.exit_code);
      if (failure.signal != 0) text += " (signal " + std::to_string(failure.signal) + ")";
      if (!failure.detail.empty()) text += ": " + failure.detail;
      history.push_back(text + ", " + time_text(failure.unix_time_ms));
    }
    if (!facts.skipped_because.empty())
      history.push_back("was skipped because " + facts.skipped_because + " failed");
  }

  const io::Pipeline& pipeline_;
  const io::JournalState& journal_;
  const scheduler::Core& core_;
};

// What runs needs the bytes of its inputs. A done producer whose output is nowhere then runs again,
// and so on up the graph; the core finds that out when the consumer's turn comes.
class Recomputation {
 public:
  Recomputation(const io::Pipeline& pipeline, const scheduler::Core& core,
                std::vector<Verdict>& verdicts)
      : pipeline_(pipeline),
        core_(core),
        verdicts_(verdicts),
        raised_(verdicts.size(), false),
        asked_(pipeline.graph.group_count(), Verdict::Kind::kUpToDate) {}

  void spread() {
    for (size_t i = 0; i < verdicts_.size(); ++i) {
      if (verdicts_[i].kind != Verdict::Kind::kUpToDate) work_.emplace_back(i);
    }
    while (!work_.empty()) {
      const InstanceId consumer = work_.back();
      work_.pop_back();
      for (const GroupId group : pipeline_.graph.inputs(consumer)) {
        Verdict::Kind& asked = asked_[group.index()];
        const Verdict::Kind kind = verdicts_[consumer.index()].kind;
        if (asked == kind || asked == Verdict::Kind::kWillRun) continue;
        asked = kind;
        for (const ObjectId object : pipeline_.graph.group_objects(group)) need(consumer, object);
      }
    }
  }

 private:
  void need(InstanceId consumer, ObjectId object) {
    if (core_.durable(object)) return;
    const InstanceId producer = pipeline_.graph.producer(object);
    const Verdict::Kind kind = verdicts_[consumer.index()].kind;
    Verdict& verdict = verdicts_[producer.index()];
    // What waits for unknown content of its own is not judged by its consumers: its file may be
    // durable, which the core knows only once the content is known.
    if (verdict.kind == Verdict::Kind::kUpToDate) raised_[producer.index()] = true;
    if (!raised_[producer.index()] || verdict.kind == kind) return;
    if (verdict.kind == Verdict::Kind::kWillRun) return;
    const auto& task = pipeline_.graph.task(pipeline_.graph.task_of(consumer));
    verdict.kind = kind;
    verdict.reason = "its output '" + pipeline_.graph.output(object).name + "' is gone and '" +
                     task.name +
                     (kind == Verdict::Kind::kWillRun ? "' needs it" : "' needs it if that runs");
    work_.push_back(producer);
  }

  const io::Pipeline& pipeline_;
  const scheduler::Core& core_;
  std::vector<Verdict>& verdicts_;
  std::vector<bool> raised_;          // up to date but for a consumer
  std::vector<Verdict::Kind> asked_;  // by GroupId: by the strongest consumer so far
  std::vector<InstanceId> work_;
};

}  // namespace

const char* verdict_name(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::kUpToDate:
      return "up to date";
    case Verdict::Kind::kWillRun:
      return "will run";
    case Verdict::Kind::kMayRun:
      return "may run";
  }
  return "unknown";
}

Expected<Forecast> make_forecast(const io::Pipeline& pipeline, const RunDirectory& directory) {
  auto journal = io::read_journal(directory.path);
  if (!journal) return journal.error();
  ReadOnlyFiles files;
  const Resume known = resume(*journal, pipeline, directory.path, files, io::hash_file);
  scheduler::Core core(pipeline.graph, {});
  std::vector<scheduler::Decision> ignored;
  for (const scheduler::event::Restored& fact : known.restored) core.apply({}, fact, ignored);
  core.apply({}, scheduler::event::Begin{}, ignored);
  const Judge judge(pipeline, *journal, core);
  Forecast forecast;
  forecast.verdicts.reserve(pipeline.graph.instance_count());
  for (size_t i = 0; i < pipeline.graph.instance_count(); ++i) {
    forecast.verdicts.push_back(judge.judge(InstanceId(i)));
  }
  Recomputation(pipeline, core, forecast.verdicts).spread();
  return forecast;
}

}  // namespace sluice::engine
