// `results/<task>/items.tsv`: for people and scripts which item a result belongs to, without taking
// file names apart. A header line (the foreach keys, then the outputs that are results), then a
// line for each instance that is done, in the order of the items: its values, then of a file its
// path below `results/<task>/`, of a value its text. Tabs and newlines in a cell are %09 and %0A.
// Pure. Test: tests/engine/item_tables_test.cpp, tests/e2e/basics.sh
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/pipeline.h"
#include "scheduler/types.h"

namespace sluice::engine {

struct ItemTable {
  std::string path;  // relative to the run directory
  std::string text;
};
// One for each task that has foreach keys, results, and an instance that is done.
[[nodiscard]] std::vector<ItemTable> item_tables(
    const io::Pipeline& pipeline, const std::function<bool(scheduler::InstanceId)>& is_done,
    const io::Pipeline::ValueText& value);

}  // namespace sluice::engine
