#include "engine/forecast.h"

#include <cerrno>
#include <memory>
#include <utility>

#include "engine/resume.h"
#include "io/files.h"
#include "io/manifest.h"
#include "scheduler/core.h"

namespace sluice::engine {

using scheduler::GroupId;
using scheduler::InstanceId;
using scheduler::InstanceState;
using scheduler::ObjectId;

namespace {

// A forecast changes nothing. A rename is as good as done: the run completes it, and nobody looks
// under the new name before.
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
  Status rename(const std::filesystem::path&, const std::filesystem::path&) override {
    return Done{};
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
  Judge(const io::Pipeline& pipeline, const Forecast& forecast, const scheduler::Core& core,
        const Selection& selection)
      : pipeline_(pipeline), forecast_(forecast), core_(core), selection_(selection) {}

  [[nodiscard]] Verdict judge(InstanceId instance) const {
    const Facts* facts = forecast_.facts(pipeline_, instance);
    const InstanceState state = core_.state(instance);
    if (state == InstanceState::kDone) return {Kind::kUpToDate, Reason::kUnchanged, {}, {}};
    if (state == InstanceState::kLeftOut) return {Kind::kLeftOut, Reason::kNotSelected, {}, {}};
    if (selection_.forces(instance)) return {Kind::kWillRun, Reason::kForced, {}, {}};
    if (facts == nullptr || !facts->done) {
      const bool failed = facts != nullptr && facts->last_failure;
      return {Kind::kWillRun, failed ? Reason::kLastFailed : Reason::kNeverFinished, {}, {}};
    }
    if (facts->done->static_key != pipeline_.graph.static_key(instance))
      return {Kind::kWillRun, Reason::kOwnChange, {}, {}};
    return state == InstanceState::kWaiting ? waits(instance) : lost_something(instance, *facts);
  }

 private:
  using Facts = io::JournalState::InstanceFacts;
  using Kind = Verdict::Kind;
  using Reason = Verdict::Reason;

  [[nodiscard]] Verdict lost_something(InstanceId instance, const Facts& facts) const {
    if (core_.key(instance) != facts.done->key)
      return {Kind::kWillRun, Reason::kInputChange, {}, {}};
    for (const ObjectId object : pipeline_.graph.objects_of(instance)) {
      if (pipeline_.graph.output(object).result && !core_.durable(object))
        return {Kind::kWillRun, Reason::kResultGone, object, {}};
    }
    return {Kind::kWillRun, Reason::kReplicaGone, {}, {}};
  }

  // Names the first producer whose content is unknown.
  [[nodiscard]] Verdict waits(InstanceId instance) const {
    for (const GroupId group : pipeline_.graph.inputs(instance)) {
      for (const ObjectId object : pipeline_.graph.group_objects(group)) {
        if (!core_.content(object).known())
          return {Kind::kMayRun, Reason::kWaits, object, pipeline_.graph.producer(object)};
      }
    }
    return {Kind::kMayRun, Reason::kWaits, {}, {}};
  }

  const io::Pipeline& pipeline_;
  const Forecast& forecast_;
  const scheduler::Core& core_;
  const Selection& selection_;
};

// The core demands again what is gone; people want to know for whom.
void name_needers(const io::Pipeline& pipeline, const scheduler::Core& core,
                  std::vector<Verdict>& verdicts) {
  const auto needs = [&](ObjectId object) -> InstanceId {
    for (const GroupId group : pipeline.graph.object_groups(object)) {
      for (const InstanceId consumer : pipeline.graph.group_consumers(group)) {
        if (verdicts[consumer.index()].kind == Verdict::Kind::kWillRun) return consumer;
      }
    }
    return {};
  };
  for (size_t i = 0; i < verdicts.size(); ++i) {
    Verdict& verdict = verdicts[i];
    if (verdict.reason != Verdict::Reason::kReplicaGone) continue;
    for (const ObjectId object : pipeline.graph.objects_of(InstanceId(i))) {
      if (core.durable(object)) continue;
      const InstanceId consumer = needs(object);
      if (!consumer.valid()) continue;
      verdict = {Verdict::Kind::kWillRun, Verdict::Reason::kNeeded, object, consumer};
      break;
    }
  }
}

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
      const Verdict::Kind kind = verdicts_[i].kind;
      if (kind == Verdict::Kind::kWillRun || kind == Verdict::Kind::kMayRun) work_.emplace_back(i);
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
    verdict = {kind, Verdict::Reason::kNeeded, object, consumer};
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
    case Verdict::Kind::kLeftOut:
      return "left out";
  }
  return "unknown";
}

std::string reason_text(const io::Pipeline& pipeline, const Verdict& verdict, Naming naming) {
  const auto output = [&] { return "'" + pipeline.graph.output(verdict.object).name + "'"; };
  const auto other = [&] {
    const auto& task = pipeline.graph.task(pipeline.graph.task_of(verdict.other));
    return naming == Naming::kTasks ? "'" + task.name + "'" : pipeline.label(verdict.other);
  };
  switch (verdict.reason) {
    case Verdict::Reason::kUnchanged:
      return "its command, parameters and inputs are those of its last success";
    case Verdict::Reason::kNeverFinished:
      return "it has never finished";
    case Verdict::Reason::kLastFailed:
      return "its last attempt failed";
    case Verdict::Reason::kOwnChange:
      return "its command, parameters, source files or list of items changed since its last "
             "success";
    case Verdict::Reason::kInputChange:
      return "the content of its inputs changed since its last success";
    case Verdict::Reason::kResultGone:
      return "its result " + output() + " is missing in the run directory, or was changed there";
    case Verdict::Reason::kReplicaGone:
      return "an output that another instance needs is gone from node memory";
    case Verdict::Reason::kNeeded:
      return "its output " + output() + " is gone and " + other() +
             (verdict.kind == Verdict::Kind::kWillRun ? " needs it" : " needs it if that runs");
    case Verdict::Reason::kForced:
      return "it is forced";
    case Verdict::Reason::kNotSelected:
      return "it is not selected";
    case Verdict::Reason::kWaits:
      if (!verdict.other.valid()) return "it waits for a task that it comes after";
      return "it waits for " + other() + "; it runs if " + output() + " has other content then";
  }
  return "unknown";
}

const io::JournalState::InstanceFacts* Forecast::facts(const io::Pipeline& pipeline,
                                                       InstanceId instance) const {
  const auto& task = pipeline.graph.task(pipeline.graph.task_of(instance));
  const auto found = journal.instances.find({task.name, pipeline.item(instance)});
  return found == journal.instances.end() ? nullptr : &found->second;
}

Expected<Forecast> make_forecast(const io::Pipeline& pipeline, const RunDirectory& directory,
                                 const Selection& selection, bool fresh) {
  auto journal = io::read_journal(directory.path);
  if (!journal) return journal.error();
  Forecast forecast;
  forecast.learned = learn_durations(pipeline, *journal);
  if (fresh) journal->instances.clear();
  ReadOnlyFiles files;
  Resume known = resume(*journal, pipeline, directory.path, files, io::hash_object);
  scheduler::Core core(pipeline.graph, {});
  std::vector<scheduler::Decision> ignored;
  for (const scheduler::Event& given : opening(selection, std::move(known.restored))) {
    core.apply({}, given, ignored);
  }
  core.apply({}, scheduler::event::Begin{}, ignored);
  forecast.journal = std::move(*journal);
  forecast.verdicts.reserve(pipeline.graph.instance_count());
  const Judge judge(pipeline, forecast, core, selection);
  for (size_t i = 0; i < pipeline.graph.instance_count(); ++i) {
    forecast.verdicts.push_back(judge.judge(InstanceId(i)));
  }
  for (size_t o = 0; o < pipeline.graph.object_count(); ++o) {
    forecast.contents.push_back(core.content(ObjectId(o)));
  }
  name_needers(pipeline, core, forecast.verdicts);
  Recomputation(pipeline, core, forecast.verdicts).spread();
  return forecast;
}

}  // namespace sluice::engine
