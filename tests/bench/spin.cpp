// A task of a known size: burns MICROSECONDS of its own CPU time and ends.
//
//   bench_spin MICROSECONDS [FILE [WAIT_MS]]
//
// With FILE, one line `<start> <end>` is appended to it: nanoseconds of the wall clock when main
// began and when the work was done. With WAIT_MS it sleeps so long before it works. So a script
// learns when tasks really ran, whoever started them.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

int64_t now_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// In one write, so that lines of tasks that end together do not mix.
bool append_line(const char* file, int64_t start_ns, int64_t end_ns) {
  std::array<char, 64> line{};
  const int length =
      std::snprintf(line.data(), line.size(), "%lld %lld\n", static_cast<long long>(start_ns),
                    static_cast<long long>(end_ns));
  const int fd = ::open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  return fd >= 0 && ::write(fd, line.data(), static_cast<size_t>(length)) == length;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t start_ns = now_ns(CLOCK_REALTIME);
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: bench_spin MICROSECONDS [FILE [WAIT_MS]]\n");
    return 2;
  }
  if (argc > 3) {
    const long wait_ms = std::strtol(argv[3], nullptr, 10);
    const timespec wait{wait_ms / 1000, wait_ms % 1000 * 1'000'000};
    ::nanosleep(&wait, nullptr);
  }
  // Of the work alone: what loading the program took is the overhead that is measured.
  const int64_t until_ns =
      now_ns(CLOCK_PROCESS_CPUTIME_ID) + std::strtoll(argv[1], nullptr, 10) * 1000;
  while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < until_ns) {
  }
  if (argc > 2 && !append_line(argv[2], start_ns, now_ns(CLOCK_REALTIME))) {
    std::fprintf(stderr, "cannot write '%s': %s\n", argv[2], std::strerror(errno));
    return 3;
  }
  return 0;
}
