// What the codec needs to know of the scheduler's vocabulary: members in the order of the struct.
// For whoever encodes these types: io/wire, io/trace, engine/launch_protocol. Test:
// tests/io/wire_test.cpp
#pragma once

#include <tuple>

#include "io/codec.h"
#include "scheduler/decision.h"
#include "scheduler/event.h"
#include "scheduler/graph.h"
#include "scheduler/options.h"
#include "scheduler/resources.h"

namespace sluice::io {

template <>
inline constexpr uint64_t kEnumLast<scheduler::Cause> = scheduler::kCauseCount - 1;
template <>
inline constexpr uint64_t kEnumLast<scheduler::OutputKind> =
    static_cast<uint64_t>(scheduler::OutputKind::kDir);

template <>
inline constexpr auto kMembers<scheduler::Resources> =
    std::tuple{&scheduler::Resources::cpus, &scheduler::Resources::memory_bytes};
template <>
inline constexpr auto kMembers<scheduler::Usage> = std::tuple{
    &scheduler::Usage::wall, &scheduler::Usage::cpu, &scheduler::Usage::memory_peak_bytes};
template <>
inline constexpr auto kMembers<scheduler::OutputReport> =
    std::tuple{&scheduler::OutputReport::content, &scheduler::OutputReport::bytes,
               &scheduler::OutputReport::value};
template <>
inline constexpr auto kMembers<scheduler::InputPlace> =
    std::tuple{&scheduler::InputPlace::object, &scheduler::InputPlace::source};

template <>
inline constexpr uint64_t kEnumLast<scheduler::OnFailure> =
    static_cast<uint64_t>(scheduler::OnFailure::kIgnore);
template <>
inline constexpr auto kMembers<scheduler::Limit> =
    std::tuple{&scheduler::Limit::name, &scheduler::Limit::total};
template <>
inline constexpr auto kMembers<scheduler::LimitUse> =
    std::tuple{&scheduler::LimitUse::limit, &scheduler::LimitUse::amount};
template <>
inline constexpr auto kMembers<scheduler::Request> =
    std::tuple{&scheduler::Request::resources, &scheduler::Request::limits};
template <>
inline constexpr auto kMembers<scheduler::OutputSpec> = std::tuple{
    &scheduler::OutputSpec::name, &scheduler::OutputSpec::kind, &scheduler::OutputSpec::result};
template <>
inline constexpr auto kMembers<scheduler::RetryChange> =
    std::tuple{&scheduler::RetryChange::delay, &scheduler::RetryChange::memory_factor,
               &scheduler::RetryChange::timeout_factor};
template <>
inline constexpr auto kMembers<scheduler::RetryPolicy> =
    std::tuple{&scheduler::RetryPolicy::max, &scheduler::RetryPolicy::change,
               &scheduler::RetryPolicy::exit_codes};
template <>
inline constexpr auto kMembers<scheduler::Grant> =
    std::tuple{&scheduler::Grant::resources, &scheduler::Grant::timeout};
template <>
inline constexpr auto kMembers<scheduler::TaskSpec> =
    std::tuple{&scheduler::TaskSpec::name,           &scheduler::TaskSpec::request,
               &scheduler::TaskSpec::priority,       &scheduler::TaskSpec::on_failure,
               &scheduler::TaskSpec::retry,          &scheduler::TaskSpec::timeout,
               &scheduler::TaskSpec::grace,          &scheduler::TaskSpec::expected,
               &scheduler::TaskSpec::outputs,        &scheduler::TaskSpec::first_instance,
               &scheduler::TaskSpec::instance_count, &scheduler::TaskSpec::first_object};
template <>
inline constexpr auto kMembers<scheduler::CoreOptions> =
    std::tuple{&scheduler::CoreOptions::epoch,
               &scheduler::CoreOptions::silent_after,
               &scheduler::CoreOptions::lost_after,
               &scheduler::CoreOptions::failures_without_success_max,
               &scheduler::CoreOptions::quick_failures_max,
               &scheduler::CoreOptions::failures_max,
               &scheduler::CoreOptions::dispatch_ahead,
               &scheduler::CoreOptions::ahead_per_slot_max};

}  // namespace sluice::io
