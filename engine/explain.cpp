#include "engine/explain.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "engine/key_parts.h"
#include "engine/report.h"
#include "io/spec_describe.h"

namespace sluice::engine {

using scheduler::InstanceId;
using scheduler::TaskId;
using Facts = io::JournalState::InstanceFacts;

namespace {

constexpr size_t kWaitsShown = 5;

std::string behind(const std::string& text, const std::string& prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : "";
}

std::string lines(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : "\n") + text;
  return out;
}

// Of two texts of several lines only the first lines that differ are shown, with their number.
void show_difference(Change& change) {
  if (change.was == change.is) {  // the way to run, the names of inputs: nothing to show
    change.was.clear();
    change.is.clear();
    return;
  }
  if (change.was.empty()) {  // the old text is not known, and the new one stands in the spec
    change.is.clear();
    return;
  }
  if (change.was.find('\n') == std::string::npos && change.is.find('\n') == std::string::npos)
    return;
  std::istringstream was(change.was);
  std::istringstream is(change.is);
  size_t number = 0;
  do {
    ++number;
    if (!std::getline(was, change.was)) change.was.clear();
    if (!std::getline(is, change.is)) change.is.clear();
  } while (change.was == change.is && (was || is));
  change.what += ", line " + std::to_string(number);
}

}  // namespace

std::string cause_text(const io::record::Attempt& failure) {
  return cause_text(failure.cause, failure.exit_code, failure.signal);
}

Explanation Explainer::explain(InstanceId instance) const {
  Explanation out;
  out.instance = instance;
  out.label = pipeline_.label(instance);
  out.verdict = forecast_.verdicts[instance.index()];
  out.reason = reason_text(pipeline_, out.verdict, Naming::kInstances);
  if (out.verdict.kind != Verdict::Kind::kUpToDate) add_waits(out);
  const Facts* facts = forecast_.facts(pipeline_, instance);
  if (facts == nullptr) return out;
  if (facts->done) {
    const io::record::DoneRecord& done = *facts->done;
    out.success = Success{done.attempt, where(done.worker, done.attempt.epoch()), done.unix_time_ms,
                          done.usage.wall};
    const bool changed = out.verdict.reason == Verdict::Reason::kOwnChange ||
                         out.verdict.reason == Verdict::Reason::kInputChange;
    if (changed) add_changes(*facts, out);
  }
  add_failures(*facts, out);
  out.skipped_because = facts->skipped_because;
  return out;
}

// -- what changed ---------------------------------------------------------------------------------

void Explainer::add_changes(const Facts& facts, Explanation& out) const {
  if (!facts.part_names) return;
  const auto content_of = [this](scheduler::ObjectId object) {
    return forecast_.contents[object.index()];
  };
  const TaskId task = pipeline_.graph.task_of(out.instance);
  const std::vector<std::string> parts = differing_parts(
      forecast_.journal.key_parts[*facts.part_names].names, facts.done->parts,
      key_part_names(pipeline_, task), KeyParts(pipeline_, content_of).digits(out.instance));
  // An input that is not made yet is no change of the instance's own.
  std::set<std::string> unknown;
  const io::TaskText& text = pipeline_.tasks[task.index()];
  for (const io::TaskInput& input : text.inputs) {
    if (input.join != io::JoinKind::kSource && out.verdict.reason == Verdict::Reason::kOwnChange)
      unknown.insert("input " + input.name);
  }
  for (const std::string& part : parts) {
    if (!unknown.contains(part)) out.changes.push_back(describe_change(part, out.instance, facts));
  }
}

Change Explainer::describe_change(const std::string& part, InstanceId instance,
                                  const Facts& facts) const {
  Change change{part, "", "", ""};
  const io::TaskText& text = pipeline_.tasks[pipeline_.graph.task_of(instance).index()];
  if (part == "command") {
    change.what = "its command";
    change.is = pipeline_.command_text(instance);
    if (const InstanceId old = same_before(part, instance, facts); old.valid())
      change.was = before_->command_text(old);
    show_difference(change);
  } else if (part == "environment") {
    change.what = "its environment ('env')";
    change.is = lines(io::environment_texts(pipeline_, instance));
    if (const InstanceId old = same_before(part, instance, facts); old.valid())
      change.was = lines(io::environment_texts(*before_, old));
    show_difference(change);
  } else if (part == "outputs") {
    change.what = "names, kinds or files of its outputs";
  } else if (const std::string name = behind(part, "param "); !name.empty()) {
    change.what = "param '" + name + "'";
    const auto value_in = [&name = name](const auto& params) {
      const auto found = std::find_if(params.begin(), params.end(),
                                      [&](const auto& param) { return param.first == name; });
      return found == params.end() ? std::string() : found->second;
    };
    if (facts.done->attempt.epoch() == forecast_.journal.epoch)
      change.was = value_in(forecast_.journal.last_run.params);
    change.is = value_in(pipeline_.params);
  } else if (const std::string file = behind(part, "uses "); !file.empty()) {
    change.what = "the content of '" + file + "' (uses)";
  } else if (const std::string word = behind(part, "file in "); !word.empty()) {
    change.what = "the content of the file that " + word + " names";
  } else if (const std::string listed = behind(part, "form of input "); !listed.empty()) {
    change.what = "what input '" + listed +
                  "' is made of: which items, in which order, of which kind, which part";
  } else {
    const std::string input_name = behind(part, "input ");
    change.what = "the content of input '" + input_name + "'";
    for (const io::TaskInput& input : text.inputs) {
      if (input.name == input_name && input.join == io::JoinKind::kSource)
        change.what += ", '" + io::source_path(pipeline_, instance, input_name) + "'";
      if (input.name == input_name && input.join != io::JoinKind::kSource)
        change.what += ", made by '" + pipeline_.graph.task(input.producer).name + "'";
    }
  }
  return change;
}

// The instance in the spec of the last submission, if that part of it was then as it was at the
// instance's last success: then its texts are the old ones.
InstanceId Explainer::same_before(const std::string& part, InstanceId instance,
                                  const Facts& facts) const {
  if (before_ == nullptr) return {};
  const auto& task = pipeline_.graph.task(pipeline_.graph.task_of(instance));
  const InstanceId old = before_->find(task.name, pipeline_.item(instance));
  if (!old.valid()) return {};
  const auto nothing_known = [](scheduler::ObjectId) { return scheduler::Hash128{}; };
  const std::vector<std::string> differing =
      differing_parts(forecast_.journal.key_parts[*facts.part_names].names, facts.done->parts,
                      before_->tasks[before_->graph.task_of(old).index()].key_parts,
                      KeyParts(*before_, nothing_known).digits(old));
  const bool same = std::find(differing.begin(), differing.end(), part) == differing.end();
  return same ? old : InstanceId();
}

// -- whom it waits for ----------------------------------------------------------------------------

void Explainer::add_waits(Explanation& out) const {
  std::set<InstanceId> producers;
  for (const scheduler::GroupId group : pipeline_.graph.inputs(out.instance)) {
    for (const scheduler::ObjectId object : pipeline_.graph.group_objects(group))
      producers.insert(pipeline_.graph.producer(object));
  }
  for (const scheduler::GateId gate : pipeline_.graph.gates_before(out.instance)) {
    const auto before = pipeline_.graph.gate_predecessors(gate);
    producers.insert(before.begin(), before.end());
  }
  for (const InstanceId producer : producers) {
    const Verdict& verdict = forecast_.verdicts[producer.index()];
    if (verdict.kind == Verdict::Kind::kUpToDate) continue;
    if (out.waits_for.size() == kWaitsShown) {
      ++out.waits_for_more;
      continue;
    }
    const Facts* facts = forecast_.facts(pipeline_, producer);
    std::string state = reason_text(pipeline_, verdict, Naming::kInstances);
    if (facts != nullptr && !facts->skipped_because.empty())
      state = "it was skipped because " + facts->skipped_because + " failed";
    if (facts != nullptr && facts->last_failure)
      state = "its last attempt failed: " + cause_text(*facts->last_failure);
    out.waits_for.push_back(pipeline_.label(producer) + " (" + verdict_name(verdict.kind) + ": " +
                            state + ")");
  }
}

// -- what happened --------------------------------------------------------------------------------

std::string Explainer::where(uint32_t worker, uint32_t epoch) const {
  for (const io::record::Worker& known : forecast_.journal.workers) {
    if (known.worker == worker && epoch == forecast_.journal.epoch && !known.host.empty())
      return known.host;
  }
  return "worker " + std::to_string(worker);
}

void Explainer::add_failures(const Facts& facts, Explanation& out) const {
  const auto& task = pipeline_.graph.task(pipeline_.graph.task_of(out.instance));
  const std::string item = pipeline_.item(out.instance);
  std::vector<io::record::Attempt> failures;
  for (const io::record::Attempt& failure : forecast_.journal.attempts) {
    const bool later = !facts.done || failure.unix_time_ms >= facts.done->unix_time_ms;
    if (failure.task == task.name && failure.item == item && later) failures.push_back(failure);
  }
  if (failures.empty() && facts.last_failure) failures.push_back(*facts.last_failure);
  for (io::record::Attempt& failure : failures) {
    FailedAttempt one;
    one.cause = cause_text(failure);
    one.where = where(failure.worker, failure.attempt.epoch());
    one.record = std::move(failure);
    out.failures.push_back(std::move(one));
  }
}

}  // namespace sluice::engine
