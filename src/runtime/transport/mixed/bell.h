// Short datagrams over UDP between processes that share memory (WIRE 11.5). A bell wakes the peer,
// or says that the sender cannot share memory. It is shorter than all other datagrams of Leeway, so
// receivers can tell them apart.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "leeway/types.h"

namespace leeway::transport {

struct Bell {
  enum class Kind : std::uint32_t { ring = 1, refusal = 2 };
  static constexpr std::uint32_t kMagic = 0x6C6C6542;  // "Bell"
  static constexpr std::size_t kBytes = 16;

  Kind kind = Kind::ring;
  // The nonce that the bell's sender has put into its ring, or 0 while the sender has no ring
  std::uint64_t nonce = 0;

  std::array<std::byte, kBytes> encode() const {
    std::array<std::byte, kBytes> out;
    const auto raw_kind = static_cast<std::uint32_t>(kind);
    std::memcpy(out.data(), &kMagic, 4);
    std::memcpy(out.data() + 4, &raw_kind, 4);
    std::memcpy(out.data() + 8, &nonce, 8);
    return out;
  }

  // Returns nullopt for a datagram that is no bell.
  static std::optional<Bell> decode(ByteSpan datagram) {
    std::uint32_t magic = 0;
    std::uint32_t raw_kind = 0;
    Bell bell;
    if (datagram.size() != kBytes) return std::nullopt;
    std::memcpy(&magic, datagram.data(), 4);
    std::memcpy(&raw_kind, datagram.data() + 4, 4);
    std::memcpy(&bell.nonce, datagram.data() + 8, 8);
    if (magic != kMagic || raw_kind < 1 || raw_kind > 2) return std::nullopt;
    bell.kind = static_cast<Kind>(raw_kind);
    return bell;
  }
};

}  // namespace leeway::transport
