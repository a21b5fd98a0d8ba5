// The CUDA toolkit's host conversions of small floats, by element format: an independent reference.
// Only for files that are built where the toolkit was found; its headers are included, never
// copied.
#pragma once

#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "codec/element.h"
#include "codec/minifloat.h"

namespace leeway::codec {

// Encodes to the nearest code. Large values saturate to the largest finite one.
inline int cuda_encode(const Minifloat& format, float value) {
  if (format == kE4M3) return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
  if (format == kE5M2) return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2);
  if (format == kE2M3) return __nv_cvt_float_to_fp6(value, __NV_E2M3, cudaRoundNearest);
  if (format == kE3M2) return __nv_cvt_float_to_fp6(value, __NV_E3M2, cudaRoundNearest);
  return __nv_cvt_float_to_fp4(value, __NV_E2M1, cudaRoundNearest);
}

inline float cuda_decode(const Minifloat& format, int code) {
  const auto byte = static_cast<std::uint8_t>(code);
  __half_raw half{};
  if (format == kE4M3) half = __nv_cvt_fp8_to_halfraw(byte, __NV_E4M3);
  if (format == kE5M2) half = __nv_cvt_fp8_to_halfraw(byte, __NV_E5M2);
  if (format == kE2M3) half = __nv_cvt_fp6_to_halfraw(byte, __NV_E2M3);
  if (format == kE3M2) half = __nv_cvt_fp6_to_halfraw(byte, __NV_E3M2);
  if (format == kE2M1) half = __nv_cvt_fp4_to_halfraw(byte, __NV_E2M1);
  return float_from_half({half.x});
}

constexpr bool cuda_has(const Minifloat& format) {
  return format == kE4M3 || format == kE5M2 || format == kE2M3 || format == kE3M2 ||
         format == kE2M1;
}

}  // namespace leeway::codec
