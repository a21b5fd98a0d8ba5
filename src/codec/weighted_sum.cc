// Reads every input once and writes the result once. Four vectors stay in registers while the
// inputs are walked, so that the loop over inputs costs little and the adders' latency is hidden.
#include "codec/weighted_sum.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/contracts.h"

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

HWY_INLINE hn::Vec<Floats> load(const float* from) {
  return load_unaligned(Floats(), reinterpret_cast<const std::byte*>(from));
}

// Whether all scales are 1 is known before the loop: multiplying by 1 changes no bit but costs as
// much as adding.
template <bool unit>
HWY_INLINE hn::Vec<Floats> scaled(const float* from, hn::Vec<Floats> scale) {
  return unit ? load(from) : hn::Mul(scale, load(from));
}

template <bool unit>
HWY_INLINE float scaled_one(const float* from, float scale) {
  float value;
  std::memcpy(&value, from, sizeof(value));
  return unit ? value : scale * value;
}

template <bool unit>
void sum_as(std::span<const float* const> inputs, std::span<const float> scales,
            std::span<float> out) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + 4 * lanes <= out.size(); i += 4 * lanes) {
    auto scale = hn::Set(d, scales[0]);
    auto sum0 = scaled<unit>(inputs[0] + i, scale);
    auto sum1 = scaled<unit>(inputs[0] + i + lanes, scale);
    auto sum2 = scaled<unit>(inputs[0] + i + 2 * lanes, scale);
    auto sum3 = scaled<unit>(inputs[0] + i + 3 * lanes, scale);
    for (std::size_t j = 1; j < inputs.size(); ++j) {
      scale = hn::Set(d, scales[j]);
      sum0 = hn::Add(sum0, scaled<unit>(inputs[j] + i, scale));
      sum1 = hn::Add(sum1, scaled<unit>(inputs[j] + i + lanes, scale));
      sum2 = hn::Add(sum2, scaled<unit>(inputs[j] + i + 2 * lanes, scale));
      sum3 = hn::Add(sum3, scaled<unit>(inputs[j] + i + 3 * lanes, scale));
    }
    hn::StoreU(sum0, d, out.data() + i);
    hn::StoreU(sum1, d, out.data() + i + lanes);
    hn::StoreU(sum2, d, out.data() + i + 2 * lanes);
    hn::StoreU(sum3, d, out.data() + i + 3 * lanes);
  }
  for (; i < out.size(); ++i) {
    float sum = scaled_one<unit>(inputs[0] + i, scales[0]);
    for (std::size_t j = 1; j < inputs.size(); ++j)
      sum = sum + scaled_one<unit>(inputs[j] + i, scales[j]);
    out[i] = sum;
  }
}

void sum_scaled(std::span<const float* const> inputs, std::span<const float> scales,
                std::span<float> out) {
  sum_as<false>(inputs, scales, out);
}
void sum_plain(std::span<const float* const> inputs, std::span<const float> scales,
               std::span<float> out) {
  sum_as<true>(inputs, scales, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leeway::codec {

HWY_EXPORT(sum_scaled);
HWY_EXPORT(sum_plain);

void weighted_sum(std::span<const float* const> inputs, std::span<const float> scales,
                  std::span<float> out) {
  LEEWAY_ASSERT(inputs.size() == scales.size());
  if (inputs.empty()) {
    std::fill(out.begin(), out.end(), 0.0f);
  } else if (std::all_of(scales.begin(), scales.end(), [](float scale) { return scale == 1.0f; })) {
    HWY_DYNAMIC_DISPATCH(sum_plain)(inputs, scales, out);
  } else {
    HWY_DYNAMIC_DISPATCH(sum_scaled)(inputs, scales, out);
  }
}

}  // namespace leeway::codec
#endif
