#include "io/transport_mpi.h"

// The C++ bindings that MPI itself has dropped; their headers do not pass our warnings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <climits>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::io {

namespace {

using scheduler::WorkerId;

constexpr size_t kChannels = 2;
constexpr size_t index_of(Channel channel) { return static_cast<size_t>(channel); }

// How much of what waits for one peer is given to MPI at a time.
constexpr std::array<size_t, kChannels> kPostedMessagesMax = {64, 8};
constexpr std::array<size_t, kChannels> kPostedBytesMax = {8ULL << 20U, 8ULL << 20U};
// How much MPI may be writing to our memory at a time, per channel.
constexpr size_t kReceivesMax = 256;
constexpr size_t kReceivedBytesMax = 128ULL << 20U;

constexpr int kTag = 1;

struct Buffer {
  std::unique_ptr<std::byte[]> bytes;
  size_t capacity = 0;
};

// Large receive buffers are used again: fresh pages cost more than the copy.
class BufferPool {
 public:
  Buffer take(size_t size) {
    if (size >= kPooledBytesMin) {
      for (Buffer& free : free_) {
        if (free.capacity < size) continue;
        std::swap(free, free_.back());
        Buffer buffer = std::move(free_.back());
        free_.pop_back();
        return buffer;
      }
    }
    return {std::unique_ptr<std::byte[]>(new std::byte[size]), size};
  }
  void give_back(Buffer buffer) {
    if (buffer.capacity < kPooledBytesMin || free_.size() == kBuffersMax) return;
    free_.push_back(std::move(buffer));
  }

 private:
  static constexpr size_t kPooledBytesMin = 64ULL << 10U;
  static constexpr size_t kBuffersMax = 16;
  std::vector<Buffer> free_;
};

struct PostedSend {
  Bytes bytes;
  MPI_Request request = MPI_REQUEST_NULL;
};

// What goes to one peer on one channel, in order.
struct Lane {
  std::deque<Bytes> queued;
  std::vector<PostedSend> posted;
  size_t posted_bytes = 0;
  bool active = false;  // is in the list of lanes to look after
};

struct Receive {
  int from = 0;
  Buffer buffer;
  size_t size = 0;
  MPI_Request request = MPI_REQUEST_NULL;
};

struct Peer {
  std::array<Lane, kChannels> lanes;
  size_t pending = 0;
  size_t pending_bytes = 0;
  size_t refused = 0;
  bool forgotten = false;
};

// Like std::erase_if, but the predicate may change the item and move it away.
template <class Container, class Predicate>
void remove_where(Container& items, Predicate removes) {
  auto kept = items.begin();
  for (auto it = items.begin(); it != items.end(); ++it) {
    if (removes(*it)) continue;
    if (kept != it) *kept = std::move(*it);
    ++kept;
  }
  items.erase(kept, items.end());
}

// Abandoned requests: MPI may read or write their bytes until the end of the process, or until a
// peer that was only slow completes them.
class Quarantine {
 public:
  void keep(PostedSend send) { sends_.push_back(std::move(send)); }
  void keep(Receive receive) { receives_.push_back(std::move(receive)); }
  void release_completed() {
    remove_where(sends_, is_complete<PostedSend>);
    remove_where(receives_, is_complete<Receive>);
  }

 private:
  // A request that failed is null, and says nothing about its bytes: it stays.
  template <class Request>
  static bool is_complete(Request& kept) {
    int done = 0;
    return kept.request != MPI_REQUEST_NULL &&
           MPI_Test(&kept.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
  }
  std::vector<PostedSend> sends_;
  std::vector<Receive> receives_;
};

std::array<MPI_Comm, kChannels> communicators_of(const MpiSession& session) {
  return {MPI_Comm_f2c(session.communicator(Channel::kControl)),
          MPI_Comm_f2c(session.communicator(Channel::kBulk))};
}

}  // namespace

class MpiTransport::Engine {
 public:
  Engine(int rank, size_t size, const std::array<MPI_Comm, kChannels>& communicators)
      : rank_(rank), communicators_(communicators), peers_(size) {}

  void send(WorkerId to, Channel channel, Bytes message);
  size_t poll(const Handler& handler, size_t max);
  void forget(WorkerId id);
  void abandon_all();
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] bool ready() const {
    return std::any_of(to_self_.begin(), to_self_.end(),
                       [](const std::deque<Bytes>& own) { return !own.empty(); });
  }
  [[nodiscard]] size_t pending() const { return pending_; }
  [[nodiscard]] const Peer& peer(WorkerId id) const { return peers_[id.index()]; }
  [[nodiscard]] size_t size() const { return peers_.size(); }

 private:
  struct ActiveLane {
    uint32_t peer;
    Channel channel;
  };

  void post(uint32_t to, Channel channel);
  bool post_one(uint32_t to, Channel channel, Bytes bytes);
  void retire_completed(uint32_t to, Channel channel);
  void progress_sends();
  void count_out(Peer& peer, size_t bytes);
  void match_arrivals(Channel channel);
  void start_receive(Channel channel, MPI_Message& message, const MPI_Status& status);
  bool take_ready(Channel channel, Receive& ready);
  bool deliver_one(Channel channel, const Handler& handler);

  int rank_;
  std::array<MPI_Comm, kChannels> communicators_;
  std::vector<Peer> peers_;
  std::vector<ActiveLane> active_;
  size_t pending_ = 0;
  std::array<std::deque<Receive>, kChannels> receives_;
  std::array<size_t, kChannels> receiving_bytes_ = {0, 0};
  std::array<std::deque<Bytes>, kChannels> to_self_;
  BufferPool buffers_;
  Quarantine quarantine_;
};

void MpiTransport::Engine::send(WorkerId to, Channel channel, Bytes message) {
  SLUICE_ASSERT(to.index() < peers_.size(), to, peers_.size());
  SLUICE_ASSERT(message.size() <= static_cast<size_t>(INT_MAX), message.size());
  if (to.index() == static_cast<size_t>(rank_)) {
    to_self_[index_of(channel)].push_back(std::move(message));
    return;
  }
  Peer& peer = peers_[to.index()];
  if (peer.forgotten) return;
  ++pending_;
  ++peer.pending;
  peer.pending_bytes += message.size();
  Lane& lane = peer.lanes[index_of(channel)];
  lane.queued.push_back(std::move(message));
  if (!lane.active) {
    lane.active = true;
    active_.push_back({to.value, channel});
  }
  post(to.value, channel);
  // A short one is mostly complete at once: then there is nothing to come back for.
  if (lane.posted.size() == 1) retire_completed(to.value, channel);
}

void MpiTransport::Engine::count_out(Peer& peer, size_t bytes) {
  SLUICE_ASSERT(pending_ > 0 && peer.pending > 0 && peer.pending_bytes >= bytes, pending_, bytes);
  --pending_;
  --peer.pending;
  peer.pending_bytes -= bytes;
}

// Gives MPI as much of a lane's queue as its window allows, one message at least.
void MpiTransport::Engine::post(uint32_t to, Channel channel) {
  Lane& lane = peers_[to].lanes[index_of(channel)];
  while (!lane.queued.empty()) {
    const bool room =
        lane.posted.empty() ||
        (lane.posted.size() < kPostedMessagesMax[index_of(channel)] &&
         lane.posted_bytes + lane.queued.front().size() <= kPostedBytesMax[index_of(channel)]);
    if (!room) return;
    Bytes bytes = std::move(lane.queued.front());
    lane.queued.pop_front();
    if (!post_one(to, channel, std::move(bytes))) ++peers_[to].refused;
  }
}

// False if MPI refused the message, which is then lost.
bool MpiTransport::Engine::post_one(uint32_t to, Channel channel, Bytes bytes) {
  Peer& peer = peers_[to];
  Lane& lane = peer.lanes[index_of(channel)];
  PostedSend send{std::move(bytes), MPI_REQUEST_NULL};
  const int code =
      MPI_Isend(send.bytes.data(), static_cast<int>(send.bytes.size()), MPI_BYTE,
                static_cast<int>(to), kTag, communicators_[index_of(channel)], &send.request);
  if (code != MPI_SUCCESS) {
    count_out(peer, send.bytes.size());
    return false;
  }
  lane.posted_bytes += send.bytes.size();
  lane.posted.push_back(std::move(send));
  return true;
}

void MpiTransport::Engine::retire_completed(uint32_t to, Channel channel) {
  Peer& peer = peers_[to];
  Lane& lane = peer.lanes[index_of(channel)];
  remove_where(lane.posted, [&](PostedSend& send) {
    int done = 0;
    const int code = MPI_Test(&send.request, &done, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && done == 0) return false;
    lane.posted_bytes -= send.bytes.size();
    count_out(peer, send.bytes.size());
    if (code != MPI_SUCCESS) {
      ++peer.refused;
      quarantine_.keep(std::move(send));
    }
    return true;
  });
}

void MpiTransport::Engine::progress_sends() {
  remove_where(active_, [&](const ActiveLane& where) {
    Lane& lane = peers_[where.peer].lanes[index_of(where.channel)];
    retire_completed(where.peer, where.channel);
    post(where.peer, where.channel);
    lane.active = !lane.posted.empty() || !lane.queued.empty();
    return !lane.active;
  });
}

// Starts to receive what has arrived, within the bounds.
void MpiTransport::Engine::match_arrivals(Channel channel) {
  const size_t c = index_of(channel);
  while (receives_[c].size() < kReceivesMax && receiving_bytes_[c] < kReceivedBytesMax) {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status = {};
    const int code =
        MPI_Improbe(MPI_ANY_SOURCE, kTag, communicators_[c], &found, &message, &status);
    if (code != MPI_SUCCESS || found == 0) return;
    start_receive(channel, message, status);
  }
}

void MpiTransport::Engine::start_receive(Channel channel, MPI_Message& message,
                                         const MPI_Status& status) {
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  SLUICE_ASSERT(size >= 0, size, status.MPI_SOURCE);
  Receive receive;
  receive.from = status.MPI_SOURCE;
  receive.size = static_cast<size_t>(size);
  receive.buffer = buffers_.take(receive.size);
  const int code =
      MPI_Imrecv(receive.buffer.bytes.get(), size, MPI_BYTE, &message, &receive.request);
  // On an error the message is lost, as one from a dead peer is.
  if (code != MPI_SUCCESS || peers_[static_cast<size_t>(receive.from)].forgotten) {
    quarantine_.release_completed();
    quarantine_.keep(std::move(receive));
    return;
  }
  receiving_bytes_[index_of(channel)] += receive.size;
  receives_[index_of(channel)].push_back(std::move(receive));
}

// The oldest complete message such that no older one of its sender is incomplete.
bool MpiTransport::Engine::take_ready(Channel channel, Receive& ready) {
  std::deque<Receive>& receives = receives_[index_of(channel)];
  for (auto it = receives.begin(); it != receives.end();) {
    const auto same_sender = [&](const Receive& older) { return older.from == it->from; };
    int done = 0;
    int code = MPI_SUCCESS;
    if (std::none_of(receives.begin(), it, same_sender)) {
      code = MPI_Test(&it->request, &done, MPI_STATUS_IGNORE);
    }
    if (code == MPI_SUCCESS && done == 0) {
      ++it;
      continue;
    }
    receiving_bytes_[index_of(channel)] -= it->size;
    ready = std::move(*it);
    it = receives.erase(it);
    if (code == MPI_SUCCESS) return true;
    quarantine_.keep(std::move(ready));
  }
  return false;
}

bool MpiTransport::Engine::deliver_one(Channel channel, const Handler& handler) {
  std::deque<Bytes>& to_self = to_self_[index_of(channel)];
  if (!to_self.empty()) {
    const Bytes message = std::move(to_self.front());
    to_self.pop_front();
    handler(WorkerId(rank_), channel, message);
    return true;
  }
  match_arrivals(channel);
  Receive ready;
  if (!take_ready(channel, ready)) return false;
  // The handler may send, and may forget peers: nothing here refers to the queues any more.
  handler(WorkerId(ready.from), channel, {ready.buffer.bytes.get(), ready.size});
  buffers_.give_back(std::move(ready.buffer));
  return true;
}

size_t MpiTransport::Engine::poll(const Handler& handler, size_t max) {
  progress_sends();
  size_t delivered = 0;
  while (delivered < max &&
         (deliver_one(Channel::kControl, handler) || deliver_one(Channel::kBulk, handler))) {
    ++delivered;
  }
  return delivered;
}

void MpiTransport::Engine::forget(WorkerId id) {
  SLUICE_ASSERT(id.index() < peers_.size() && id.index() != static_cast<size_t>(rank_), id);
  Peer& peer = peers_[id.index()];
  if (peer.forgotten) return;
  peer.forgotten = true;
  quarantine_.release_completed();
  for (Lane& lane : peer.lanes) {
    for (PostedSend& send : lane.posted) quarantine_.keep(std::move(send));
    lane.posted.clear();
    lane.queued.clear();
    lane.posted_bytes = 0;
  }
  pending_ -= peer.pending;
  peer.pending = peer.pending_bytes = 0;
  for (size_t c = 0; c < kChannels; ++c) {
    remove_where(receives_[c], [&](Receive& receive) {
      if (receive.from != static_cast<int>(id.value)) return false;
      receiving_bytes_[c] -= receive.size;
      quarantine_.keep(std::move(receive));
      return true;
    });
  }
}

void MpiTransport::Engine::abandon_all() {
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (i != static_cast<size_t>(rank_)) forget(WorkerId(i));
  }
  quarantine_.release_completed();
  // Never destroyed, on purpose.
  new Quarantine(std::move(quarantine_));
}

MpiTransport::MpiTransport(MpiSession& session)
    : engine_(std::make_unique<Engine>(session.mpi_rank(), session.size(),
                                       communicators_of(session))) {}
MpiTransport::~MpiTransport() { engine_->abandon_all(); }

WorkerId MpiTransport::self() const { return WorkerId(engine_->rank()); }
size_t MpiTransport::size() const { return engine_->size(); }
void MpiTransport::send(WorkerId to, Channel channel, Bytes message) {
  engine_->send(to, channel, std::move(message));
}
size_t MpiTransport::poll(const Handler& handler, size_t max) {
  return engine_->poll(handler, max);
}
bool MpiTransport::ready() const { return engine_->ready(); }
size_t MpiTransport::pending() const { return engine_->pending(); }
size_t MpiTransport::pending_bytes(WorkerId to) const { return engine_->peer(to).pending_bytes; }
void MpiTransport::forget(WorkerId peer) { engine_->forget(peer); }
size_t MpiTransport::refused(WorkerId peer) const { return engine_->peer(peer).refused; }

}  // namespace sluice::io
