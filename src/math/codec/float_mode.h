// Sets IEEE arithmetic whatever the host program has set: round to nearest even, subnormals kept,
// exceptions masked. Frameworks set flush-to-zero for their own kernels, and payload bytes must not
// depend on it. The room's entry points set the mode once a call and restore it after: a few
// nanoseconds a packet.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace leeway::codec {

class StandardFloatMode {
 public:
#if defined(__x86_64__)
  StandardFloatMode() : saved_(_mm_getcsr()) {
    if (differs()) _mm_setcsr(kDefault);
  }
  ~StandardFloatMode() {
    if (differs()) _mm_setcsr(saved_);
  }
#elif defined(__aarch64__)
  StandardFloatMode() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    if (saved_ != kDefault) asm volatile("msr fpcr, %0" : : "r"(kDefault));
  }
  ~StandardFloatMode() {
    if (saved_ != kDefault) asm volatile("msr fpcr, %0" : : "r"(saved_));
  }
#else
  StandardFloatMode() = default;
#endif
  StandardFloatMode(const StandardFloatMode&) = delete;
  StandardFloatMode& operator=(const StandardFloatMode&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr std::uint32_t kDefault = 0x1F80;  // MXCSR after reset: all exceptions masked
  static constexpr std::uint32_t kStickyFlags =
      0x003F;  // flags of past exceptions, which set no mode
  bool differs() const {
    return (saved_ & ~kStickyFlags) != kDefault;
  }
  std::uint32_t saved_;
#elif defined(__aarch64__)
  static constexpr std::uint64_t kDefault = 0;
  std::uint64_t saved_;
#endif
};

}  // namespace leeway::codec
