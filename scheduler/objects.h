// What is known of every object (content, bytes, replicas, durability) and what that means for the
// instances that wait for it.
//
// Everything goes through groups: a group counts its objects that are unknown, absent or hopeless
// and its consumers that are open or demand bytes, and only when one of these counters leaves or
// reaches zero are the group's members walked. So a join of A producers and B consumers costs
// |A| + |B| for each such turn, whatever happens to single members in between.
//
//   known     the content id was reported or restored; it never changes again in this submission
//   available a value that is known, or anything that has a replica or a durable file
//   absent    not available
//   hopeless  absent, and its producer has failed or was skipped: the bytes will never come
//   pending   a result that is known and not durable
//   open      a consumer that is not closed: that has to run, or has to run again once the need for
//             its absent outputs arises; an object without open consumers may be dropped
//   demand    a consumer that is about to run and needs the bytes now
//
// Consequences are appended to `changes`, which the core works off; a change is a hint that the
// core checks again when it comes to it. One owner, one thread. Test:
// tests/scheduler/objects_test.cpp
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/decision.h"
#include "scheduler/graph.h"
#include "scheduler/worker_set.h"

namespace sluice::scheduler {

struct Change {
  enum class Kind : uint8_t {
    kResolved,   // the contents of all inputs of `instance` are known
    kAvailable,  // the bytes of all inputs of `instance` are available
    kAbsent,     // no longer
    kWanted,     // an absent output of `instance` is demanded, or is a pending result
    kUnwanted,   // an absent output of `instance` is perhaps no longer demanded
    kHopeless,   // an input of `instance` will never come, because of `because`
    kIdle,       // `object` has perhaps no use any more
    kExposed,    // an output of `instance` became, or is no longer, both absent and open
  };
  Kind kind = Kind::kResolved;
  InstanceId instance;
  InstanceId because;
  ObjectId object;
};

class Objects {
 public:
  // Both must outlive this object.
  Objects(const Graph& graph, std::vector<Change>& changes);

  // -- facts about objects --
  void learn(ObjectId object, Hash128 content, int64_t bytes);  // at most once per object
  void set_bytes(ObjectId object, int64_t bytes) { record(object).bytes = bytes; }
  void set_durable(ObjectId object, Destination place);
  void clear_durable(ObjectId object);
  bool add_replica(ObjectId object, WorkerId worker);     // false: it was there
  bool remove_replica(ObjectId object, WorkerId worker);  // false: it was not there
  void remove_all_replicas(ObjectId object);
  void forget_worker(WorkerId worker);  // removes its replicas of all objects
  void abandon(ObjectId object);        // its producer has failed or was skipped

  // -- facts about consumers; each pair of calls must alternate per instance --
  void demand_inputs(InstanceId instance);
  void release_inputs(InstanceId instance);
  void close_inputs(InstanceId instance);  // the instance does not need them, as far as we know
  void reopen_inputs(InstanceId instance);

  // -- queries --
  [[nodiscard]] bool known(ObjectId object) const { return record(object).known; }
  [[nodiscard]] bool is_value(ObjectId object) const { return record(object).value; }
  [[nodiscard]] bool is_result(ObjectId object) const { return record(object).result; }
  [[nodiscard]] bool durable(ObjectId object) const;  // values: as soon as they are known
  [[nodiscard]] bool in_objects_folder(ObjectId object) const { return record(object).saved; }
  [[nodiscard]] bool absent(ObjectId object) const { return record(object).absent; }
  [[nodiscard]] bool pending(ObjectId object) const { return record(object).pending; }
  [[nodiscard]] bool open(ObjectId object) const { return record(object).open_groups > 0; }
  // Somebody will need it and it is nowhere.
  [[nodiscard]] bool exposed(ObjectId object) const { return absent(object) && open(object); }
  [[nodiscard]] bool demanded(ObjectId object) const;
  [[nodiscard]] Hash128 content(ObjectId object) const { return record(object).content; }
  [[nodiscard]] int64_t bytes(ObjectId object) const { return record(object).bytes; }
  [[nodiscard]] std::span<const WorkerId> replicas(ObjectId object) const {  // sorted
    return record(object).replicas.all();
  }
  [[nodiscard]] bool held_by(ObjectId object, WorkerId worker) const;
  [[nodiscard]] size_t pending_count() const { return pending_count_; }

  [[nodiscard]] bool inputs_known(InstanceId instance) const {
    return unresolved_groups_[instance.index()] == 0;
  }
  [[nodiscard]] bool inputs_available(InstanceId instance) const {
    return absent_groups_[instance.index()] == 0;
  }
  // A group of inputs of which one will never come; none if there is none. With `unknown_only`,
  // only because of objects whose content is not known either.
  [[nodiscard]] GroupId hopeless_group(InstanceId instance, bool unknown_only) const;
  [[nodiscard]] InstanceId hopeless_producer(GroupId id) const;
  // The instance's key: its static key, then per input the number of its objects and their contents
  // in order.
  [[nodiscard]] Hash128 key(InstanceId instance) const;

  // Asserts that every counter equals a recount; `open` and `demand` say what they should count.
  void check_invariants(const std::vector<bool>& open, const std::vector<bool>& demand) const;

 private:
  struct ObjectRecord {
    Hash128 content;
    int64_t bytes = 0;
    WorkerSet replicas;
    uint32_t open_groups = 0;
    bool value : 1 = false;
    bool result : 1 = false;  // and not a value
    bool known : 1 = false;
    bool durable_file : 1 = false;
    bool saved : 1 = false;  // the durable file is in objects/
    bool abandoned : 1 = false;
    // Derived; kept by refresh().
    bool absent : 1 = true;
    bool hopeless : 1 = false;
    bool unknowable : 1 = false;  // hopeless and not known
    bool pending : 1 = false;
  };
  struct GroupRecord {
    uint32_t unresolved = 0;
    uint32_t absent = 0;
    uint32_t hopeless = 0;
    uint32_t unknowable = 0;
    uint32_t open = 0;
    uint32_t demand = 0;
    Hash128 content;                       // fold over its objects, once all are known
    mutable InstanceId hopeless_producer;  // one of them while it is known; else looked for
  };

  ObjectRecord& record(ObjectId object) { return objects_[object.index()]; }
  [[nodiscard]] const ObjectRecord& record(ObjectId object) const {
    return objects_[object.index()];
  }
  void refresh(ObjectId object);
  void set_absent(ObjectId object, bool absent);
  void count_hopeless(ObjectId object, uint32_t GroupRecord::*counter, bool more);
  void resolve_group(GroupId group);
  void tell_consumers(GroupId group, Change::Kind kind, InstanceId because);
  void check_object(ObjectId object) const;
  void check_group(GroupId group, const std::vector<bool>& open,
                   const std::vector<bool>& demand) const;

  const Graph& graph_;
  std::vector<Change>& changes_;
  std::vector<ObjectRecord> objects_;
  std::vector<GroupRecord> groups_;
  std::vector<uint32_t> unresolved_groups_;  // per instance
  std::vector<uint32_t> absent_groups_;      // per instance
  size_t pending_count_ = 0;
};

}  // namespace sluice::scheduler
