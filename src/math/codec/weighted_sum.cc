// Reads every input once and writes the result once. Four vectors stay in registers while the
// inputs are walked, so that the loop over inputs costs little and the adders' latency is hidden.
//
// Measured on one Zen 5 core (tests/perf/datapath_bench, bytes read and written): 4 inputs are
// summed at 150 GB/s if each has 128 KiB, and at 22 GB/s if each has 16 MiB. memcpy, whose bytes
// are counted in the same way, moves 160 and 30 GB/s. With one pass for each input, through a
// first-level cache block, inputs of 128 KiB were summed at 79 GB/s.
#include "codec/weighted_sum.h"

#include <algorithm>
#include <cstdint>

#include "base/contracts.h"
#include "codec/load_store.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/weighted_sum.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "codec/unaligned-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;

// The loop has a variant for scales that are all 1: multiplying by 1 changes no bit, but costs as
// much as adding.
template <bool unit>
HWY_INLINE hn::Vec<Floats> scaled(const std::byte* from, hn::Vec<Floats> scale) {
  const auto value = load_unaligned(Floats(), from);
  return unit ? value : hn::Mul(scale, value);
}

template <bool unit>
HWY_INLINE float scaled_one(const std::byte* from, float scale) {
  const auto value = load<float>(from);
  return unit ? value : scale * value;
}

// Only the results are checked for being finite. If an input is not, its sum is not either; a sum
// that overflows is not finite although all inputs are.
template <bool unit, bool checked>
bool sum_as(std::span<const std::byte* const> inputs, std::span<const float> scales,
            MutableByteSpan out) {
  const Floats d;
  const std::size_t step = hn::Lanes(d) * sizeof(float);  // bytes of a vector
  auto odd = hn::Zero(d);  // NaN once a result was not finite (finite.cc)
  std::size_t at = 0;
  for (; at + 4 * step <= out.size(); at += 4 * step) {
    auto scale = hn::Set(d, scales[0]);
    auto sum0 = scaled<unit>(inputs[0] + at, scale);
    auto sum1 = scaled<unit>(inputs[0] + at + step, scale);
    auto sum2 = scaled<unit>(inputs[0] + at + 2 * step, scale);
    auto sum3 = scaled<unit>(inputs[0] + at + 3 * step, scale);
    for (std::size_t j = 1; j < inputs.size(); ++j) {
      scale = hn::Set(d, scales[j]);
      sum0 = hn::Add(sum0, scaled<unit>(inputs[j] + at, scale));
      sum1 = hn::Add(sum1, scaled<unit>(inputs[j] + at + step, scale));
      sum2 = hn::Add(sum2, scaled<unit>(inputs[j] + at + 2 * step, scale));
      sum3 = hn::Add(sum3, scaled<unit>(inputs[j] + at + 3 * step, scale));
    }
    if constexpr (checked) {
      odd = hn::Or3(odd, hn::Sub(sum0, sum0), hn::Sub(sum1, sum1));
      odd = hn::Or3(odd, hn::Sub(sum2, sum2), hn::Sub(sum3, sum3));
    }
    store_unaligned(d, sum0, out.data() + at);
    store_unaligned(d, sum1, out.data() + at + step);
    store_unaligned(d, sum2, out.data() + at + 2 * step);
    store_unaligned(d, sum3, out.data() + at + 3 * step);
  }
  bool finite = !checked || hn::AllFalse(d, hn::IsNaN(odd));
  for (; at < out.size(); at += sizeof(float)) {
    float sum = scaled_one<unit>(inputs[0] + at, scales[0]);
    for (std::size_t j = 1; j < inputs.size(); ++j) {
      sum = sum + scaled_one<unit>(inputs[j] + at, scales[j]);
    }
    store(out.data() + at, sum);
    if constexpr (checked) finite &= sum - sum == 0.0f;
  }
  return finite;
}

bool sum_scaled(std::span<const std::byte* const> inputs, std::span<const float> scales,
                MutableByteSpan out, bool check) {
  return check ? sum_as<false, true>(inputs, scales, out)
               : sum_as<false, false>(inputs, scales, out);
}
bool sum_plain(std::span<const std::byte* const> inputs, std::span<const float> scales,
               MutableByteSpan out, bool check) {
  return check ? sum_as<true, true>(inputs, scales, out) : sum_as<true, false>(inputs, scales, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leeway::codec {

HWY_EXPORT(sum_scaled);
HWY_EXPORT(sum_plain);

bool weighted_sum_floats(std::span<const std::byte* const> inputs, std::span<const float> scales,
                         MutableByteSpan out, bool check) {
  LEEWAY_ASSERT(inputs.size() == scales.size() && out.size() % sizeof(float) == 0);
  if (inputs.empty()) {
    std::fill(out.begin(), out.end(), std::byte{0});
    return true;
  }
  if (std::all_of(scales.begin(), scales.end(), [](float scale) { return scale == 1.0f; }))
    return HWY_DYNAMIC_DISPATCH(sum_plain)(inputs, scales, out, check);
  return HWY_DYNAMIC_DISPATCH(sum_scaled)(inputs, scales, out, check);
}

}  // namespace leeway::codec
#endif
