#include "scheduler/resources.h"

#include <algorithm>

#include "scheduler/check.h"

namespace sluice::scheduler {

RequestId RequestTable::intern(const Request& request) {
  for (size_t i = 0; i < request.limits.size(); ++i) {
    SLUICE_ASSERT(request.limits[i].amount > 0, request.limits[i].amount);
    SLUICE_ASSERT(i == 0 || request.limits[i - 1].limit < request.limits[i].limit);
  }
  const auto at = std::lower_bound(
      sorted_.begin(), sorted_.end(), request,
      [this](RequestId id, const Request& wanted) { return (*this)[id] < wanted; });
  if (at != sorted_.end() && (*this)[*at] == request) {
    return *at;
  }
  const RequestId id(requests_.size());
  requests_.push_back(request);
  sorted_.insert(at, id);
  return id;
}

}  // namespace sluice::scheduler
