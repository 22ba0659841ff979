// Who starts where. Ready instances wait in one queue per request, so that a request that fits
// nowhere costs one step however long its queue is. All choices are total orders over integers.
// What goes ahead, and how much: core_ahead.cpp.
#include <algorithm>
#include <functional>
#include <utility>

#include "scheduler/check.h"
#include "scheduler/core_state.h"

namespace sluice::scheduler {

void Core::State::schedule() {
  dispatch_ready([this](RequestId request, InstanceId instance) {
    return std::pair(choose_for_slot(request, instance), false);
  });
  if (options.dispatch_ahead) {
    dispatch_ready([this](RequestId request, InstanceId instance) {
      return std::pair(choose_for_ahead(request, instance), true);
    });
    take_back_ahead();
  }
}

// The first instance of the queue that is still ready; none if there is none.
InstanceId Core::State::queue_head(ReadyQueue& queue) {
  while (!queue.heap.empty()) {
    const InstanceId instance = start_order[queue.heap.front()];
    if (at(instance).state == InstanceState::kReady) {
      return instance;
    }
    std::pop_heap(queue.heap.begin(), queue.heap.end(), std::greater<>());
    queue.heap.pop_back();
    at(instance).queued = false;
  }
  return {};
}

// Starts ready instances in start order until no queue's head finds a place. `choose` gives the
// worker and whether it is ahead.
template <class Choose>
void Core::State::dispatch_ready(const Choose& choose) {
  using Head = std::pair<uint32_t, size_t>;
  std::vector<Head> heads;
  const auto push = [&](size_t queue) {
    const InstanceId instance = queue_head(queues[queue]);
    if (instance.valid()) {
      heads.emplace_back(at(instance).order, queue);
      std::push_heap(heads.begin(), heads.end(), std::greater<>());
    }
  };
  steps += queues.size();
  for (size_t q = 0; q < queues.size(); ++q) {
    push(q);
  }
  while (!heads.empty()) {
    ++steps;
    std::pop_heap(heads.begin(), heads.end(), std::greater<>());
    const auto [order, queue] = heads.back();
    heads.pop_back();
    const InstanceId instance = start_order[order];
    const RequestId request = queue_request(queue);
    const auto [worker, ahead] = choose(request, instance);
    if (worker.valid()) {
      start(instance, request, worker, ahead);
      push(queue);
    }
  }
}

bool Core::State::limits_fit(const Request& request) const {
  return std::all_of(request.limits.begin(), request.limits.end(), [this](const LimitUse& use) {
    return use.amount <= limits_free[use.limit.index()];
  });
}

// Sums, per node, the input bytes of the instance that some worker of the node holds.
void Core::State::tally_bytes(InstanceId instance) {
  bytes_on_node.assign(nodes.size(), 0);
  for (const GroupId group : graph.inputs(instance)) {
    for (const ObjectId object : graph.group_objects(group)) {
      ++steps;
      for (const WorkerId holder : objects.replicas(object)) {
        bytes_on_node[at(holder).node] += objects.bytes(object);
      }
    }
  }
}

// Most input bytes on its node, then `better`, then lowest id.
WorkerId Core::State::choose_best(const std::vector<WorkerId>& candidates, InstanceId instance,
                                  const Better& better) {
  if (candidates.size() <= 1) {
    return candidates.empty() ? WorkerId() : candidates.front();
  }
  tally_bytes(instance);
  return *std::min_element(candidates.begin(), candidates.end(), [&](WorkerId a, WorkerId b) {
    const int64_t bytes_a = bytes_on_node[at(a).node];
    const int64_t bytes_b = bytes_on_node[at(b).node];
    return bytes_a != bytes_b ? bytes_a > bytes_b : better(at(a), at(b));
  });
}

WorkerId Core::State::choose_for_slot(RequestId id, InstanceId instance) {
  const Request& request = request_of(id);
  if (!limits_fit(request)) {
    return {};
  }
  std::vector<WorkerId> candidates;
  const int32_t priority = spec_of(instance).priority;
  steps += workers.size();
  for (size_t w = 0; w < workers.size(); ++w) {
    // Behind attempts that were sent ahead it would not start now: the agent keeps the order.
    if (ahead_before(workers[w], priority) == 0 && workers[w].free.covers(request.resources) &&
        may_get(WorkerId(w), instance, id)) {
      candidates.emplace_back(w);
    }
  }
  return choose_best(candidates, instance, [](const WorkerRecord& a, const WorkerRecord& b) {
    return a.free.cpus < b.free.cpus;
  });
}

void Core::State::start(InstanceId instance, RequestId request, WorkerId worker_id, bool ahead) {
  WorkerRecord& worker = at(worker_id);
  const AttemptId attempt = new_attempt(instance);
  const int32_t priority = spec_of(instance).priority;
  Flight flight;
  if (ahead) {
    const size_t place = ahead_before(worker, priority);
    worker.ahead.insert(worker.ahead.begin() + static_cast<std::ptrdiff_t>(place), attempt);
    flight.load = load_of(instance, request);
    worker.ahead_load += flight.load;
    if (!request_of(request).limits.empty()) {
      limited_ahead.insert(attempt);
    }
  } else {
    worker.slots.push_back(attempt);
    worker.free -= request_of(request).resources;
    worker.turned = now;
  }
  for (const LimitUse& use : request_of(request).limits) {
    limits_free[use.limit.index()] -= use.amount;
  }
  flight.instance = instance;
  flight.worker = worker_id;
  flight.request = request;
  flight.timeout = timeout_of(instance);
  flight.ahead = ahead;
  at(instance).attempt = attempt;
  set_state(instance, InstanceState::kAssigned);
  const Grant grant{request_of(request).resources, flight.timeout};
  emit(decision::StartAttempt{worker_id, attempt, instance, request, grant,
                              input_places(instance, attempt, worker_id), ahead, priority});
  flights.emplace(attempt, flight);
  promote(worker_id);  // the agent, too, starts what fits beside a wide one of less importance
}

std::vector<InputPlace> Core::State::input_places(InstanceId instance, AttemptId attempt,
                                                  WorkerId worker) {
  std::vector<InputPlace> places;
  ++mark;
  for (const GroupId group : graph.inputs(instance)) {
    for (const ObjectId object : graph.group_objects(group)) {
      if (!objects.is_value(object) && object_marks[object.index()] != mark) {
        object_marks[object.index()] = mark;
        ++steps;
        places.push_back({object, choose_source(object, attempt, worker)});
      }
    }
  }
  return places;
}

// The worker itself, else a neighbour on its node, else holders in turn; the durable file only if
// no worker holds the object.
WorkerId Core::State::choose_source(ObjectId object, AttemptId attempt, WorkerId worker) const {
  if (objects.held_by(object, worker)) {
    return worker;
  }
  const std::span<const WorkerId> all = objects.replicas(object);
  const auto neighbour = std::find_if(all.begin(), all.end(), [&](WorkerId holder) {
    return workers[holder.index()].node == workers[worker.index()].node;
  });
  if (neighbour != all.end()) {
    return *neighbour;
  }
  if (all.empty()) {
    SLUICE_ASSERT(objects.durable(object), object);
    return {};
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const WorkerId holder = all[(attempt.number() + i) % all.size()];
    if (!workers[holder.index()].silent) {
      return holder;
    }
  }
  return objects.durable(object) ? WorkerId() : all.front();
}

}  // namespace sluice::scheduler
