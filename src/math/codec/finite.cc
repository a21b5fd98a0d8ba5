// For a finite x, x - x is 0; for any other it is NaN. The differences are joined by OR and checked
// once. Narrow types are checked by their exponent bits, which are all ones if the value is not
// finite; in e4m3 all bits but the sign are ones.
#include "codec/finite.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/contracts.h"
#include "codec/load_store.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/finite.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "codec/unaligned-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

bool finite_floats(const std::byte* values, std::size_t bytes) {
  const hn::ScalableTag<float> d;
  const std::size_t step = hn::Lanes(d) * sizeof(float);
  const auto difference = [&](std::size_t at) {
    const auto value = load_unaligned(d, values + at);
    return hn::Sub(value, value);
  };
  auto odd0 = hn::Zero(d);
  auto odd1 = hn::Zero(d);
  std::size_t at = 0;
  for (; at + 2 * step <= bytes; at += 2 * step) {
    odd0 = hn::Or(odd0, difference(at));
    odd1 = hn::Or(odd1, difference(at + step));
  }
  bool finite = hn::AllFalse(d, hn::IsNaN(hn::Or(odd0, odd1)));
  for (; at < bytes; at += sizeof(float)) {
    const auto value = load<float>(values + at);
    finite &= value - value == 0.0f;
  }
  return finite;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leeway::codec {

HWY_EXPORT(finite_floats);

namespace {

// Returns true if no element has all bits of `exponent`.
template <typename Word>
bool none_has(Word exponent, ByteSpan values) {
  bool any = false;
  for (std::size_t at = 0; at < values.size(); at += sizeof(Word)) {
    const auto word = load<Word>(values.data() + at);
    any |= (word & exponent) == exponent;
  }
  return !any;
}

}  // namespace

bool all_finite(DataType dtype, ByteSpan values) {
  switch (dtype) {
    case DataType::f64:
      return none_has<std::uint64_t>(0x7FF0'0000'0000'0000, values);
    case DataType::f32:
      return HWY_DYNAMIC_DISPATCH(finite_floats)(values.data(), values.size());
    case DataType::f16:
      return none_has<std::uint16_t>(0x7C00, values);
    case DataType::bf16:
      return none_has<std::uint16_t>(0x7F80, values);
    case DataType::f8e4m3:  // has no infinity, and only this NaN
      return none_has<std::uint8_t>(0x7F, values);
    case DataType::f8e5m2:
      return none_has<std::uint8_t>(0x7C, values);
    default:
      LEEWAY_ASSERT(is_floating(dtype));
      return true;
  }
}

}  // namespace leeway::codec
#endif
