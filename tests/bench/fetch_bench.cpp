// What the engine's way of fetching an object costs beside plain MPI. Two ranks:
//
//   mpirun -n 2 bench_fetch [MEBIBYTES]
//
// Rank 1 holds a file in node memory, rank 0 pulls it in 1 MiB chunks, four in flight:
//   memory  plain MPI_Isend and MPI_Irecv between buffers, no files
//   files   the same with pread at the source and pwrite at the destination
//   fetch   as worker ranks do it: a FetchRequest for each chunk, the answer through MpiTransport's
//           bulk channel and the codec, then pwrite
// files and fetch write once to a new file ("fresh": the kernel gives it zeroed pages, as it does
// for each object) and once over the same file ("warm"). Prints GB/s and the CPU time of both ranks
// per GB, medians of five rounds, and the ratio of fetch to files in GB/s. CPU time of plain MPI
// says little: it is hot while it waits.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <fcntl.h>
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "io/mpi_session.h"
#include "io/transport_mpi.h"
#include "io/wire.h"
#include "tests/mpi/stopwatch.h"

namespace {

using sluice::io::Bytes;
using sluice::io::Channel;
using sluice::io::MpiSession;
using sluice::io::MpiTransport;
using sluice::scheduler::ObjectId;
using sluice::scheduler::WorkerId;
using sluice::test::Stopwatch;
namespace message = sluice::io::message;

constexpr int kPuller = 0;
constexpr int kSource = 1;
constexpr size_t kChunkBytes = 1U << 20U;
constexpr size_t kInFlight = 4;
constexpr int kRounds = 5;

[[noreturn]] void fail(const std::string& what) {
  std::perror(what.c_str());
  std::_Exit(1);
}

// A file in node memory that has no name, so that nothing stays behind a killed benchmark.
class NodeFile {
 public:
  explicit NodeFile(int rank)
      : path_("/dev/shm/sluice-bench." + std::to_string(::getpid()) + "." + std::to_string(rank)) {
    reopen();
  }
  ~NodeFile() { ::close(fd_); }
  NodeFile(const NodeFile&) = delete;
  NodeFile& operator=(const NodeFile&) = delete;

  void make_fresh() {
    ::close(fd_);
    reopen();
  }
  void read(std::byte* bytes, size_t size, size_t offset) const {
    if (::pread(fd_, bytes, size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size)) {
      fail("pread of " + path_);
    }
  }
  void write(const std::byte* bytes, size_t size, size_t offset) const {
    if (::pwrite(fd_, bytes, size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size)) {
      fail("pwrite of " + path_);
    }
  }

 private:
  void reopen() {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0) fail("open of " + path_);
    ::unlink(path_.c_str());
  }
  std::string path_;
  int fd_ = -1;
};

struct Bench {
  int rank;
  size_t chunks;
  NodeFile& file;
  MpiTransport& transport;
};

// Plain MPI, one buffer per chunk in flight. `use` reads or writes the file, or does nothing.
using UseChunk = std::function<void(std::byte*, size_t offset)>;

void send_plainly(const Bench& bench, const UseChunk& use) {
  static std::array<Bytes, kInFlight> buffers;
  std::array<MPI_Request, kInFlight> requests;
  requests.fill(MPI_REQUEST_NULL);
  for (size_t i = 0; i < bench.chunks; ++i) {
    const size_t slot = i % kInFlight;
    MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
    buffers[slot].resize(kChunkBytes);
    use(buffers[slot].data(), i * kChunkBytes);
    MPI_Isend(buffers[slot].data(), kChunkBytes, MPI_BYTE, kPuller, 0, MPI_COMM_WORLD,
              &requests[slot]);
  }
  MPI_Waitall(kInFlight, requests.data(), MPI_STATUSES_IGNORE);
}

void receive_plainly(const Bench& bench, const UseChunk& use) {
  static std::array<Bytes, kInFlight> buffers;
  std::array<MPI_Request, kInFlight> requests;
  const auto receive = [&](size_t slot) {
    buffers[slot].resize(kChunkBytes);
    MPI_Irecv(buffers[slot].data(), kChunkBytes, MPI_BYTE, kSource, 0, MPI_COMM_WORLD,
              &requests[slot]);
  };
  for (size_t slot = 0; slot < kInFlight; ++slot) receive(slot);
  for (size_t i = 0; i < bench.chunks; ++i) {
    const size_t slot = i % kInFlight;
    MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
    use(buffers[slot].data(), i * kChunkBytes);
    if (i + kInFlight < bench.chunks) receive(slot);
  }
}

void plain_memory(const Bench& bench) {
  const UseChunk nothing = [](std::byte*, size_t) {};
  bench.rank == kSource ? send_plainly(bench, nothing) : receive_plainly(bench, nothing);
}

void plain_files(const Bench& bench) {
  if (bench.rank == kSource) {
    send_plainly(bench, [&](std::byte* bytes, size_t offset) {
      bench.file.read(bytes, kChunkBytes, offset);
    });
  } else {
    receive_plainly(bench, [&](std::byte* bytes, size_t offset) {
      bench.file.write(bytes, kChunkBytes, offset);
    });
  }
}

// Polls once; waits as worker ranks do while bulk data is on its way: hot for 50 microseconds, then
// asleep for 20 at a time.
class Poller {
 public:
  explicit Poller(MpiTransport& transport) : transport_(transport) {}
  void poll(const MpiTransport::Handler& handler) {
    if (transport_.poll(handler, 16) > 0) {
      idle_ = Stopwatch();
    } else if (idle_.seconds() > 50e-6) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  MpiTransport& transport_;
  Stopwatch idle_;
};

void serve_fetch(const Bench& bench) {
  size_t served = 0;
  const auto serve = [&](WorkerId from, Channel, std::span<const std::byte> bytes) {
    const auto request = std::get<message::FetchRequest>(sluice::io::decode(bytes).value());
    message::FetchChunk chunk;
    chunk.object = request.object;
    chunk.offset = request.offset;
    chunk.total_bytes = static_cast<int64_t>(bench.chunks * kChunkBytes);
    chunk.mode = 0600;
    chunk.data.resize(static_cast<size_t>(request.length));
    bench.file.read(chunk.data.data(), chunk.data.size(), static_cast<size_t>(request.offset));
    bench.transport.send(from, Channel::kBulk, sluice::io::encode(std::move(chunk)));
    ++served;
  };
  Poller poller(bench.transport);
  while (served < bench.chunks || bench.transport.pending() > 0) poller.poll(serve);
}

void pull_fetch(const Bench& bench) {
  size_t asked = 0;
  size_t written = 0;
  const auto ask = [&] {
    if (asked == bench.chunks) return;
    bench.transport.send(WorkerId(kSource), Channel::kControl,
                         sluice::io::encode(message::FetchRequest{
                             ObjectId(0), static_cast<int64_t>(asked * kChunkBytes), kChunkBytes}));
    ++asked;
  };
  const auto receive = [&](WorkerId, Channel, std::span<const std::byte> bytes) {
    const auto chunk = std::get<message::FetchChunk>(sluice::io::decode(bytes).value());
    ask();
    bench.file.write(chunk.data.data(), chunk.data.size(), static_cast<size_t>(chunk.offset));
    ++written;
  };
  for (size_t i = 0; i < kInFlight; ++i) ask();
  Poller poller(bench.transport);
  while (written < bench.chunks) poller.poll(receive);
}

void fetch(const Bench& bench) { bench.rank == kSource ? serve_fetch(bench) : pull_fetch(bench); }

double cpu_seconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Figure {
  double gb_per_s = 0;
  double cpu_s_per_gb = 0;
};

Figure median(const Bench& bench, void (*transfer)(const Bench&), bool fresh) {
  const double gigabytes = static_cast<double>(bench.chunks * kChunkBytes) * 1e-9;
  std::array<double, kRounds> speeds = {};
  std::array<double, kRounds> cpu = {};
  for (int round = 0; round < kRounds; ++round) {
    if (fresh && bench.rank == kPuller) bench.file.make_fresh();
    MPI_Barrier(MPI_COMM_WORLD);
    const Stopwatch watch;
    const double cpu_before = cpu_seconds();
    transfer(bench);
    const auto i = static_cast<size_t>(round);
    speeds[i] = gigabytes / watch.seconds();
    const double own_cpu = (cpu_seconds() - cpu_before) / gigabytes;
    MPI_Allreduce(&own_cpu, &cpu[i], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  std::sort(speeds.begin(), speeds.end());
  std::sort(cpu.begin(), cpu.end());
  return {speeds[kRounds / 2], cpu[kRounds / 2]};
}

void print(const char* name, const Figure& figure) {
  std::printf("%-12s %6.2f GB/s %6.2f CPU s/GB", name, figure.gb_per_s, figure.cpu_s_per_gb);
}

void measure(const Bench& bench) {
  const Figure memory = median(bench, plain_memory, false);
  if (bench.rank == kPuller) {
    std::printf("%zu MiB in 1 MiB chunks, %zu in flight, medians of %d\n", bench.chunks, kInFlight,
                kRounds);
    print("memory", memory);
    std::printf("\n");
  }
  for (const bool fresh : {true, false}) {
    const Figure files = median(bench, plain_files, fresh);
    const Figure fetched = median(bench, fetch, fresh);
    if (bench.rank != kPuller) continue;
    print(fresh ? "files fresh" : "files warm", files);
    std::printf("\n");
    print(fresh ? "fetch fresh" : "fetch warm", fetched);
    std::printf("  %.0f %% of files\n", 100 * fetched.gb_per_s / files.gb_per_s);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const size_t mebibytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 256;
  auto session = MpiSession::start();
  if (!session || (*session)->size() != 2 || mebibytes == 0) {
    std::fprintf(stderr, "usage: mpirun -n 2 bench_fetch [MEBIBYTES]\n");
    return 2;
  }
  const int rank = (*session)->mpi_rank();
  {
    NodeFile file(rank);
    const Bytes content(kChunkBytes, std::byte{42});
    for (size_t i = 0; i < mebibytes; ++i) file.write(content.data(), kChunkBytes, i * kChunkBytes);
    MpiTransport transport(**session);
    measure({rank, mebibytes, file, transport});
  }
  (*session)->leave(0);
}
