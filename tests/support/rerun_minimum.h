// The computed minimum of what must run: an oracle that shares no code with the core.
//
// Given which instances are done (their key is unchanged and the content of every output is known)
// and which objects' bytes still exist somewhere, exactly these instances have to run:
//   - those that are not done;
//   - those that are done but made a result whose bytes are gone and that is not published;
//   - and, until nothing changes, producers of gone objects that one of these reads.
// It assumes that a re-run makes equal bytes. Costs the size of the graph per pass; for tests only.
#pragma once

#include <vector>

#include "scheduler/graph.h"

namespace sluice::tests {

struct RerunFacts {
  std::vector<bool> done;       // per instance
  std::vector<bool> available;  // per object: a replica or a durable file exists (values: known)
};

// Per instance: must it run?
inline std::vector<bool> rerun_minimum(const scheduler::Graph& graph, const RerunFacts& facts) {
  std::vector<bool> must(graph.instance_count(), false);
  std::vector<scheduler::InstanceId> newly;
  const auto add = [&](scheduler::InstanceId instance) {
    if (!must[instance.index()]) {
      must[instance.index()] = true;
      newly.push_back(instance);
    }
  };
  for (size_t i = 0; i < graph.instance_count(); ++i) {
    if (!facts.done[i]) {
      add(scheduler::InstanceId(i));
    }
  }
  for (size_t o = 0; o < graph.object_count(); ++o) {
    const scheduler::ObjectId object(o);
    const scheduler::OutputSpec& output = graph.output(object);
    if (output.result && output.kind != scheduler::OutputKind::kValue && !facts.available[o]) {
      add(graph.producer(object));
    }
  }
  while (!newly.empty()) {
    const scheduler::InstanceId instance = newly.back();
    newly.pop_back();
    for (const scheduler::GroupId group : graph.inputs(instance)) {
      for (const scheduler::ObjectId object : graph.group_objects(group)) {
        if (!facts.available[object.index()]) {
          add(graph.producer(object));
        }
      }
    }
  }
  return must;
}

}  // namespace sluice::tests
