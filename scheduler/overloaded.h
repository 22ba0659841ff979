// Overloaded{lambda, lambda, ...}: one visitor for std::visit. Test: tests/scheduler/core_test.cpp
#pragma once

namespace sluice {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

}  // namespace sluice
