#include "io/transport_local.h"

#include <algorithm>
#include <array>

#include "scheduler/check.h"

namespace sluice::io {

using scheduler::Instant;
using scheduler::WorkerId;

namespace {

constexpr size_t kChannels = 2;
size_t channel_index(Channel channel) { return static_cast<size_t>(channel); }

}  // namespace

class LocalNetwork::End final : public Transport {
 public:
  End(LocalNetwork& network, size_t index, size_t ends)
      : network_(network), index_(index), to_(ends) {}

  [[nodiscard]] WorkerId self() const override { return WorkerId(index_); }
  [[nodiscard]] size_t size() const override { return to_.size(); }
  void send(WorkerId to, Channel channel, Bytes message) override;
  size_t poll(const Handler& handler, size_t max) override;
  [[nodiscard]] bool ready() const override {
    return !dead_ && std::any_of(inboxes_.begin(), inboxes_.end(),
                                 [this](const Inbox& inbox) { return has_arrived(inbox); });
  }
  [[nodiscard]] size_t pending() const override;
  [[nodiscard]] size_t pending_bytes(WorkerId to) const override {
    return to_[to.index()].pending_bytes;
  }
  void forget(WorkerId peer) override;

  void die();
  Instant& last_arrival(size_t to, Channel channel) {
    return to_[to].last_arrival[channel_index(channel)];
  }

 private:
  struct Envelope {
    size_t from = 0;
    Bytes bytes;
  };
  using Inbox = std::map<std::pair<Instant, uint64_t>, Envelope>;  // by arrival, then order sent
  struct Outgoing {
    bool forgotten = false;
    size_t pending = 0;
    size_t pending_bytes = 0;
    std::array<Instant, kChannels> last_arrival{};
  };

  [[nodiscard]] bool has_arrived(const Inbox& inbox) const {
    return !inbox.empty() && inbox.begin()->first.first <= network_.now_;
  }
  // Takes the message out and lets its sender no longer count it.
  Envelope take(Inbox& inbox, Inbox::iterator entry);
  void discard_from(size_t sender);

  LocalNetwork& network_;
  size_t index_;
  bool dead_ = false;
  std::vector<Outgoing> to_;
  std::array<Inbox, kChannels> inboxes_;
};

void LocalNetwork::End::send(WorkerId to, Channel channel, Bytes message) {
  SLUICE_ASSERT(to.index() < size(), to, size());
  Outgoing& outgoing = to_[to.index()];
  End& peer = *network_.ends_[to.index()];
  const Instant at = network_.arrival(*this, to.index(), channel);
  if (dead_ || peer.dead_ || outgoing.forgotten) return;
  ++outgoing.pending;
  outgoing.pending_bytes += message.size();
  peer.inboxes_[channel_index(channel)].emplace(std::pair{at, network_.sequence_},
                                                Envelope{index_, std::move(message)});
  if (network_.arrivals) network_.arrivals(to, at);
}

LocalNetwork::End::Envelope LocalNetwork::End::take(Inbox& inbox, Inbox::iterator entry) {
  Envelope envelope = std::move(entry->second);
  inbox.erase(entry);
  Outgoing& outgoing = network_.ends_[envelope.from]->to_[index_];
  --outgoing.pending;
  outgoing.pending_bytes -= envelope.bytes.size();
  return envelope;
}

size_t LocalNetwork::End::poll(const Handler& handler, size_t max) {
  size_t count = 0;
  while (count < max && !dead_) {
    const Channel channel = has_arrived(inboxes_[channel_index(Channel::kControl)])
                                ? Channel::kControl
                                : Channel::kBulk;
    Inbox& inbox = inboxes_[channel_index(channel)];
    if (!has_arrived(inbox)) break;
    const Envelope envelope = take(inbox, inbox.begin());
    ++count;
    handler(WorkerId(envelope.from), channel, envelope.bytes);
  }
  return count;
}

size_t LocalNetwork::End::pending() const {
  size_t sum = 0;
  for (const Outgoing& outgoing : to_) sum += outgoing.pending;
  return sum;
}

void LocalNetwork::End::discard_from(size_t sender) {
  for (Inbox& inbox : inboxes_) {
    for (auto entry = inbox.begin(); entry != inbox.end();) {
      const auto next = std::next(entry);
      if (entry->second.from == sender) take(inbox, entry);
      entry = next;
    }
  }
}

void LocalNetwork::End::forget(WorkerId peer) {
  to_[peer.index()].forgotten = true;
  network_.ends_[peer.index()]->discard_from(index_);
}

void LocalNetwork::End::die() {
  dead_ = true;
  for (Inbox& inbox : inboxes_) {
    while (!inbox.empty()) take(inbox, inbox.begin());
  }
}

LocalNetwork::LocalNetwork(size_t ends, const LocalNetworkOptions& options) : options_(options) {
  SLUICE_ASSERT(options.latency_min <= options.latency_max, options.latency_min,
                options.latency_max);
  for (size_t i = 0; i < ends; ++i) ends_.push_back(std::make_unique<End>(*this, i, ends));
}

LocalNetwork::~LocalNetwork() = default;

Transport& LocalNetwork::end(WorkerId id) {
  SLUICE_ASSERT(id.index() < ends_.size(), id, ends_.size());
  return *ends_[id.index()];
}

void LocalNetwork::advance(Instant now) {
  SLUICE_ASSERT(now >= now_, now, now_);
  now_ = now;
}

void LocalNetwork::kill(WorkerId id) {
  SLUICE_ASSERT(id.index() < ends_.size(), id, ends_.size());
  ends_[id.index()]->die();
}

// When a message sent now arrives: never before an earlier one of the same pair and channel.
Instant LocalNetwork::arrival(End& from, size_t to, Channel channel) {
  ++sequence_;
  const auto spread = static_cast<uint64_t>(options_.latency_max.ns - options_.latency_min.ns) + 1;
  const uint64_t extra = scheduler::mix64(options_.seed ^ scheduler::mix64(sequence_)) % spread;
  const Instant drawn =
      now_ + options_.latency_min + scheduler::nanoseconds(static_cast<int64_t>(extra));
  Instant& last = from.last_arrival(to, channel);
  last = std::max(last, passes(from.self(), WorkerId(to), drawn + slowness()));
  return last;
}

scheduler::Duration LocalNetwork::slowness() const {
  if (options_.slow_permille == 0) return {};
  const uint64_t draw = scheduler::mix64(scheduler::mix64(options_.seed + 1) ^ sequence_);
  if (draw % 1000 >= options_.slow_permille) return {};
  const auto most = static_cast<uint64_t>(options_.slow_max.ns) + 1;
  return scheduler::nanoseconds(static_cast<int64_t>(scheduler::mix64(draw) % most));
}

Instant LocalNetwork::passes(WorkerId one, WorkerId other, Instant at) const {
  for (bool moved = true; moved;) {
    moved = false;
    for (const NetworkCut& cut : options_.cuts) {
      if ((cut.end != one && cut.end != other) || at < cut.from || at >= cut.until) continue;
      at = cut.until;
      moved = true;
    }
  }
  return at;
}

}  // namespace sluice::io
