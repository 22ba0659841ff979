// Graphs of known shapes for simulations, small or large, some drawn from a seed:
//
//   chain        a -> b -> c                      fork_join   a -> n × b -> c
//   tree         halving gathers down to one      join        n × a ===> m × b (one group)
//   layered      random layers, random groups between neighbours, values, limits and gates here and
//                there
//
// For tests only; pure.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/support/graph_dsl.h"

namespace sluice::tests {

struct ShapeOptions {
  scheduler::RetryPolicy retry = {};
  scheduler::Duration timeout = {};
  int32_t cpus_max = 1;  // requests are drawn from 1 to this
  uint64_t seed = 1;
  int32_t priority_max = 0;  // priorities are drawn from 0 to this
  int64_t memory_max = 0;    // requests of memory likewise
  // So many of 100 tasks ignore their failures, or stop the run.
  uint32_t ignore_percent = 0;
  uint32_t stop_percent = 0;
};

class GraphShapes {
 public:
  explicit GraphShapes(const ShapeOptions& options = {})
      : options_(options), random_(options.seed) {}

  scheduler::Graph chain(uint32_t length) {
    scheduler::TaskId before;
    for (uint32_t i = 0; i < length; ++i) {
      const scheduler::TaskId task = add("link" + std::to_string(i), 1, i + 1 == length);
      if (before.valid()) dsl_.one_to_one(before, task);
      before = task;
    }
    return dsl_.build();
  }

  scheduler::Graph fork_join(uint32_t width) {
    const scheduler::TaskId first = add("first", 1, false);
    const scheduler::TaskId middle = add("middle", width, false);
    const scheduler::TaskId last = add("last", 1, true);
    dsl_.broadcast(first, middle);
    dsl_.gather(middle, last);
    return dsl_.build();
  }

  scheduler::Graph tree(uint32_t leaves) {
    scheduler::TaskId below = add("leaf", leaves, leaves == 1);
    for (uint32_t count = leaves; count > 1;) {
      const uint32_t next = (count + 1) / 2;
      const scheduler::TaskId level = add("level" + std::to_string(next), next, next == 1);
      for (uint32_t i = 0; i < next; ++i) {
        std::vector<scheduler::ObjectId> objects = {object(below, 2 * i)};
        if (2 * i + 1 < count) objects.push_back(object(below, 2 * i + 1));
        const scheduler::InstanceId consumer = dsl_.so_far().instance(level, i);
        dsl_.group(objects, {&consumer, 1});
      }
      below = level;
      count = next;
    }
    return dsl_.build();
  }

  scheduler::Graph join(uint32_t producers, uint32_t consumers) {
    const scheduler::TaskId from = add("producer", producers, false);
    const scheduler::TaskId to = add("consumer", consumers, true);
    dsl_.join(from, to);
    return dsl_.build();
  }

  // Random layers. Each consumer reads up to three random groups of the layer above; the layer's
  // outputs without a reader are results. Some outputs are values, some tasks use a limit.
  scheduler::Graph layered(uint32_t layers, uint32_t width_max) {
    const scheduler::LimitId limit = dsl_.limit("licence", 2 * scheduler::kAmountUnit);
    scheduler::TaskId above;
    std::vector<scheduler::TaskId> all;
    for (uint32_t layer = 0; layer < layers; ++layer) {
      DslTask task = options_of(1 + below(width_max), layer + 1 == layers || below(4) == 0);
      task.outputs = 1 + below(2);
      task.kind = below(5) == 0 ? scheduler::OutputKind::kValue : scheduler::OutputKind::kFile;
      if (below(3) == 0) task.limits = {{limit, scheduler::kAmountUnit}};
      const scheduler::TaskId id = dsl_.task("layer" + std::to_string(layer), task);
      if (above.valid()) connect(above, id);
      above = id;
      all.push_back(id);
    }
    for (uint32_t gates = below(4); gates > 0 && layers > 1; --gates) order(all);
    return dsl_.build();
  }

 private:
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  DslTask options_of(uint32_t count, bool result) {
    DslTask task;
    task.count = count;
    task.cpus = 1 + static_cast<int32_t>(below(static_cast<uint32_t>(options_.cpus_max)));
    task.result = result;
    task.retry = options_.retry;
    task.timeout = options_.timeout;
    draw_more(task);
    return task;
  }
  // Draws nothing that was not asked for, so that graphs stay as they were.
  void draw_more(DslTask& task) {
    if (options_.priority_max > 0) {
      task.priority = static_cast<int32_t>(below(static_cast<uint32_t>(options_.priority_max) + 1));
    }
    if (options_.memory_max > 0) {
      task.memory_bytes = below(static_cast<uint32_t>(options_.memory_max) + 1);
    }
    if (options_.ignore_percent > 0 && below(100) < options_.ignore_percent) {
      task.on_failure = scheduler::OnFailure::kIgnore;
    }
    if (options_.stop_percent > 0 && below(100) < options_.stop_percent) {
      task.on_failure = scheduler::OnFailure::kStop;
    }
  }
  scheduler::TaskId add(const std::string& name, uint32_t count, bool result) {
    return dsl_.task(name, options_of(count, result));
  }
  [[nodiscard]] scheduler::ObjectId object(scheduler::TaskId task, uint32_t item,
                                           size_t output = 0) const {
    return dsl_.so_far().object(dsl_.so_far().instance(task, item), output);
  }

  // Cuts the producers into runs, and lets each run feed a random set of consumers.
  void connect(scheduler::TaskId from, scheduler::TaskId to) {
    const scheduler::TaskSpec producers = dsl_.so_far().task(from);
    const uint32_t consumers = dsl_.so_far().task(to).instance_count;
    for (uint32_t begin = 0; begin < producers.instance_count;) {
      const uint32_t end = std::min(producers.instance_count, begin + 1 + below(4));
      std::vector<scheduler::ObjectId> objects;
      for (uint32_t item = begin; item < end; ++item) {
        objects.push_back(
            object(from, item, below(static_cast<uint32_t>(producers.outputs.size()))));
      }
      std::vector<scheduler::InstanceId> readers;
      for (uint32_t item = 0; item < consumers; ++item) {
        if (below(consumers) < 3) readers.push_back(dsl_.so_far().instance(to, item));
      }
      if (!readers.empty()) dsl_.group(objects, readers);
      begin = end;
    }
  }

  // Order without data: some of one layer before some of a later one.
  void order(const std::vector<scheduler::TaskId>& layers) {
    const uint32_t before = below(static_cast<uint32_t>(layers.size()) - 1);
    const uint32_t after = before + 1 + below(static_cast<uint32_t>(layers.size()) - before - 1);
    const auto some = [this](scheduler::TaskId task) {
      std::vector<scheduler::InstanceId> ids;
      for (uint32_t item = 0; item < dsl_.so_far().task(task).instance_count; ++item) {
        if (below(2) == 0) ids.push_back(dsl_.so_far().instance(task, item));
      }
      return ids;
    };
    const auto predecessors = some(layers[before]);
    dsl_.gate(predecessors, some(layers[after]));
  }

  ShapeOptions options_;
  std::mt19937_64 random_;
  GraphDsl dsl_;
};

}  // namespace sluice::tests
