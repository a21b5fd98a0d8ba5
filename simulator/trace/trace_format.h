// Constants of packet traces that writer and reader share, in addition to proto/trace.proto.
#pragma once

#include <cstdint>

#include "network/network.h"
#include "trace.pb.h"

namespace leeway::sim::trace {

inline constexpr const char* kFormatName = "leeway packet trace";
inline constexpr std::uint32_t kFormatVersion = 1;
// A longer entry must be damaged, because a whole datagram with its fields is shorter.
inline constexpr std::uint32_t kEntryBytesMax = 1 << 17;

// Bits of Packet.flags.
inline constexpr std::uint32_t kEcnCapable = 1;
inline constexpr std::uint32_t kMarked = 2;
inline constexpr std::uint32_t kTrimmed = 4;
inline constexpr std::uint32_t kCorrupt = 8;
inline constexpr std::uint32_t kDuplicate = 16;
inline constexpr std::uint32_t kFlagsAll = 31;

// The file uses the network's numbers of steps and kinds of traffic.
static_assert(static_cast<int>(PacketStep::blocked) == blocked && Step_MAX + 1 == kPacketSteps);
static_assert(static_cast<int>(PacketStep::lost) == lost);
static_assert(static_cast<int>(sim::Traffic::cross) == cross && Traffic_MAX + 1 == kTrafficKinds);

}  // namespace leeway::sim::trace
