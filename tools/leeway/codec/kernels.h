// The conversions that `leeway codec bench` times. They all have the same signature, and each call
// converts one packet.
#pragma once

#include <optional>
#include <span>

#include "codec/codec.h"

namespace leeway::tools::codecs {

struct Kernels {
  void (*encode)(const codec::Format& format, std::span<const float> in, const codec::Place& place,
                 MutableByteSpan out) = nullptr;
  void (*decode)(const codec::Format& format, ByteSpan in, const codec::Place& place,
                 std::span<float> out) = nullptr;
  void (*accumulate)(const codec::Format& format, ByteSpan in, float scale,
                     std::span<float> sum) = nullptr;
};

Kernels library_kernels();

// Returns the reference kernels, which convert element by element, as the formats are defined.
// Returns nullopt for formats that have no implementation but the library's.
std::optional<Kernels> defining_kernels(const codec::Format& format);

}  // namespace leeway::tools::codecs
