// What the error says where two ranks mean an operation of different length.
#pragma once

#include <cstdint>

#include "leeway/status.h"
#include "protocol/round.h"

namespace leeway::protocol {

// A message is longer than the receive that it meets.
Status too_long(const Round& round, Rank from, std::uint64_t sent, Rank to, std::uint64_t room);

// Of an uneven all_to_all: the sender's count is not the one that the receiver gave.
Status unequal_pair(const Round& round, Rank from, std::uint64_t sent, Rank to,
                    std::uint64_t expected);

}  // namespace leeway::protocol
