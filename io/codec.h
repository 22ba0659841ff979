// Primitives of the wire format (described byte by byte in io/wire.h): a Writer that appends to
// bytes, a Reader that never trusts them. A struct becomes codable by listing its members once:
//
//   template <> inline constexpr auto kMembers<Stop> = std::tuple{&Stop::attempt};
//
// which serves both directions, so that they cannot drift apart. The Reader keeps its first
// complaint and gives zeros from then on: decode everything, then ask ok(). It bounds each length
// by the bytes that are left, so that a damaged length never allocates more than was received.
// Used by io/wire, io/trace and engine/launch_protocol. Values; one owner. Test:
// tests/io/wire_test.cpp
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::io {

struct NoMembers {};
// Members of a struct, in the order in which they are encoded. Specialise for each codable struct.
template <class T>
inline constexpr auto kMembers = NoMembers{};
// Greatest enumerator: a greater value in the bytes is an error. Specialise for each codable enum.
template <class E>
inline constexpr uint64_t kEnumLast = std::numeric_limits<uint64_t>::max();

namespace detail {
template <class T>
struct IsId : std::false_type {};
template <class Tag>
struct IsId<scheduler::Id<Tag>> : std::true_type {};
template <class T>
struct IsVariant : std::false_type {};
template <class... Ts>
struct IsVariant<std::variant<Ts...>> : std::true_type {};

// How many members an aggregate has: the most initialisers that it takes. So a member that is
// added to a struct but not to its kMembers does not compile.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): never defined, never called
};
template <class T, class... Anythings>
constexpr size_t member_count() {
  if constexpr (requires { T{Anythings{}..., Anything{}}; }) {
    return member_count<T, Anythings..., Anything>();
  } else {
    return sizeof...(Anythings);
  }
}
template <class T>
constexpr bool members_are_listed() {
  using Listed = std::remove_cvref_t<decltype(kMembers<T>)>;
  if constexpr (std::is_same_v<Listed, NoMembers>) {
    return false;
  } else {
    return std::tuple_size_v<Listed> == member_count<T>();
  }
}
}  // namespace detail

class Writer {
 public:
  explicit Writer(std::vector<std::byte>& out) : out_(out) {}

  void byte(uint8_t v) { out_.push_back(static_cast<std::byte>(v)); }
  void raw(const void* data, size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), begin, begin + size);
  }
  void unsigned_integer(uint64_t v);
  void signed_integer(int64_t v);
  void fixed64(uint64_t v);  // eight bytes, little-endian
  void fixed32(uint32_t v);

  void value(bool v) { byte(v ? 1 : 0); }
  void value(const std::string& v) {
    unsigned_integer(v.size());
    raw(v.data(), v.size());
  }
  void value(const std::vector<std::byte>& v) {
    unsigned_integer(v.size());
    raw(v.data(), v.size());
  }
  void value(const scheduler::Hash128& v) {
    fixed64(v.high);
    fixed64(v.low);
  }
  void value(const scheduler::AttemptId& v) { unsigned_integer(v.value); }
  void value(const scheduler::Duration& v) { signed_integer(v.ns); }
  void value(const scheduler::Instant& v) { signed_integer(v.ns); }
  template <class A, class B>
  void value(const std::pair<A, B>& v) {
    value(v.first);
    value(v.second);
  }
  template <class T, size_t N>
  void value(const std::array<T, N>& v) {
    for (const T& element : v) value(element);
  }
  template <class T>
  void value(const std::vector<T>& v) {
    unsigned_integer(v.size());
    for (const auto& element : v) value(static_cast<const T&>(element));
  }
  template <class T>
  void value(const T& v);

 private:
  std::vector<std::byte>& out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool ok() const { return complaint_.empty(); }
  [[nodiscard]] const std::string& complaint() const { return complaint_; }
  [[nodiscard]] size_t position() const { return position_; }
  [[nodiscard]] size_t remaining() const { return bytes_.size() - position_; }
  // The first complaint stays; everything read after it is zero.
  void fail(const std::string& complaint);
  // Success only if all bytes were used. `what` names the thing in the message.
  [[nodiscard]] Status finish(const std::string& what);

  uint8_t byte();
  std::span<const std::byte> raw(uint64_t size);
  uint64_t unsigned_integer();
  int64_t signed_integer();
  uint64_t fixed64();
  uint32_t fixed32();
  // A count of elements of at least one byte each: an error if so many cannot be there.
  size_t count();

  void value(bool& v);
  void value(std::string& v);
  void value(std::vector<std::byte>& v);
  void value(scheduler::Hash128& v) {
    v.high = fixed64();
    v.low = fixed64();
  }
  void value(scheduler::AttemptId& v) { v.value = unsigned_integer(); }
  void value(scheduler::Duration& v) { v.ns = signed_integer(); }
  void value(scheduler::Instant& v) { v.ns = signed_integer(); }
  template <class A, class B>
  void value(std::pair<A, B>& v) {
    value(v.first);
    value(v.second);
  }
  template <class T, size_t N>
  void value(std::array<T, N>& v) {
    for (T& element : v) value(element);
  }
  template <class T>
  void value(std::vector<T>& v) {
    v.clear();
    const size_t size = count();
    for (size_t i = 0; i < size && ok(); ++i) {
      T element{};
      value(element);
      v.push_back(std::move(element));
    }
  }
  template <class T>
  void value(T& v);

 private:
  template <class V, size_t... Is>
  void alternative(V& v, uint64_t index, std::index_sequence<Is...>) {
    ((Is == index ? value(v.template emplace<Is>()) : void()), ...);
  }
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  std::string complaint_;
};

template <class T>
void Writer::value(const T& v) {
  if constexpr (detail::IsId<T>::value) {
    unsigned_integer(v.value);
  } else if constexpr (detail::IsVariant<T>::value) {
    unsigned_integer(v.index());
    std::visit([this](const auto& held) { this->value(held); }, v);
  } else if constexpr (std::is_enum_v<T>) {
    unsigned_integer(static_cast<uint64_t>(v));
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    signed_integer(v);
  } else if constexpr (std::is_integral_v<T>) {
    unsigned_integer(v);
  } else {
    static_assert(detail::members_are_listed<T>(), "list all members of the struct in kMembers");
    std::apply([&](auto... member) { (value(v.*member), ...); }, kMembers<T>);
  }
}

template <class T>
void Reader::value(T& v) {
  if constexpr (detail::IsId<T>::value) {
    value(v.value);
  } else if constexpr (detail::IsVariant<T>::value) {
    const uint64_t index = unsigned_integer();
    constexpr size_t kCount = std::variant_size_v<T>;
    if (index >= kCount) fail("kind " + std::to_string(index) + " is not known");
    if (ok()) alternative(v, index, std::make_index_sequence<kCount>{});
  } else if constexpr (std::is_enum_v<T>) {
    static_assert(kEnumLast<T> != kEnumLast<void>, "give the greatest enumerator in kEnumLast");
    const uint64_t raw_value = unsigned_integer();
    if (raw_value > kEnumLast<T>) fail("enumerator " + std::to_string(raw_value) + " is not known");
    v = ok() ? static_cast<T>(raw_value) : T{};
  } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    const int64_t wide = signed_integer();
    if (wide < std::numeric_limits<T>::min() || wide > std::numeric_limits<T>::max()) {
      fail("number " + std::to_string(wide) + " does not fit its member");
    }
    v = ok() ? static_cast<T>(wide) : T{};
  } else if constexpr (std::is_integral_v<T>) {
    const uint64_t wide = unsigned_integer();
    if (wide > std::numeric_limits<T>::max()) {
      fail("number " + std::to_string(wide) + " does not fit its member");
    }
    v = ok() ? static_cast<T>(wide) : T{};
  } else {
    static_assert(detail::members_are_listed<T>(), "list all members of the struct in kMembers");
    std::apply([&](auto... member) { (value(v.*member), ...); }, kMembers<T>);
  }
}

inline void Writer::unsigned_integer(uint64_t v) {
  constexpr uint64_t kMore = 0x80;
  while (v >= kMore) {
    byte(static_cast<uint8_t>(v | kMore));
    v >>= 7U;
  }
  byte(static_cast<uint8_t>(v));
}

inline void Writer::signed_integer(int64_t v) {
  const auto sign = static_cast<uint64_t>(v >> 63);  // all ones if negative
  unsigned_integer((static_cast<uint64_t>(v) << 1U) ^ sign);
}

inline void Writer::fixed64(uint64_t v) {
  for (unsigned shift = 0; shift < 64; shift += 8) byte(static_cast<uint8_t>(v >> shift));
}

inline void Writer::fixed32(uint32_t v) {
  for (unsigned shift = 0; shift < 32; shift += 8) byte(static_cast<uint8_t>(v >> shift));
}

inline void Reader::fail(const std::string& complaint) {
  if (!ok()) return;
  complaint_ =
      complaint + ", at byte " + std::to_string(position_) + " of " + std::to_string(bytes_.size());
}

inline Status Reader::finish(const std::string& what) {
  if (remaining() != 0) fail(std::to_string(remaining()) + " bytes are left over");
  if (ok()) return Done{};
  return Error{what + " cannot be read: " + complaint_ +
               "; it is damaged, or was written by another version of sluice"};
}

inline std::span<const std::byte> Reader::raw(uint64_t size) {
  if (ok() && size > remaining()) {
    fail("ends too early: " + std::to_string(size) + " more bytes expected, " +
         std::to_string(remaining()) + " found");
  }
  if (!ok()) return {};
  const auto piece = bytes_.subspan(position_, static_cast<size_t>(size));
  position_ += piece.size();
  return piece;
}

inline uint8_t Reader::byte() {
  const auto piece = raw(1);
  return piece.empty() ? uint8_t{0} : static_cast<uint8_t>(piece[0]);
}

inline uint64_t Reader::unsigned_integer() {
  constexpr uint8_t kMore = 0x80;
  uint64_t result = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const uint8_t next = byte();
    const uint64_t bits = next & 0x7FU;
    if (shift == 63 && bits > 1) break;  // the tenth byte has room for one bit
    result |= bits << shift;
    if ((next & kMore) == 0) return ok() ? result : 0;
  }
  fail("a number has more than 64 bits");
  return 0;
}

inline int64_t Reader::signed_integer() {
  const uint64_t zigzag = unsigned_integer();
  return static_cast<int64_t>((zigzag >> 1U) ^ (~(zigzag & 1U) + 1U));
}

inline uint64_t Reader::fixed64() {
  uint64_t result = 0;
  unsigned shift = 0;
  for (const std::byte b : raw(8)) {
    result |= static_cast<uint64_t>(b) << shift;
    shift += 8;
  }
  return result;
}

inline uint32_t Reader::fixed32() {
  uint32_t result = 0;
  unsigned shift = 0;
  for (const std::byte b : raw(4)) {
    result |= static_cast<uint32_t>(b) << shift;
    shift += 8;
  }
  return result;
}

inline size_t Reader::count() {
  const uint64_t size = unsigned_integer();
  if (size > remaining()) {
    fail(std::to_string(size) + " elements expected, " + std::to_string(remaining()) +
         " bytes found");
  }
  return ok() ? static_cast<size_t>(size) : 0;
}

inline void Reader::value(bool& v) {
  const uint8_t raw_value = byte();
  if (raw_value > 1) fail("a yes or no is " + std::to_string(raw_value));
  v = raw_value == 1 && ok();
}

inline void Reader::value(std::string& v) {
  const auto piece = raw(count());
  v.assign(reinterpret_cast<const char*>(piece.data()), piece.size());
}

inline void Reader::value(std::vector<std::byte>& v) {
  const auto piece = raw(count());
  v.assign(piece.begin(), piece.end());
}

}  // namespace sluice::io
