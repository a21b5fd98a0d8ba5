// Which question a keyed hash answers, so that the answers about one packet are independent of each other.
#pragma once

#include <cstdint>

#include "leeway/types.h"

namespace leeway::impairment {

enum class HashStream : std::uint8_t { loss = 1, burst_loss, duplicate, reorder, reorder_distance, corrupt, corrupt_bit };

// First word of the hash: the question and the link. `detail` is the phase of data or the type of control.
constexpr std::uint64_t hash_key(HashStream stream, Rank source, Rank destination, std::uint8_t detail,
                                 bool control = false) {
  return (std::uint64_t{static_cast<std::uint8_t>(stream)} << 56) | (std::uint64_t{control} << 48) |
         (std::uint64_t{detail} << 40) | (std::uint64_t{source} << 16) | destination;
}

}  // namespace leeway::impairment
