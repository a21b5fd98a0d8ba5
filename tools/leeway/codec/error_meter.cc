#include "codec/error_meter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "codec/mean_square.h"

namespace leeway::tools::codecs {

double RoundTripError::decibel() const {
  if (noise == 0.0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(signal / noise);
}

RoundTripError round_trip_error(const codec::Format& format, std::span<const float> values,
                                std::uint64_t seed) {
  RoundTripError error;
  std::vector<std::byte> payload;
  std::array<float, kPacketElements> decoded{};
  for (std::size_t begin = 0; begin < values.size(); begin += kPacketElements) {
    const auto packet = values.subspan(begin, std::min(kPacketElements, values.size() - begin));
    const codec::Place place{.seed = seed, .first_element = begin};
    payload.resize(format.encoded_bytes(packet.size()));
    codec::encode(format, packet, place, payload);
    codec::decode(format, payload, place, std::span(decoded).first(packet.size()));
    error.signal += codec::sum_of_squares(packet);
    error.noise +=
        codec::sum_of_squared_differences(packet, std::span(decoded).first(packet.size()));
  }
  return error;
}

std::optional<codec::Format> format_with(CodecOptions options, Rounding rounding) {
  if (options.rounding != Rounding::automatic && options.rounding != rounding) return std::nullopt;
  options.rounding = rounding;
  if (validate(options).ok()) return codec::format_of(options, DataType::f32);
  // A codec that has only one kind of rounding refuses that rounding by its name, but accepts
  // `automatic`. The format then says which rounding it is.
  options.rounding = Rounding::automatic;
  const codec::Format only = codec::format_of(options, DataType::f32);
  if (!validate(options).ok() || only.options.rounding != rounding) return std::nullopt;
  return only;
}

double bits_per_element(const codec::Format& format) {
  return 8.0 * static_cast<double>(format.encoded_bytes(kPacketElements)) / kPacketElements;
}

}  // namespace leeway::tools::codecs
