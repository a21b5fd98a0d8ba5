// Counters of the keyed hash. There is one for each question about each packet, such as whether the
// packet is lost. So answers to different questions are independent of each other.
#pragma once

#include <cstdint>

#include "leeway/types.h"

namespace leeway::impairment {

enum class HashStream : std::uint8_t {
  loss = 1,
  burst_loss,
  duplicate,
  reorder,
  reorder_distance,
  corrupt,
  corrupt_bit
};

// link_word() and question_word() make the words a and b of the hash's counter (base/philox.h).
// From the top, b holds the purpose (4 bits), the question (4 bits), whether the datagram is
// control (1), the phase of data or the type of control (7), and the attempt (16).
inline constexpr std::uint32_t kFaultPurpose = 0xFu << 28;

constexpr std::uint32_t link_word(Rank source, Rank destination) {
  return std::uint32_t{source} << 16 | destination;
}

constexpr std::uint32_t question_word(HashStream stream, bool control, std::uint8_t detail,
                                      std::uint16_t attempt) {
  return kFaultPurpose | std::uint32_t{static_cast<std::uint8_t>(stream)} << 24 |
         std::uint32_t{control} << 23 | std::uint32_t{detail} % 128 << 16 | attempt;
}

}  // namespace leeway::impairment
