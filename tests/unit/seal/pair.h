// Two processes that seal for each other, and bytes for them.
#pragma once

#include <string_view>
#include <vector>

#include "seal/aead.h"
#include "seal/associations.h"

namespace leeway::seal {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline Bytes from_hex(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  Bytes bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(digit(text[i]) << 4 | digit(text[i + 1])));
  return bytes;
}

template <std::size_t kBytes>
std::array<std::byte, kBytes> array_of(std::string_view hex) {
  std::array<std::byte, kBytes> array{};
  const Bytes bytes = from_hex(hex);
  std::copy_n(bytes.begin(), std::min(bytes.size(), kBytes), array.begin());
  return array;
}

inline Bytes pattern(std::size_t count, unsigned start = 1) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(start = start * 1103515245 + 12345);
  return bytes;
}

inline PairKeys keys_of(unsigned number, bool leads) {
  keys::Key agreed{};
  agreed[0] = static_cast<std::byte>(number);
  keys::Key shared{};
  Party first{.tag_base = 0x11110000};
  Party second{.tag_base = 0x22220000};
  second.public_key.fill(std::byte{0xFF});
  if (!leads) std::swap(first, second);
  return derive_pair(agreed, shared, {}, first, second, 0, 0);
}

// Process 0 leads, process 1 follows; each knows the other by the slot of this number.
struct PairOfTwo {
  explicit PairOfTwo(const Rotation& rotation = {}, AeadKind kind = AeadKind::aes_128_gcm)
      : ends{Associations(0, rotation), Associations(0, rotation)} {
    ends[0].meet(now, 1, keys_of(1, true), aead_maker(kind));
    ends[1].meet(now, 0, keys_of(1, false), aead_maker(kind));
  }

  Bytes seal(Rank from, const Bytes& plain) {
    const Slice slice{plain.data(), plain.size()};
    const Train train{static_cast<Rank>(1 - from), plain.size(), plain.size(), {&slice, 1}};
    Bytes out(Associations::sealed_bytes(train));
    out.resize(ends[from].seal(now, train, out));
    return out;
  }
  // What it says; empty: refused.
  Bytes open(Rank at, Bytes datagram) {
    const ByteSpan plain = ends[at].open(now, static_cast<Rank>(1 - at), datagram);
    return {plain.begin(), plain.end()};
  }
  bool pass(Rank from) {
    return open(static_cast<Rank>(1 - from), seal(from, bytes_of("x"))) == bytes_of("x");
  }
  std::uint64_t refused(Rank at, Refusal reason) const {
    return ends[at].counters().refused_for(reason);
  }
  const Association& end(Rank at) const { return *ends[at].at(static_cast<Rank>(1 - at)); }

  Instant now{1'000'000};
  std::array<Associations, 2> ends;
};

}  // namespace leeway::seal
