// Compares kernels that decode and sum, compiled for the host, with src/math/codec and the
// library's sum.
#include "device_codec/sum_packets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/growing_buffer.h"
#include "collective/scaled_sum.h"
#include "support/host_kernels.h"
#include "unit/codec/mixed_values.h"
#include "unit/device_codec/formats_on_devices.h"

namespace leeway::device_codec {
namespace {

using codec::ValueKind;

// Returns every codec once, because rounding and scale rule do not matter for decoding.
std::vector<CodecOptions> every_codec() {
  std::vector<CodecOptions> all = every_option_on_devices();
  std::erase_if(all, [](const CodecOptions& options) {
    return options.rounding != Rounding::stochastic || options.bound > 0.0f;
  });
  return all;
}

bool same_elements(DataType type, std::span<const std::byte> a, std::span<const std::byte> b) {
  const codec::Format format = codec::format_of(Codec::native, type);
  std::vector<float> x(a.size() / size_of(type));
  std::vector<float> y(b.size() / size_of(type));
  codec::decode(format, a, {}, x);
  codec::decode(format, b, {}, y);
  return codec::same_floats(x, y);
}

// Returns payloads to decode: an encoder's, one with infinities and NaN, random ones, and the worst
// possible ones.
std::vector<std::vector<std::byte>> payloads(const codec::Format& format, const Packets& packets) {
  const std::size_t elements = packets.elements;
  const auto honest = defined_packets(
      format, packets, tensor_of(format.element, codec::all_of(ValueKind::ordinary, elements, 30)),
      kPlace);
  const auto mixed = defined_packets(format, packets,
                                     tensor_of(format.element, codec::mixed(elements, 31)), kPlace);
  std::vector<std::byte> random(honest.size());
  for (std::size_t i = 0; i < random.size(); ++i)
    random[i] = static_cast<std::byte>(codec::value_bits(i, 32));
  std::vector<std::byte> scales = honest;
  std::copy_n(random.begin(), std::min<std::size_t>(random.size(), format.header_bytes + 9),
              scales.begin());
  return {honest,
          mixed,
          random,
          scales,
          std::vector(honest.size(), std::byte{0xFF}),
          std::vector(honest.size(), std::byte{0})};
}

// Sums as the library does, packet by packet, and skips contributions of factor 0.
std::vector<std::byte> defined_sum(const codec::Format& format, const Packets& packets,
                                   std::span<const Contribution> contributions) {
  std::vector<std::byte> out(packets.elements * size_of(format.element));
  GrowingBuffer scratch;
  for (std::uint32_t i = 0; i < packets.count; ++i) {
    const PacketOfJob packet(packets, i);
    std::vector<collective::Term> terms;
    for (const Contribution& one : contributions) {
      const float factor = one.factors == nullptr ? 1.0f : one.factors[i];
      const std::size_t at = one.encoded ? packet.at : packet.first * size_of(format.element);
      if (factor != 0.0f) terms.push_back({one.data + at, factor, one.encoded});
    }
    collective::scaled_sum(format, kPlace, format.element, terms, packet.elements,
                           std::span(out).subspan(packet.first * size_of(format.element),
                                                  packet.elements * size_of(format.element)),
                           scratch, /*check=*/false);
  }
  return out;
}

SumJob job_of(const Packets& packets, std::vector<std::byte>& elements,
              std::span<const Contribution> contributions) {
  SumJob job{.packets = packets, .elements = elements.data()};
  job.contributions_count = static_cast<unsigned>(contributions.size());
  std::ranges::copy(contributions, job.contributions);
  return job;
}

TEST(SumPackets, OfOneContributionDecodes) {
  for (const CodecOptions& options : every_codec()) {
    for (const DataType type : {DataType::f32, DataType::bf16, DataType::f16}) {
      const codec::Format format = codec::format_of(options, type);
      if (format.identity()) continue;  // elements are sent as they lie in memory
      for (const std::size_t count : {1, 2, 15, 16, 17, 31, 33, 100, 129, 511, 512, 1100}) {
        const Packets packets = cut(format, count, 512);
        for (const auto& payload : payloads(format, packets)) {
          const Contribution one{.data = payload.data()};
          std::vector<std::byte> out(count * size_of(type));
          sum_on_host(format, job_of(packets, out, std::span(&one, 1)));
          ASSERT_TRUE(same_elements(type, out, defined_sum(format, packets, std::span(&one, 1))))
              << to_string(options) << ", " << count << " elements of " << to_string(type);
        }
      }
    }
  }
}

TEST(SumPackets, AddInTheOrderOfRanksAndLeaveOutWhatDidNotArrive) {
  constexpr std::size_t kElements = 1400;
  for (const CodecOptions& options : every_codec()) {
    for (const DataType type : {DataType::f32, DataType::bf16}) {
      const codec::Format format = codec::format_of(options, type);
      if (format.identity()) continue;
      const Packets packets = cut(format, kElements, 256);
      const auto encoded = payloads(format, packets);
      const auto own = tensor_of(type, codec::mixed(kElements, 41));
      const std::vector<float> factors[] = {{0.3f, 1.0f, 0.0f, 2.5f, 0.0f, 0x1p-130f},
                                            {0.0f, 1.25f, 0.0f, 0.1f, 0x1p120f, 1.0f},
                                            {0.7f, 0.7f, 0.0f, 0.7f, 0.7f, 0.0f}};
      const Contribution contributions[] = {
          {.data = encoded[0].data(), .factors = factors[0].data()},
          {.data = own.data(), .factors = factors[1].data(), .encoded = false},
          {.data = encoded[1].data(), .factors = factors[2].data()},
          {.data = encoded[3].data(), .factors = factors[0].data()}};
      std::vector<std::byte> out(own.size(), std::byte{0x7A});
      sum_on_host(format, job_of(packets, out, contributions));
      ASSERT_TRUE(same_elements(type, out, defined_sum(format, packets, contributions)))
          << to_string(options) << " of " << to_string(type);
    }
  }
}

TEST(SumPackets, MayBeSplitOverLaunches) {
  const codec::Format format = codec::format_of(Codec::nvfp4, DataType::f32);
  const Packets packets = cut(format, 3000, 512);
  const auto encoded = payloads(format, packets);
  std::vector<Contribution> all;
  for (std::size_t i = 0; i < 7; ++i) all.push_back({.data = encoded[i % 2].data()});
  std::vector<std::byte> out(3000 * sizeof(float));
  SumJob first = job_of(packets, out, std::span(all).first(3));
  sum_on_host(format, first);
  SumJob second = job_of(packets, out, std::span(all).subspan(3));
  second.adds = true;
  sum_on_host(format, second);
  EXPECT_TRUE(same_elements(DataType::f32, out, defined_sum(format, packets, all)));
}

TEST(SumPackets, LeaveElementsThatNobodySentAsTheyAreWhereAsked) {
  const codec::Format format = codec::format_of(Codec::mxfp4, DataType::f32);
  const Packets packets = cut(format, 100, 64);
  const auto encoded = payloads(format, packets);
  const float factors[] = {0.0f, 1.0f};
  const Contribution one{.data = encoded[0].data(), .factors = factors};
  std::vector<std::byte> out = tensor_of(DataType::f32, std::vector<float>(100, 5.0f));
  SumJob job = job_of(packets, out, std::span(&one, 1));
  job.absent = SumJob::Absent::stays;
  sum_on_host(format, job);
  float value = 0.0f;
  std::memcpy(&value, &out[63 * sizeof(float)], sizeof value);
  EXPECT_EQ(value, 5.0f);
  std::memcpy(&value, &out[64 * sizeof(float)], sizeof value);
  EXPECT_NE(value, 5.0f);
  job.absent = SumJob::Absent::zeros;
  sum_on_host(format, job);
  std::memcpy(&value, &out[63 * sizeof(float)], sizeof value);
  EXPECT_EQ(value, 0.0f);
}

TEST(SumPackets, ReadPayloadAtAnyAddress) {
  for (const CodecOptions& options : every_codec()) {
    const codec::Format format = codec::format_of(options, DataType::f32);
    const Packets packets = cut(format, 700, 384);
    const auto payload = payloads(format, packets)[1];
    for (std::size_t off = 0; off < 16; ++off) {
      std::vector<std::byte> shifted(off + payload.size());  // the copy ends where the payload does
      std::ranges::copy(payload, shifted.begin() + static_cast<std::ptrdiff_t>(off));
      const Contribution one{.data = shifted.data() + off};
      std::vector<std::byte> out(700 * sizeof(float));
      sum_on_host(format, job_of(packets, out, std::span(&one, 1)));
      ASSERT_TRUE(
          same_elements(DataType::f32, out, defined_sum(format, packets, std::span(&one, 1))))
          << to_string(options) << ", " << off << " bytes off";
    }
  }
}

}  // namespace
}  // namespace leeway::device_codec
