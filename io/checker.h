// The protocol between a worker and its `sluice-h5`: the process that opens user files, so that a
// hostile file ends a helper and not a rank. One AF_UNIX SOCK_SEQPACKET datagram of JSON each way,
// one request at a time:
//
//   {"id":1,"path":"/…/field.h5","kind":"h5"|"file"|"value"|"dir",
//    "type":"int|float|bool|string|list"}
//   {"id":1,"path":"/…/new.h5","kind":"view","sources":"/…/list","dataset":"/u","rows":[0,100],
//    "shard":[3,16],"gather":"none|concat|stack"}
//   {"id":1,"ok":true,"bytes":N,"content":"32 hex
//   digits","value":"text","mode":420,"description":"2 datasets: u f64[64,64] …"}
//   {"id":1,"ok":false,"error":"what was found, what was expected"}
//   {"id":1,"busy":true}     a directory takes its time: sent at most once a second
//   {"id":0,"crashed":11}    sent by the launcher on the helper's end when the helper dies, before
//   it starts a new one: the signal; 128 + its exit code; 255 when it could not be started
//
// h5: opens (locking off), walks all objects, reads every dataset's storage once (so truncated or
// broken chunks show), describes. file: a regular file. value: at most 64 KiB, valid UTF-8 without
// NUL, less one trailing newline; int, float and bool also less the blanks around them (Fortran
// writes those); parses as its type. dir: a directory whose content can be kept (io/manifest.h).
// view: nothing is checked; the file is made of those that `sources` lists (io/h5_view.h), its size
// is answered. All others: XXH3-128 of the bytes, of a directory its content id. A path that is not
// UTF-8 travels as "path_hex". sluice-h5 reads descriptor 0 and ends at end of file. Values, any
// thread. Test: tests/io/checker_test.cpp, tests/engine/h5_checker_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "io/attempt_spec.h"
#include "io/h5_view.h"
#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::io {

struct CheckRequest {
  uint64_t id = 0;
  std::string path;
  scheduler::OutputKind kind = scheduler::OutputKind::kFile;
  ValueType value_type = ValueType::kString;
  // Not empty: `path` is not checked but made, as `view` of the files that the file `sources`
  // lists.
  std::string sources = {};
  H5View view = {};
};
struct CheckReply {
  uint64_t id = 0;
  bool busy = false;  // no reply yet, but the helper is at work
  bool ok = false;
  int crashed_signal = 0;
  int64_t bytes = 0;
  uint32_t mode = 0;
  scheduler::Hash128 content;
  std::string value;
  std::string description;
  std::string error;
};

[[nodiscard]] std::string encode(const CheckRequest& request);
[[nodiscard]] std::string encode(const CheckReply& reply);
[[nodiscard]] Expected<CheckRequest> decode_check_request(std::string_view text);
[[nodiscard]] Expected<CheckReply> decode_check_reply(std::string_view text);

// For `file`, `value` and `dir`, and the hash of all kinds: no HDF5 needed. Used by sluice-h5, and
// by tests. `progress` is called now and then while a directory is read.
[[nodiscard]] CheckReply check_plain(const CheckRequest& request,
                                     const std::function<void()>& progress = {});
// What an output is instead of what it should be, and what to do: for a path that exists.
[[nodiscard]] std::string wrong_kind_of_output(const std::filesystem::path& path,
                                               scheduler::OutputKind expected);
// The text of a value file as its type; an Error says what was found.
[[nodiscard]] Expected<std::string> check_value_text(std::string_view text, ValueType type);
// A checked value as JSON on one line: numbers and bools bare (NaN, Infinity as Python reads them),
// strings quoted, lists as they are.
[[nodiscard]] std::string value_to_json(std::string_view text, ValueType type);
// Found text for a message: at most 60 bytes of it, control characters made visible.
[[nodiscard]] std::string shortened(std::string_view text);

constexpr size_t kCheckMessageBytesMax = size_t{1} << 20U;  // for who receives either end's

}  // namespace sluice::io
