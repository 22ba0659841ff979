// Real time for programs that talk to real ranks; unit tests use none. Value type, any thread.
#pragma once

#include <chrono>

namespace sluice::test {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace sluice::test
