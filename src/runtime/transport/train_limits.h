// Limits of a train. They come from UDP, and other transports keep to them, so that every transport
// can carry every train.
#pragma once

#include <cstddef>

namespace leeway::transport {

// Limit on segments of a UDP_SEGMENT message: UDP_MAX_SEGMENTS of kernels before 6.9 (128 since).
inline constexpr std::size_t kTrainDatagramsMax = 64;
// Largest UDP payload over IPv4: 65,535 less 20 and 8 bytes of headers.
inline constexpr std::size_t kTrainBytesMax = 65'507;
// Limit on the slices of a train: two for each datagram (header and payload), and two more for
// callers that gather from more places.
inline constexpr std::size_t kTrainSlicesMax = 4 * kTrainDatagramsMax;

}  // namespace leeway::transport
