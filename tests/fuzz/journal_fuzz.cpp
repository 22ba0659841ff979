// Fuzzes the journal's reader. The first byte says how: the bytes as they are, or each line with
// the sum that it should have, so that the fuzzer gets behind the check. Whatever stands there is
// read or cut with a message; what is kept can be continued.
#include <xxhash.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "io/journal.h"
#include "tests/support/fuzz.h"

namespace {

using namespace sluice::io;

// `{"t":"sync"}` becomes `{"t":"sync","sum":"..."}`, as encode_record does it.
std::string with_sum(std::string line) {
  if (!line.empty() && line.back() == '}') line.pop_back();
  char sum[32];
  std::snprintf(sum, sizeof sum, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(line.data(), line.size())));
  return line + ",\"sum\":\"" + sum + "\"}\n";
}

std::string sealed(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += with_sum(std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return -1;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string content = data[0] == 's' ? sealed(text) : std::string(text);
  FakeFiles files;
  auto file = files.open("/run/journal.1.jsonl", Files::Open::kCreateNew);
  sluice::test::must(file.ok() && (*file)->append(content).ok(), "the fake has room");
  const auto state = read_journal(files, "/run");
  if (!state.ok()) return 0;
  sluice::test::must(state->newest_length <= content.size(), "no more is kept than is there");
  record::Run next;
  continue_from(*state, next);
  const auto back = decode_record(encode_record(next).substr(0, encode_record(next).size() - 1));
  sluice::test::must(back.ok(), "the next segment can be read");
  return 0;
}
