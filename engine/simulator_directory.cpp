#include <algorithm>
#include <utility>

#include "engine/simulator.h"
#include "scheduler/check.h"

namespace sluice::engine {

using scheduler::Graph;
using scheduler::InstanceId;
using scheduler::ObjectId;
using scheduler::OutputKind;

void SimulatedRunDirectory::append(Fact fact) {
  if (const auto* durable = std::get_if<Durable>(&fact)) {
    disk_[durable->object] = durable->file;
  } else if (const auto* removed = std::get_if<Removed>(&fact)) {
    disk_.erase(removed->object);
  }
  fold(fact);
  facts_.push_back(std::move(fact));
}

void SimulatedRunDirectory::fold(const Fact& fact) {
  if (const auto* done = std::get_if<Done>(&fact)) {
    done_[done->instance] = *done;
  } else if (const auto* durable = std::get_if<Durable>(&fact)) {
    files_[durable->object] = durable->file;
  } else {
    files_.erase(std::get<Removed>(fact).object);
  }
}

void SimulatedRunDirectory::cut(size_t length) {
  SLUICE_ASSERT(length >= synced_ && length <= facts_.size(), length, synced_, facts_.size());
  keep(length);
}

void SimulatedRunDirectory::damage_record(size_t index) {
  SLUICE_ASSERT(index < facts_.size(), index, facts_.size());
  keep(index);
}

void SimulatedRunDirectory::damage_file(ObjectId object) {
  const auto entry = disk_.find(object);
  if (entry != disk_.end()) entry->second.content.low ^= 1;
}

void SimulatedRunDirectory::keep(size_t length) {
  facts_.resize(length);
  synced_ = std::min(synced_, length);
  done_.clear();
  files_.clear();
  for (const Fact& fact : facts_) fold(fact);
}

std::vector<scheduler::event::Restored> SimulatedRunDirectory::restored(const Graph& graph) const {
  std::vector<scheduler::event::Restored> events;
  for (const auto& [instance, done] : done_) {
    scheduler::event::Restored event{instance, done.key, done.outputs, {}};
    size_t index = 0;
    for (const ObjectId object : graph.objects_of(instance)) {
      const StoredObject* found = file(object);
      event.durable.push_back(graph.output(object).kind == OutputKind::kValue ||
                              (found != nullptr && found->content == done.outputs[index].content));
      ++index;
    }
    events.push_back(std::move(event));
  }
  return events;
}

const StoredObject* SimulatedRunDirectory::file(ObjectId object) const {
  const auto recorded = files_.find(object);
  const auto there = disk_.find(object);
  const bool same = recorded != files_.end() && there != disk_.end() &&
                    recorded->second.content == there->second.content;
  return same ? &there->second : nullptr;
}

}  // namespace sluice::engine
