// The system's file calls as a disk that fails: for one folder, and as long as this object lives,
// the calls open, read, write, fsync, rename, link, mkdir ... of this process go through it, also
// those that std::filesystem makes. They are counted, and the n-th goes wrong: it fails with an
// errno (a write leaves half of its bytes), is interrupted, does half of what it should, or the
// machine stops there. What a crash would have left can be laid out in another folder: only synced
// bytes, only synced names, or both. So what goes around io::Files (store, log packs, trees) is
// reached as well as what goes through it.
//
// The functions of the C library are replaced at link time, by faulty_system.cpp. One object at a
// time; any thread may make calls meanwhile. For tests only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace sluice::test {

struct Fault {
  enum class Kind : uint8_t {
    kError,        // -1 and `error`; a write has left half of its bytes
    kInterrupted,  // -1 and EINTR, of the calls that a signal can interrupt
    kShort,        // half of the bytes, of reads and writes
    kCrash,        // from then on nothing changes anything: -1 and EIO
  } kind = Kind::kError;
  int error = 0;
  uint64_t nth = 0;  // of the calls that can go wrong in this way, from 1; 0: none does
};

class FaultySystem {
 public:
  explicit FaultySystem(std::filesystem::path folder);
  ~FaultySystem();
  FaultySystem(const FaultySystem&) = delete;
  FaultySystem& operator=(const FaultySystem&) = delete;

  // Counts anew. What is in the folder now is on the disk for good.
  void arm(Fault fault);
  void disarm();
  [[nodiscard]] bool hit() const;
  [[nodiscard]] std::string hit_call() const;  // "rename /the/path": what it was that went wrong

  // Lays out in the new folder `into` what is there after a crash: names as they were at the last
  // fsync of their folder, or as they are; bytes as of the last fsync of their file, or as they
  // are. A file system may have written more than it was asked to, so all four may happen.
  void lay_out_crash(const std::filesystem::path& into, bool only_synced_names,
                     bool only_synced_bytes) const;
};

// One after another, each call that `body` makes goes wrong: body(fault) begins anew, arms the
// system with it and says whether it was hit. Ends when there is no such call any more. Returns how
// many there were.
template <class Body>
uint64_t for_each_call(Fault fault, const Body& body) {
  for (fault.nth = 1; body(fault); ++fault.nth) {
  }
  return fault.nth - 1;
}

}  // namespace sluice::test
