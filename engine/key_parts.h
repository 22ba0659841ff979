// What an instance's key is made of, part by part, so that `why` can name the first that changed
// since the last success: the parts that the spec's reader found (io/pipeline.h), then the contents
// of each input that other tasks make. Journalled as six hex digits a part beside the key itself,
// which alone decides. A group's contents are hashed once, whatever the number of its readers.
// Rank 0's control thread, or a query's. Test: tests/engine/key_parts_test.cpp
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/pipeline.h"

namespace sluice::engine {

// "command", "environment", …, "input mesh": in the order of the digits.
[[nodiscard]] std::vector<std::string> key_part_names(const io::Pipeline& pipeline,
                                                      scheduler::TaskId task);

class KeyParts {
 public:
  using ContentOf = std::function<scheduler::Hash128(scheduler::ObjectId)>;
  // The pipeline must outlive it. Contents must not change once they are known.
  KeyParts(const io::Pipeline& pipeline, ContentOf content_of);
  // An input with a content that is not known yet has zeros.
  [[nodiscard]] std::string digits(scheduler::InstanceId instance);

 private:
  uint32_t group_part(scheduler::GroupId group);

  const io::Pipeline& pipeline_;
  ContentOf content_of_;
  std::vector<uint32_t> groups_;  // by GroupId; 0: not computed
};

// Names of the parts that differ: of the new ones in order, then of those that are gone.
[[nodiscard]] std::vector<std::string> differing_parts(const std::vector<std::string>& old_names,
                                                       const std::string& old_digits,
                                                       const std::vector<std::string>& new_names,
                                                       const std::string& new_digits);

}  // namespace sluice::engine
