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
  fold(fact, facts_.size());
  facts_.push_back(std::move(fact));
}

void SimulatedRunDirectory::fold(const Fact& fact, size_t place) {
  if (const auto* done = std::get_if<Done>(&fact)) {
    const size_t index = done->instance.index();
    if (index >= done_at_.size()) done_at_.resize(index + 1);
    done_at_[index] = static_cast<uint32_t>(place + 1);
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
  done_at_.clear();
  files_.clear();
  for (size_t place = 0; place < facts_.size(); ++place) fold(facts_[place], place);
}

std::vector<scheduler::event::Restored> SimulatedRunDirectory::restored(const Graph& graph) const {
  std::vector<scheduler::event::Restored> events;
  for (const uint32_t at : done_at_) {
    if (at == 0) continue;
    const Done& done = std::get<Done>(facts_[at - 1]);
    scheduler::event::Restored event{done.instance, done.key, done.outputs, {}};
    size_t index = 0;
    for (const ObjectId object : graph.objects_of(done.instance)) {
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
