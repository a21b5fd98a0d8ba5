// Constants that the writer and the reader of packet traces share beside proto/trace.proto.
#pragma once

#include <cstdint>

#include "network/network.h"
#include "trace.pb.h"

namespace leeway::sim::trace {

inline constexpr const char* kFormatName = "leeway packet trace";
inline constexpr std::uint32_t kFormatVersion = 1;
// Longer entries are damage, since a whole datagram and its fields fit.
inline constexpr std::uint32_t kEntryBytesMax = 1 << 17;

// Packet.flags.
inline constexpr std::uint32_t kEcnCapable = 1;
inline constexpr std::uint32_t kMarked = 2;
inline constexpr std::uint32_t kTrimmed = 4;
inline constexpr std::uint32_t kCorrupt = 8;
inline constexpr std::uint32_t kDuplicate = 16;
inline constexpr std::uint32_t kFlagsAll = 31;

// The numbers of the file are those of the network.
static_assert(static_cast<int>(PacketStep::blocked) == blocked && Step_MAX + 1 == kPacketSteps);
static_assert(static_cast<int>(PacketStep::lost) == lost);
static_assert(static_cast<int>(sim::Traffic::cross) == cross && Traffic_MAX + 1 == kTrafficKinds);

}  // namespace leeway::sim::trace
