#include "scheduler/objects.h"

#include <algorithm>

#include "scheduler/check.h"

namespace sluice::scheduler {

Objects::Objects(const Graph& graph, std::vector<Change>& changes)
    : graph_(graph),
      changes_(changes),
      objects_(graph.object_count()),
      groups_(graph.group_count()),
      unresolved_groups_(graph.instance_count()),
      absent_groups_(graph.instance_count()) {
  for (size_t o = 0; o < objects_.size(); ++o) {
    const OutputSpec& output = graph.output(ObjectId(o));
    objects_[o].value = output.kind == OutputKind::kValue;
    objects_[o].result = output.result && !objects_[o].value;
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    const GroupId id(g);
    GroupRecord& group = groups_[g];
    group.unresolved = static_cast<uint32_t>(graph.group_objects(id).size());
    group.absent = group.unresolved;
    group.open = static_cast<uint32_t>(graph.group_consumers(id).size());
    if (group.open > 0) {
      for (const ObjectId object : graph.group_objects(id)) {
        ++record(object).open_groups;
      }
    }
    if (group.unresolved == 0) {
      resolve_group(id);
      continue;
    }
    for (const InstanceId consumer : graph.group_consumers(id)) {
      ++unresolved_groups_[consumer.index()];
      ++absent_groups_[consumer.index()];
    }
  }
}

void Objects::learn(ObjectId object, Hash128 content, int64_t bytes) {
  ObjectRecord& it = record(object);
  SLUICE_ASSERT(!it.known, object);
  SLUICE_ASSERT(content.known(), object);
  it.content = content;
  it.bytes = bytes;
  it.known = true;
  refresh(object);
  for (const GroupId id : graph_.object_groups(object)) {
    if (--groups_[id.index()].unresolved > 0) {
      continue;
    }
    resolve_group(id);
    for (const InstanceId consumer : graph_.group_consumers(id)) {
      if (--unresolved_groups_[consumer.index()] == 0) {
        changes_.push_back({Change::Kind::kResolved, consumer, {}, {}});
      }
    }
  }
  if (it.open_groups == 0) {
    changes_.push_back({Change::Kind::kIdle, {}, {}, object});
  }
}

void Objects::resolve_group(GroupId group) {
  const std::span<const ObjectId> members = graph_.group_objects(group);
  Hash128 content{members.size(), 1};  // so that two lists never run together
  for (const ObjectId object : members) {
    content = combine(content, record(object).content);
  }
  groups_[group.index()].content = content;
}

Hash128 Objects::key(InstanceId instance) const {
  Hash128 key = graph_.static_key(instance);
  for (const GroupId group : graph_.inputs(instance)) {
    key = combine(key, groups_[group.index()].content);
  }
  return key;
}

void Objects::set_durable(ObjectId object, Destination place) {
  SLUICE_ASSERT(!is_value(object), object);
  record(object).durable_file = true;
  record(object).saved = place == Destination::kObjects;
  refresh(object);
}

void Objects::clear_durable(ObjectId object) {
  record(object).durable_file = false;
  record(object).saved = false;
  refresh(object);
}

bool Objects::durable(ObjectId object) const {
  const ObjectRecord& it = record(object);
  return it.value ? it.known : it.durable_file;
}

bool Objects::held_by(ObjectId object, WorkerId worker) const {
  return record(object).replicas.contains(worker);
}

bool Objects::add_replica(ObjectId object, WorkerId worker) {
  SLUICE_ASSERT(!is_value(object), object, worker);
  if (!record(object).replicas.insert(worker)) {
    return false;
  }
  refresh(object);
  return true;
}

bool Objects::remove_replica(ObjectId object, WorkerId worker) {
  if (!record(object).replicas.erase(worker)) {
    return false;
  }
  refresh(object);
  return true;
}

void Objects::remove_all_replicas(ObjectId object) {
  record(object).replicas.clear();
  refresh(object);
}

void Objects::forget_worker(WorkerId worker) {
  for (size_t o = 0; o < objects_.size(); ++o) {
    if (!objects_[o].replicas.empty()) {
      remove_replica(ObjectId(o), worker);
    }
  }
}

void Objects::abandon(ObjectId object) {
  record(object).abandoned = true;
  refresh(object);
}

// Brings the derived facts of one object up to date, and with them the counters of its groups.
void Objects::refresh(ObjectId object) {
  ObjectRecord& it = record(object);
  const bool pending = it.result && it.known && !it.durable_file;
  if (pending != it.pending) {
    it.pending = pending;
    pending_count_ += pending ? 1 : size_t{0} - 1;
  }
  const bool absent = it.value ? !it.known : !it.durable_file && it.replicas.empty();
  if (absent != it.absent) {
    set_absent(object, absent);
  }
  const bool hopeless = absent && it.abandoned;
  if (hopeless != it.hopeless) {
    it.hopeless = hopeless;
    count_hopeless(object, &GroupRecord::hopeless, hopeless);
  }
  const bool unknowable = hopeless && !it.known;
  if (unknowable != it.unknowable) {
    it.unknowable = unknowable;
    count_hopeless(object, &GroupRecord::unknowable, unknowable);
  }
}

void Objects::set_absent(ObjectId object, bool absent) {
  ObjectRecord& it = record(object);
  it.absent = absent;
  bool demanded = it.pending;
  for (const GroupId id : graph_.object_groups(object)) {
    GroupRecord& group = groups_[id.index()];
    demanded = demanded || group.demand > 0;
    if (absent && ++group.absent == 1) {
      for (const InstanceId consumer : graph_.group_consumers(id)) {
        if (++absent_groups_[consumer.index()] == 1) {
          changes_.push_back({Change::Kind::kAbsent, consumer, {}, {}});
        }
      }
    } else if (!absent && --group.absent == 0) {
      for (const InstanceId consumer : graph_.group_consumers(id)) {
        if (--absent_groups_[consumer.index()] == 0) {
          changes_.push_back({Change::Kind::kAvailable, consumer, {}, {}});
        }
      }
    }
  }
  if (demanded) {  // if a copy turned up, what waits to make it again need not
    changes_.push_back({absent ? Change::Kind::kWanted : Change::Kind::kUnwanted,
                        graph_.producer(object),
                        {},
                        {}});
  }
  if (it.open_groups > 0) {
    changes_.push_back({Change::Kind::kExposed, graph_.producer(object), {}, {}});
  }
}

void Objects::count_hopeless(ObjectId object, uint32_t GroupRecord::*counter, bool more) {
  for (const GroupId id : graph_.object_groups(object)) {
    GroupRecord& group = groups_[id.index()];
    uint32_t& count = group.*counter;
    if (!more) {
      --count;
      group.hopeless_producer = {};
    } else if (++count == 1) {
      tell_consumers(id, Change::Kind::kHopeless, graph_.producer(object));
    }
  }
}

void Objects::tell_consumers(GroupId group, Change::Kind kind, InstanceId because) {
  for (const InstanceId consumer : graph_.group_consumers(group)) {
    changes_.push_back({kind, consumer, because, {}});
  }
}

bool Objects::demanded(ObjectId object) const {
  for (const GroupId group : graph_.object_groups(object)) {
    if (groups_[group.index()].demand > 0) {
      return true;
    }
  }
  return false;
}

GroupId Objects::hopeless_group(InstanceId instance, bool unknown_only) const {
  for (const GroupId id : graph_.inputs(instance)) {
    const GroupRecord& group = groups_[id.index()];
    if ((unknown_only ? group.unknowable : group.hopeless) > 0) {
      return id;
    }
  }
  return {};
}

InstanceId Objects::hopeless_producer(GroupId id) const {
  const GroupRecord& group = groups_[id.index()];
  if (group.hopeless == 0 || group.hopeless_producer.valid()) {
    return group.hopeless_producer;
  }
  for (const ObjectId object : graph_.group_objects(id)) {
    if (record(object).hopeless) {
      group.hopeless_producer = graph_.producer(object);
      break;
    }
  }
  return group.hopeless_producer;
}

void Objects::demand_inputs(InstanceId instance) {
  for (const GroupId id : graph_.inputs(instance)) {
    GroupRecord& group = groups_[id.index()];
    if (++group.demand > 1 || group.absent == 0) {
      continue;
    }
    for (const ObjectId object : graph_.group_objects(id)) {
      if (record(object).absent) {
        changes_.push_back({Change::Kind::kWanted, graph_.producer(object), {}, {}});
      }
    }
  }
}

void Objects::release_inputs(InstanceId instance) {
  for (const GroupId id : graph_.inputs(instance)) {
    GroupRecord& group = groups_[id.index()];
    SLUICE_ASSERT(group.demand > 0, id, instance);
    if (--group.demand > 0 || group.absent == 0) {
      continue;
    }
    for (const ObjectId object : graph_.group_objects(id)) {
      if (record(object).absent) {
        changes_.push_back({Change::Kind::kUnwanted, graph_.producer(object), {}, {}});
      }
    }
  }
}

void Objects::close_inputs(InstanceId instance) {
  for (const GroupId id : graph_.inputs(instance)) {
    GroupRecord& group = groups_[id.index()];
    SLUICE_ASSERT(group.open > 0, id, instance);
    if (--group.open > 0) {
      continue;
    }
    for (const ObjectId object : graph_.group_objects(id)) {
      if (--record(object).open_groups == 0) {
        changes_.push_back({Change::Kind::kIdle, {}, {}, object});
        if (record(object).absent) {
          changes_.push_back({Change::Kind::kExposed, graph_.producer(object), {}, {}});
        }
      }
    }
  }
}

void Objects::reopen_inputs(InstanceId instance) {
  for (const GroupId id : graph_.inputs(instance)) {
    if (++groups_[id.index()].open > 1) {
      continue;
    }
    for (const ObjectId object : graph_.group_objects(id)) {
      if (++record(object).open_groups == 1 && record(object).absent) {
        changes_.push_back({Change::Kind::kExposed, graph_.producer(object), {}, {}});
      }
    }
  }
}

void Objects::check_invariants(const std::vector<bool>& open,
                               const std::vector<bool>& demand) const {
  size_t pending = 0;
  for (size_t o = 0; o < objects_.size(); ++o) {
    check_object(ObjectId(o));
    pending += objects_[o].pending ? 1 : 0;
  }
  SLUICE_ASSERT(pending == pending_count_, pending, pending_count_);
  for (size_t g = 0; g < groups_.size(); ++g) {
    check_group(GroupId(g), open, demand);
  }
  for (size_t i = 0; i < graph_.instance_count(); ++i) {
    uint32_t unresolved = 0;
    uint32_t absent = 0;
    for (const GroupId group : graph_.inputs(InstanceId(i))) {
      unresolved += groups_[group.index()].unresolved > 0 ? 1 : 0;
      absent += groups_[group.index()].absent > 0 ? 1 : 0;
    }
    SLUICE_ASSERT(unresolved == unresolved_groups_[i], i, unresolved, unresolved_groups_[i]);
    SLUICE_ASSERT(absent == absent_groups_[i], i, absent, absent_groups_[i]);
  }
}

void Objects::check_object(ObjectId object) const {
  const ObjectRecord& it = record(object);
  const bool absent = it.value ? !it.known : !it.durable_file && it.replicas.empty();
  SLUICE_ASSERT(it.absent == absent, object);
  SLUICE_ASSERT(it.hopeless == (absent && it.abandoned), object);
  SLUICE_ASSERT(it.unknowable == (it.hopeless && !it.known), object);
  SLUICE_ASSERT(it.pending == (it.result && it.known && !it.durable_file), object);
  SLUICE_ASSERT(it.known == it.content.known(), object);
  SLUICE_ASSERT(it.known || it.replicas.empty(), object);
  const std::span<const WorkerId> holders = it.replicas.all();
  SLUICE_ASSERT(std::is_sorted(holders.begin(), holders.end()), object);
  uint32_t open_groups = 0;
  for (const GroupId group : graph_.object_groups(object)) {
    open_groups += groups_[group.index()].open > 0 ? 1 : 0;
  }
  SLUICE_ASSERT(open_groups == it.open_groups, object, open_groups, it.open_groups);
}

void Objects::check_group(GroupId id, const std::vector<bool>& open,
                          const std::vector<bool>& demand) const {
  const GroupRecord& group = groups_[id.index()];
  GroupRecord again;
  for (const ObjectId object : graph_.group_objects(id)) {
    again.unresolved += record(object).known ? 0 : 1;
    again.absent += record(object).absent ? 1 : 0;
    again.hopeless += record(object).hopeless ? 1 : 0;
    again.unknowable += record(object).unknowable ? 1 : 0;
  }
  for (const InstanceId consumer : graph_.group_consumers(id)) {
    again.open += open[consumer.index()] ? 1 : 0;
    again.demand += demand[consumer.index()] ? 1 : 0;
  }
  SLUICE_ASSERT(again.unresolved == group.unresolved, id, again.unresolved, group.unresolved);
  SLUICE_ASSERT(again.absent == group.absent, id, again.absent, group.absent);
  SLUICE_ASSERT(again.hopeless == group.hopeless, id, again.hopeless, group.hopeless);
  SLUICE_ASSERT(again.unknowable == group.unknowable, id, again.unknowable, group.unknowable);
  SLUICE_ASSERT(again.open == group.open, id, again.open, group.open);
  SLUICE_ASSERT(again.demand == group.demand, id, again.demand, group.demand);
}

}  // namespace sluice::scheduler
