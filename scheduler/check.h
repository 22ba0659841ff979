// SLUICE_ASSERT(condition, values...): our own errors. On in release. Prints expression, place,
// values and mpi_rank, then ends the process with exit code 70. Values are anything with operator<<
// for integers, bool, const char*, or an Id/AttemptId. Any thread. Test:
// tests/scheduler/check_test.cpp
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace sluice {

// Called once by the driver so that a failure names the rank it came from. -1: not under MPI.
void set_assert_mpi_rank(int mpi_rank);

[[noreturn]] void assert_failed(const char* expression, const char* file, int line,
                                const std::string& values);

namespace detail {
template <class T>
std::string assert_text(const T& v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<long long>(v));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return std::to_string(v);
  } else if constexpr (requires { v.value; }) {
    return std::to_string(v.value);
  } else if constexpr (requires { v.ns; }) {
    return std::to_string(v.ns) + "ns";
  } else {
    return std::string(std::string_view(v));
  }
}
template <class... Ts>
std::string assert_values(const Ts&... vs) {
  std::string out;
  ((out += ' ', out += assert_text(vs)), ...);
  return out;
}
}  // namespace detail
}  // namespace sluice

#define SLUICE_ASSERT(condition, ...)                                        \
  do {                                                                       \
    if (!(condition)) [[unlikely]] {                                         \
      ::sluice::assert_failed(#condition, __FILE__, __LINE__,                \
                              ::sluice::detail::assert_values(__VA_ARGS__)); \
    }                                                                        \
  } while (false)
