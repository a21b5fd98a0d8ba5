// The header of the active message that carries a datagram.
#pragma once

#include <cstdint>

#include "leeway/types.h"

namespace leeway::transport {

// The id of Leeway's active messages. Leeway's workers accept no other id.
inline constexpr unsigned kUcxMessageId = 0;

// Sent in the host's byte order, because UCX connects only hosts with the same byte order.
struct UcxMark {
  std::uint64_t group = 0;  // a digest of all ranks' addresses: strangers do not know it
  std::uint32_t from = kNoRank;
  std::uint32_t reserved = 0;
};

}  // namespace leeway::transport
