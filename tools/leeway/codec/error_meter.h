// Measures the error of a format: the signal to noise ratio after encoding and decoding, in packets
// as the library sends them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "codec/codec.h"

namespace leeway::tools::codecs {

// Number of elements of a packet in all measurements of this command. They are 8 KiB of float32,
// about as many as one 1,472-byte datagram of a 4-bit format carries.
inline constexpr std::size_t kPacketElements = 2048;

// Sums over elements.
struct RoundTripError {
  double signal = 0.0;  // x^2
  double noise = 0.0;   // (decoded - x)^2

  // Returns 10 log10(signal / noise), which is infinite if nothing changed.
  double decibel() const;
};

// Encodes and decodes `values`, which must be finite, and sums the errors. Stochastic rounding uses
// the random bits of `seed`, step 0, rank 0 and each element's position in `values`.
RoundTripError round_trip_error(const codec::Format& format, std::span<const float> values,
                                std::uint64_t seed);

// Returns the format of `options` with this rounding. Returns nullopt if the codec does not have
// this rounding, or if the options ask for the other one, by name or by a scale rule that only the
// other one has.
std::optional<codec::Format> format_with(CodecOptions options, Rounding rounding);

// Returns the bits per element of a full packet, its header included.
double bits_per_element(const codec::Format& format);

}  // namespace leeway::tools::codecs
