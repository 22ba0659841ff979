// Expected<T>: a value, or an Error that says what the world did to us. No exception crosses a
// folder.
//
// An Error is for people: `message` says what was found, what was expected and what to do; `code`
// is errno where there is one (0: none). Value types, any thread. Test:
// tests/scheduler/expected_test.cpp
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "scheduler/check.h"

namespace sluice {

struct Error {
  std::string message;
  int code = 0;  // errno, where the operating system said no
};

template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Expected(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    SLUICE_ASSERT(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    SLUICE_ASSERT(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    SLUICE_ASSERT(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  [[nodiscard]] const Error& error() const {
    SLUICE_ASSERT(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

// For operations that give nothing back: `return Done{};` or `return Error{...};`
struct Done {};
using Status = Expected<Done>;

}  // namespace sluice
