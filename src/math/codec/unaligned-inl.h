// Vector loads and stores at any byte address, for the kernels of this room. Included once for
// every instruction set.
#if defined(LEEWAY_CODEC_UNALIGNED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_UNALIGNED_INL_H_
#undef LEEWAY_CODEC_UNALIGNED_INL_H_
#else
#define LEEWAY_CODEC_UNALIGNED_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

// Loads bytes, because a pointer to float must be aligned in C++ even where the instruction does
// not care. Highway's one-lane target cannot reinterpret vectors and copies instead.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_unaligned(D d, const std::byte* from) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_SCALAR
  hn::TFromD<D> value;
  std::memcpy(&value, from, sizeof(value));
  return hn::Load(d, &value);
#else
  return hn::BitCast(d, hn::LoadU(hn::Repartition<std::uint8_t, D>(),
                                  reinterpret_cast<const std::uint8_t*>(from)));
#endif
}

template <class D>
HWY_INLINE void store_unaligned([[maybe_unused]] D d, hwy::HWY_NAMESPACE::Vec<D> v, std::byte* to) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_SCALAR
  hn::TFromD<D> value;
  hn::Store(v, d, &value);
  std::memcpy(to, &value, sizeof(value));
#else
  const hn::Repartition<std::uint8_t, D> bytes;
  hn::StoreU(hn::BitCast(bytes, v), bytes, reinterpret_cast<std::uint8_t*>(to));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
