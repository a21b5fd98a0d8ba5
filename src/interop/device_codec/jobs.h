// Parameters of kernels: plain values, the same to both compilers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/contracts.h"
#include "codec/codec.h"

namespace leeway::device_codec {

// Consecutive elements cut into packets, which lie one behind the other. All packets but the last
// are full.
struct Packets {
  std::uint64_t elements = 0;
  std::uint32_t packet_elements = 0;  // in a full packet; a multiple of 32
  std::uint32_t packet_bytes = 0;     // length of a full packet
  std::uint32_t count = 0;
};

// Cuts elements into packets of `packet_elements` elements.
inline Packets cut(const codec::Format& format, std::uint64_t elements,
                   std::uint32_t packet_elements) {
  LEEWAY_ASSERT(packet_elements > 0 && packet_elements % codec::kPacketElementsMultiple == 0);
  LEEWAY_ASSERT(packet_elements % format.block_elements == 0);
  return {elements, packet_elements,
          static_cast<std::uint32_t>(format.encoded_bytes(packet_elements)),
          static_cast<std::uint32_t>((elements + packet_elements - 1) / packet_elements)};
}

struct EncodeJob {
  Packets packets;
  const std::byte* elements = nullptr;  // aligned as their type
  std::byte* out = nullptr;             // at any address
  codec::Place place;                   // place of the first element in the tensor
  // From the format: type of elements (f32, f16 or bf16), scale rule and bound.
  DataType type = DataType::f32;
  ScaleRule scale_rule = ScaleRule::floor;
  float bound = 0.0f;

  EncodeJob& set_format(const codec::Format& format) {
    type = format.element;
    scale_rule = format.options.scale_rule;
    bound = format.options.bound;
    return *this;
  }
};

// One rank's part of a sum.
struct Contribution {
  const std::byte* data = nullptr;
  const float* factors = nullptr;  // by packet; 0 leaves the packet out. Null: all factors are 1
  bool encoded = true;             // if false, elements of the job's type
};

// Limit on the contributions of one launch. Further launches add the remaining contributions to the
// first launch's sum. If elements have 16 bits, each launch rounds, so the sum's bits then differ
// from those that the processor computes.
inline constexpr unsigned kContributionsMax = 64;

// sum = ((w0 x0 + w1 x1) + w2 x2) + ..., where xi is an element of contribution i and wi the
// contribution's factor. It is computed in float32 and in this order, and each product and each sum
// is rounded. The result is rounded to the elements' type once.
struct SumJob {
  // A packet to which nothing is added becomes zeros, or keeps its present elements.
  enum class Absent : std::uint8_t { zeros, stays };

  Packets packets;
  std::byte* elements = nullptr;  // aligned as their type
  DataType type = DataType::f32;  // f32, f16 or bf16
  bool adds = false;              // adds to the present elements
  Absent absent = Absent::zeros;
  unsigned contributions_count = 0;
  Contribution contributions[kContributionsMax];
};

// Jobs that the host writes to pinned memory while a launch waits on its stream. When the host has
// written them, `*word` is `value`. If `*word` has another value, the launch does nothing.
template <typename Job>
struct JobList {
  const Job* jobs = nullptr;  // an address for kernels, like all here
  const std::uint32_t* count = nullptr;
  const std::uint32_t* word = nullptr;
  std::uint32_t value = 0;
  // Approximate number of packets of all jobs; the launch has warps for them.
  std::uint32_t packets_max = 0;
};

// The work of one launch: one job, or a list of them.
template <typename Job>
struct Orders {
  Job one;
  JobList<Job> list;
};

// Rotates float32 elements or rotates them back, packet by packet; `out` may be `elements`.
struct RotateJob {
  Packets packets;
  const std::byte* elements = nullptr;
  std::byte* out = nullptr;
  codec::Place place;
};

}  // namespace leeway::device_codec
