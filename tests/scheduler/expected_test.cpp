#include "scheduler/expected.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

using sluice::Done;
using sluice::Error;
using sluice::Expected;
using sluice::Status;

TEST_CASE("expected: holds a value or an error, never both") {
  const Expected<int> value = 7;
  CHECK(value.ok());
  CHECK(*value == 7);
  const Expected<int> error = Error{"the disk is full", 28};
  CHECK_FALSE(error.ok());
  CHECK_FALSE(static_cast<bool>(error));
  CHECK(error.error().message == "the disk is full");
  CHECK(error.error().code == 28);
}

TEST_CASE("expected: a value can be moved out and changed in place") {
  Expected<std::unique_ptr<std::string>> owner = std::make_unique<std::string>("mesh");
  (*owner)->append(".h5");
  const std::unique_ptr<std::string> taken = std::move(owner).value();
  CHECK(*taken == "mesh.h5");
}

TEST_CASE("expected: a status says only whether it went well") {
  const auto divide = [](int by) -> Status {
    if (by == 0) {
      return Error{"cannot divide by 0"};
    }
    return Done{};
  };
  CHECK(divide(1).ok());
  CHECK(divide(0).error().code == 0);
}
