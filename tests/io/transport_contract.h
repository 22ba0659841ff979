// What every Transport must do (io/transport.h), as a test for all implementations.
//
// A case is a set of ends, each of which acts on its own and decides alone when it has seen all it
// must see, so the same case runs with all ends in one process and with one end in each of many.
// Problems are sentences; none means that the contract holds. Used by tests/io/transport_test.cpp
// (in one process) and tests/mpi/transport_test_main.cpp (ranks).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/transport.h"

namespace sluice::io::contract {

using scheduler::WorkerId;
using Problems = std::vector<std::string>;

// A message names its sequence number, then repeats a pattern made from it; sizes 0 to 7 have no
// room for the number and are told by their place in the order.
inline Bytes make_message(uint64_t sequence, size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; i += sizeof sequence) {
    const uint64_t word = sequence + i;
    std::memcpy(bytes.data() + i, &word, std::min(sizeof word, size - i));
  }
  return bytes;
}

class End {
 public:
  virtual ~End() = default;
  virtual void start(Transport& transport) = 0;
  virtual void received(WorkerId from, Channel channel, std::span<const std::byte> bytes) = 0;
  // All that this end waits for has come.
  [[nodiscard]] virtual bool satisfied() const = 0;
  Problems problems;

 protected:
  void expect(bool holds, const std::string& problem) {
    constexpr size_t kProblemsMax = 10;
    if (!holds && problems.size() < kProblemsMax) problems.push_back(problem);
  }
};

// Drives the ends that live in this process until each is satisfied and has no sends left, or
// `give_up` says so.
inline Problems run(const std::vector<Transport*>& transports,
                    const std::function<std::unique_ptr<End>()>& make_end,
                    const std::function<bool()>& give_up) {
  constexpr size_t kBatch = 7;
  std::vector<std::unique_ptr<End>> ends;
  for (Transport* transport : transports) {
    ends.push_back(make_end());
    ends.back()->start(*transport);
  }
  size_t received = 1;
  bool all = false;
  while (!all && !give_up()) {
    if (received == 0) std::this_thread::yield();  // more ranks than cores are usual in tests
    all = true;
    received = 0;
    for (size_t i = 0; i < ends.size(); ++i) {
      const size_t count = transports[i]->poll(
          [&](WorkerId from, Channel channel, std::span<const std::byte> bytes) {
            ends[i]->received(from, channel, bytes);
          },
          kBatch);
      received += count;
      if (count > kBatch) ends[i]->problems.push_back("poll handed over more than its maximum");
      all = all && ends[i]->satisfied() && transports[i]->pending() == 0;
    }
  }
  Problems problems;
  if (!all) problems.push_back("gave up: messages or completions of sends are missing");
  for (const auto& end : ends) {
    problems.insert(problems.end(), end->problems.begin(), end->problems.end());
  }
  return problems;
}

// Every end sends `kMessages` of many sizes to every end, itself included, on both channels. Each
// arrives whole, once, in the order of its pair and channel.
class OrderedEnd final : public End {
 public:
  static constexpr size_t kMessages = 60;
  static size_t size_of(size_t sequence) {
    constexpr std::array<size_t, 8> kSizes = {0, 1, 8, 100, 4096, 5000, 70'000, 0};
    return sequence == kMessages / 2 ? 3U << 20U : kSizes[sequence % kSizes.size()];
  }
  static uint64_t mark(WorkerId from, Channel channel, size_t sequence) {
    return (uint64_t{from.value} << 48U) + (uint64_t{channel == Channel::kBulk} << 40U) + sequence;
  }
  void start(Transport& transport) override {
    next_.resize(transport.size());
    for (size_t sequence = 0; sequence < kMessages; ++sequence) {
      for (size_t to = 0; to < transport.size(); ++to) {
        for (const Channel channel : {Channel::kBulk, Channel::kControl}) {
          transport.send(
              WorkerId(to), channel,
              make_message(mark(transport.self(), channel, sequence), size_of(sequence)));
        }
      }
    }
  }
  void received(WorkerId from, Channel channel, std::span<const std::byte> bytes) override {
    size_t& sequence = next_[from.index()][static_cast<size_t>(channel)];
    const Bytes expected = make_message(mark(from, channel, sequence), size_of(sequence));
    expect(std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end()),
           "message " + std::to_string(sequence) + " from " + std::to_string(from.value) +
               " is not the next one sent: " + std::to_string(bytes.size()) + " bytes instead of " +
               std::to_string(expected.size()));
    ++sequence;
  }
  [[nodiscard]] bool satisfied() const override {
    return std::all_of(next_.begin(), next_.end(), [](const auto& channels) {
      return channels[0] >= kMessages && channels[1] >= kMessages;
    });
  }

 private:
  std::vector<std::array<size_t, 2>> next_;
};

// End 0 queues 100 MB of bulk data for end 1, then one control message, which must not wait for
// them.
class UrgentEnd final : public End {
 public:
  static constexpr size_t kChunks = 100;
  static constexpr size_t kChunkBytes = 1U << 20U;
  static constexpr size_t kChunksBeforeMax = 24;
  void start(Transport& transport) override {
    self_ = transport.self();
    if (self_.value != 0) return;
    for (size_t i = 0; i < kChunks; ++i) {
      transport.send(WorkerId(1), Channel::kBulk, make_message(i, kChunkBytes));
    }
    expect(transport.pending() <= kChunks, "more sends are pending than were made");
    expect(transport.pending_bytes(WorkerId(1)) <= kChunks * kChunkBytes,
           "more bytes are pending than were sent");
    transport.send(WorkerId(1), Channel::kControl, make_message(0, 8));
  }
  void received(WorkerId from, Channel channel, std::span<const std::byte>) override {
    expect(self_.value == 1 && from.value == 0, "a message came that nobody sent");
    if (channel == Channel::kBulk) {
      ++chunks_;
      return;
    }
    urgent_ = true;
    expect(chunks_ <= kChunksBeforeMax, "a control message waited for " + std::to_string(chunks_) +
                                            " MiB of bulk data, expected at most " +
                                            std::to_string(kChunksBeforeMax));
  }
  [[nodiscard]] bool satisfied() const override {
    return self_.value != 1 || (urgent_ && chunks_ == kChunks);
  }

 private:
  WorkerId self_;
  size_t chunks_ = 0;
  bool urgent_ = false;
};

// The last end is given up by end 0 as if it were dead: nothing is pending for it, what is sent
// later is dropped, and all others go on. Needs three ends; the last case of a transport.
class ForgetEnd final : public End {
 public:
  static constexpr uint64_t kAfter = 1'000'000;
  void start(Transport& transport) override {
    self_ = transport.self();
    last_ = WorkerId(transport.size() - 1);
    if (self_.value != 0) return;
    for (uint64_t i = 0; i < 20; ++i) {
      transport.send(last_, Channel::kBulk, make_message(i, 1U << 20U));
    }
    transport.forget(last_);
    transport.forget(last_);
    expect(transport.pending() == 0 && transport.pending_bytes(last_) == 0,
           "sends to a forgotten peer still count as pending");
    transport.send(last_, Channel::kControl, make_message(kAfter, 8));
    expect(transport.pending() == 0, "a send to a forgotten peer was queued");
    transport.send(WorkerId(1), Channel::kControl, make_message(1, 8));
  }
  void received(WorkerId from, Channel channel, std::span<const std::byte> bytes) override {
    if (self_ == last_) {
      expect(channel == Channel::kBulk, "a message to a forgotten peer was not dropped");
      return;
    }
    expect(self_.value == 1 && from.value == 0 && bytes.size() == 8, "an unexpected message came");
    got_ = true;
  }
  [[nodiscard]] bool satisfied() const override { return self_.value != 1 || got_; }

 private:
  WorkerId self_;
  WorkerId last_;
  bool got_ = false;
};

template <class Case>
std::unique_ptr<End> make() {
  return std::make_unique<Case>();
}

}  // namespace sluice::io::contract
