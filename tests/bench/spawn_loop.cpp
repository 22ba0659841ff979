// The bare cost of processes on this machine: a posix_spawn loop that runs a program N times, some
// of them at a time, and prints tasks/s. What sluice is compared with.
//
//   bench_spawn_loop [-j IN_FLIGHT = 2] [N = 2000 [PROGRAM = /bin/true [WORD...]]]
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

int main(int argc, char** argv) {
  int at = 1;
  int in_flight = 2;
  if (argc > 2 && std::strcmp(argv[1], "-j") == 0) {
    in_flight = std::atoi(argv[2]);
    at = 3;
  }
  const int count = argc > at ? std::atoi(argv[at]) : 2000;
  if (count <= 0 || in_flight <= 0) {
    std::fprintf(stderr, "usage: bench_spawn_loop [-j IN_FLIGHT] [N [PROGRAM [WORD...]]]\n");
    return 2;
  }
  std::vector<char*> words(argv + (argc > at ? at + 1 : at), argv + argc);
  if (words.empty()) words.push_back(const_cast<char*>("/bin/true"));
  words.push_back(nullptr);
  const char* program = words.front();
  int started = 0;
  int failed = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int ended = 0; ended < count; ++ended) {
    while (started < count && started - ended < in_flight) {
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
  std::printf("%d runs of %s, %d in flight: %.2f s, %.1f tasks/s, %d failed\n", count, program,
              in_flight, seconds.count(), count / seconds.count(), failed);
  return failed == 0 ? 0 : 1;
}
