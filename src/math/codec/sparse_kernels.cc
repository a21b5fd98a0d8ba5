// Philox draws of several blocks at once, and E4M3 codes by the vector (philox-inl.h,
// minifloat-inl.h).
#include "codec/sparse_kernels.h"

#include <algorithm>

#include "codec/minifloat.h"
#include "codec/random_bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/sparse_kernels.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "codec/minifloat-inl.h"
#include "codec/philox-inl.h"
#include "codec/scaled_vectors-inl.h"
#include "codec/unaligned-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {
namespace {

#if LEEWAY_SCALED_VECTORS

void draw_kernel(const Place& place, std::uint32_t stream, std::uint32_t draw, std::uint64_t block,
                 std::span<std::uint8_t> out) {
  random_blocks(place, stream_tag(stream, draw), block, out.size() / kRandomBlockElements,
                out.data());
}

// Rounds the values that fill whole vectors. Returns their number.
std::size_t round_kernel(std::span<const float> sent, float scale, const std::uint8_t* random,
                         std::byte* out) {
  using QuarterBytes = hn::Rebind<std::uint8_t, Floats>;
  const std::size_t lanes = hn::Lanes(Floats());
  const auto divisor = hn::Set(Floats(), scale);
  std::size_t i = 0;
  for (; i + lanes <= sent.size(); i += lanes) {
    const auto value = hn::Div(hn::LoadU(Floats(), sent.data() + i), divisor);
    const auto bytes = hn::PromoteTo(Words(), hn::LoadU(QuarterBytes(), random + i));
    const auto code =
        hn::And(hn::ShiftRight<8>(hn::Add(quanta_codes<kE4M3, 8>(value), bytes)), word(0x7F));
    const auto sign = hn::And(hn::ShiftRight<24>(bits_of(value)), word(0x80));
    const auto result = hn::BitCast(Integers(), hn::Or(code, sign));
    store_unaligned(QuarterBytes(), hn::DemoteTo(QuarterBytes(), result), out + i);
  }
  return i;
}

#else

void draw_kernel(const Place& place, std::uint32_t stream, std::uint32_t draw, std::uint64_t block,
                 std::span<std::uint8_t> out) {
  for (std::size_t at = 0; at < out.size(); at += kRandomBlockElements, ++block) {
    const auto bytes = random_bytes(place, stream, block, draw);
    std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

std::size_t round_kernel(std::span<const float>, float, const std::uint8_t*, std::byte*) {
  return 0;
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leeway::codec {
namespace {
HWY_EXPORT(draw_kernel);
HWY_EXPORT(round_kernel);
}  // namespace

void draw_blocks(const Place& place, std::uint32_t stream, std::uint32_t draw, std::uint64_t block,
                 std::span<std::uint8_t> out) {
  HWY_DYNAMIC_DISPATCH(draw_kernel)(place, stream, draw, block, out);
}

void round_to_e4m3(std::span<const float> sent, float scale, const std::uint8_t* random,
                   std::byte* out) {
  std::size_t i = HWY_DYNAMIC_DISPATCH(round_kernel)(sent, scale, random, out);
  for (; i < sent.size(); ++i) {
    out[i] = static_cast<std::byte>(encode_stochastic(kE4M3, sent[i] / scale, random[i]));
  }
}

}  // namespace leeway::codec
#endif
