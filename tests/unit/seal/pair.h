// Two processes that seal for each other, with test keys and bytes.
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

// Returns the number of a sealed datagram.
inline std::uint64_t number_of(ByteSpan datagram) {
  Header header;
  (void)decode_header(datagram, header);
  return header.counter;
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

// A cipher that only records its key.
struct NotedKey final : Cipher {
  void set_key(const CipherKey& given, const NonceVector&) override { key = given; }
  void seal(std::uint64_t, std::span<const Slice>, MutableByteSpan) override {}
  bool open(std::uint64_t, MutableByteSpan) override { return false; }
  CipherKey key{};
};

inline CipherKey cipher_key(const PairKeys& keys, bool seals) {
  NotedKey noted;
  key_cipher(keys, seals, noted);
  return noted.key;
}

// Processes 0 and 1, which seal for each other. Process 0 leads key changes. Each knows the other
// by the slot that equals the other's number.
struct PairOfTwo {
  explicit PairOfTwo(const Rotation& rotation = {},
                     const CipherMaker& maker = aead_maker(AeadKind::aes_128_gcm),
                     KeyExchange& exchange = x25519())
      : ends{Associations(0, rotation, exchange), Associations(0, rotation, exchange)} {
    ends[0].meet(now, 1, keys_of(1, true), maker);
    ends[1].meet(now, 0, keys_of(1, false), maker);
  }

  Bytes seal(Rank from, const Bytes& plain) {
    const Slice slice{plain.data(), plain.size()};
    const Train train{static_cast<Rank>(1 - from), plain.size(), plain.size(), {&slice, 1}};
    Bytes out(Associations::sealed_bytes(train));
    out.resize(ends[from].seal(now, train, out));
    return out;
  }
  // Opens `datagram` at process `at`. Returns the plain bytes, or no bytes if the datagram is
  // refused.
  Bytes open(Rank at, Bytes datagram) {
    const ByteSpan plain = ends[at].open(now, static_cast<Rank>(1 - at), datagram);
    return {plain.begin(), plain.end()};
  }
  bool pass(Rank from) {
    return open(static_cast<Rank>(1 - from), seal(from, bytes_of("x"))) == bytes_of("x");
  }
  // Returns the messages about keys that this end sends now.
  std::vector<Bytes> messages(Rank from) {
    std::vector<Bytes> all;
    ends[from].on_wake(now);
    while (const auto message = ends[from].poll_message())
      all.emplace_back(message->datagram.begin(), message->datagram.end());
    return all;
  }
  // Delivers all messages about keys, until neither end has one to send.
  void change_keys() {
    for (bool any = true; any;) {
      any = false;
      for (const Rank from : {0, 1}) {
        for (const Bytes& message : messages(from)) {
          (void)open(1 - from, message);
          any = true;
        }
      }
    }
  }
  void pass_time(Duration time) {
    now = now + time;
    change_keys();
  }
  std::uint64_t refused(Rank at, Refusal reason) const {
    return ends[at].counters().refused_for(reason);
  }
  const Association& end(Rank at) const { return *ends[at].at(static_cast<Rank>(1 - at)); }

  Instant now{1'000'000};
  std::array<Associations, 2> ends;
};

}  // namespace leeway::seal
