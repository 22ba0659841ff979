// The bare cost of processes on this machine: a posix_spawn loop with two in flight that runs a
// program N times and prints tasks/s. What sluice is compared with.
//
//   bench_spawn_loop [N = 2000] [program = /bin/true]
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  constexpr int kInFlight = 2;
  const int count = argc > 1 ? std::atoi(argv[1]) : 2000;
  const char* program = argc > 2 ? argv[2] : "/bin/true";
  if (count <= 0) {
    std::fprintf(stderr, "found '%s', expected a number of tasks above 0\n", argv[1]);
    return 2;
  }
  std::array<char*, 2> words = {const_cast<char*>(program), nullptr};
  int started = 0;
  int failed = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int ended = 0; ended < count; ++ended) {
    while (started < count && started - ended < kInFlight) {
      pid_t pid = 0;
      const int error = ::posix_spawn(&pid, program, nullptr, nullptr, words.data(), environ);
      if (error != 0) {
        std::fprintf(stderr, "cannot start '%s': %s\n", program, std::strerror(error));
        return 3;
      }
      ++started;
    }
    int status = 0;
    ::wait(&status);
    if (status != 0) ++failed;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("%d runs of %s, %d in flight: %.2f s, %.0f tasks/s, %d failed\n", count, program,
              kInFlight, seconds.count(), count / seconds.count(), failed);
  return failed == 0 ? 0 : 1;
}
