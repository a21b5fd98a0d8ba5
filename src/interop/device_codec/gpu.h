// Differences between device and host compilers. The kernels of this room are written once and
// compiled by both, so that the host can prove what a device will compute.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define LEEWAY_GPU __device__ __forceinline__
#define LEEWAY_UNROLL _Pragma("unroll")
#else
#define LEEWAY_GPU inline
#define LEEWAY_UNROLL
#endif

namespace leeway::device_codec {

// 16 bytes, the most that one instruction loads or stores. Addresses are multiples of 16.
struct alignas(16) Quad {
  std::uint32_t words[4];
};

LEEWAY_GPU bool is_quad_aligned(const std::byte* at) {
  return reinterpret_cast<std::uintptr_t>(at) % sizeof(Quad) == 0;
}

// Returns `value` x `power` + `addend`, where `power` is a power of two. So the product is exact,
// and devices fuse both steps without changing a bit.
LEEWAY_GPU float scaled_plus(float value, float power, float addend) {
#ifdef __CUDACC__
  return __fmaf_rn(value, power, addend);
#else
  return value * power + addend;
#endif
}

// x * y + z, rounded once.
LEEWAY_GPU float fused(float x, float y, float z) {
#ifdef __CUDACC__
  return __fmaf_rn(x, y, z);
#else
  return std::fma(x, y, z);
#endif
}

// Returns |value|, which costs a device no instruction of its own.
LEEWAY_GPU float magnitude_of(float value) {
#ifdef __CUDACC__
  return fabsf(value);
#else
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFF);
#endif
}

// Picks four bytes of two words, each by four bits of `selector`: 0 .. 3 for bytes of `low`, 4 .. 7
// for bytes of `high`. If 8 is added to such a number, the byte becomes 0xFF or 0, by its top bit.
LEEWAY_GPU std::uint32_t bytes_of_two(std::uint32_t low, std::uint32_t high,
                                      std::uint32_t selector) {
#ifdef __CUDACC__
  std::uint32_t picked;  // __byte_perm() would ignore the 8
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(picked) : "r"(low), "r"(high), "r"(selector));
  return picked;
#else
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  std::uint32_t picked = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t named = selector >> (4 * i);
    auto byte = static_cast<std::uint32_t>(both >> (8 * (named & 7)) & 0xFF);
    if ((named & 8) != 0) byte = byte >= 0x80 ? 0xFF : 0;
    picked |= byte << (8 * i);
  }
  return picked;
#endif
}

// Returns the low word of two words shifted to the right by less than 32.
LEEWAY_GPU std::uint32_t shifted_right(std::uint32_t low, std::uint32_t high, unsigned shift) {
#ifdef __CUDACC__
  return __funnelshift_r(low, high, shift);
#else
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> shift);
#endif
}

// Returns the high word of two words shifted to the left by less than 32.
LEEWAY_GPU std::uint32_t shifted_left(std::uint32_t low, std::uint32_t high, unsigned shift) {
#ifdef __CUDACC__
  return __funnelshift_l(low, high, shift);
#else
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) << shift >> 32);
#endif
}

// The smaller of two numbers.
LEEWAY_GPU float smaller(float a, float b) {
#ifdef __CUDACC__
  return fminf(a, b);
#else
  return a < b ? a : b;
#endif
}
LEEWAY_GPU std::uint32_t smaller(std::uint32_t a, std::uint32_t b) {
  return a < b ? a : b;
}
// The smaller of each pair of halves of two words.
LEEWAY_GPU std::uint32_t smaller_halves(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDACC__
  return __vminu2(a, b);
#else
  return smaller(a >> 16, b >> 16) << 16 | smaller(a & 0xFFFF, b & 0xFFFF);
#endif
}

#ifdef __CUDACC__

// Tensors and packets lie in global memory; for a kernel, this includes pinned memory of the host.
// A compiler that knows this need not ask at each access whether an address means shared memory.
template <typename T>
LEEWAY_GPU T* in_global_memory(T* at) {
  __builtin_assume(__isGlobal(at));
  return at;
}
LEEWAY_GPU Quad load_quad(const std::byte* from) {
  const uint4 quad = *reinterpret_cast<const uint4*>(in_global_memory(from));
  return {{quad.x, quad.y, quad.z, quad.w}};
}
// load_quad() for the first and the second read of memory that is read twice. The first-level cache
// should keep what will be read again, and drop what will not (docs/measurements/device_codec.md).
#define LEEWAY_LOAD_QUAD(eviction)                                              \
  Quad quad;                                                                    \
  asm volatile("ld.global.L1::" eviction ".v4.u32 {%0, %1, %2, %3}, [%4];"      \
               : "=r"(quad.words[0]), "=r"(quad.words[1]), "=r"(quad.words[2]), \
                 "=r"(quad.words[3])                                            \
               : "l"(__cvta_generic_to_global(from)));                          \
  return quad
LEEWAY_GPU Quad load_quad_again_soon(const std::byte* from) {
  LEEWAY_LOAD_QUAD("evict_last");
}
LEEWAY_GPU Quad load_quad_last_time(const std::byte* from) {
  LEEWAY_LOAD_QUAD("evict_first");
}
#undef LEEWAY_LOAD_QUAD
LEEWAY_GPU void store_quad(std::byte* to, const Quad& quad) {
  *reinterpret_cast<uint4*>(in_global_memory(to)) =
      make_uint4(quad.words[0], quad.words[1], quad.words[2], quad.words[3]);
}
template <typename T>
LEEWAY_GPU T load_element(const std::byte* from) {
  return *reinterpret_cast<const T*>(in_global_memory(from));
}
template <typename T>
LEEWAY_GPU void store_element(std::byte* to, T value) {
  *reinterpret_cast<T*>(in_global_memory(to)) = value;
}

// Loads the aligned word at `from`. The arguments `first` and `end` say that the caller needs only
// bytes first .. end - 1. A device may read all four bytes, as no allocation ends within a word; a
// host may not.
LEEWAY_GPU std::uint32_t load_word_around(const std::byte* from, unsigned, unsigned) {
  return *reinterpret_cast<const std::uint32_t*>(in_global_memory(from));
}

class Warp {
 public:
  static constexpr unsigned kLanes = 32;

  template <typename T>
  class PerLane {
   public:
    LEEWAY_GPU T& operator[](unsigned) { return value_; }
    LEEWAY_GPU const T& operator[](unsigned) const { return value_; }

   private:
    T value_{};
  };

  template <typename Body>
  LEEWAY_GPU void for_each_lane(const Body& body) const {
    body(threadIdx.x % kLanes);
  }

  // Makes what lanes wrote to shared memory visible to all lanes.
  LEEWAY_GPU void sync() const { __syncwarp(); }

  // Gives each lane the largest value of its group of `lanes` neighbouring lanes. `lanes` is a
  // power of two.
  template <unsigned lanes>
  LEEWAY_GPU void spread_largest(PerLane<std::uint32_t>& values) const {
    std::uint32_t& own = values[0];
    if constexpr (lanes == kLanes) {
      own = __reduce_max_sync(~0u, own);
    } else {
      LEEWAY_UNROLL
      for (unsigned distance = 1; distance < lanes; distance *= 2)
        own = max(own, __shfl_xor_sync(~0u, own, distance));
    }
  }

  // Returns a bit for each lane whose value is true.
  LEEWAY_GPU std::uint32_t lanes_with(const PerLane<bool>& values) const {
    return __ballot_sync(~0u, values[0]);
  }

  // Returns value i of 64. Lane k has value k in `low`, and value 32 + k in `high`.
  LEEWAY_GPU float value_of(const PerLane<float>& low, const PerLane<float>& high,
                            unsigned i) const {
    return __shfl_sync(~0u, i < kLanes ? low[0] : high[0], i % kLanes);
  }

  // Returns to each lane the value of the lane before. Lane 0 gets the value of the last lane.
  LEEWAY_GPU PerLane<std::uint32_t> of_lanes_before(PerLane<std::uint32_t>& values) const {
    PerLane<std::uint32_t> others;
    others[0] = __shfl_sync(~0u, values[0], (threadIdx.x + kLanes - 1) % kLanes);
    return others;
  }

  // Returns to each lane the value of the lane whose number differs in one bit, that of `distance`.
  template <typename T>
  LEEWAY_GPU PerLane<T> exchanged(PerLane<T>& values, unsigned distance) const {
    PerLane<T> others;
    others[0] = __shfl_xor_sync(~0u, values[0], distance);
    return others;
  }
};

#else

LEEWAY_GPU Quad load_quad(const std::byte* from) {
  Quad quad;
  std::memcpy(&quad, from, sizeof quad);
  return quad;
}
LEEWAY_GPU Quad load_quad_again_soon(const std::byte* from) {
  return load_quad(from);
}
LEEWAY_GPU Quad load_quad_last_time(const std::byte* from) {
  return load_quad(from);
}
LEEWAY_GPU void store_quad(std::byte* to, const Quad& quad) {
  std::memcpy(to, &quad, sizeof quad);
}
template <typename T>
T load_element(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T>
void store_element(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

inline std::uint32_t load_word_around(const std::byte* from, unsigned first, unsigned end) {
  std::uint32_t word = 0;
  for (unsigned i = first; i < end; ++i) word |= static_cast<std::uint32_t>(from[i]) << (8 * i);
  return word;
}

class Warp {
 public:
  static constexpr unsigned kLanes = 32;

  template <typename T>
  class PerLane {
   public:
    T& operator[](unsigned lane) { return values_[lane]; }
    const T& operator[](unsigned lane) const { return values_[lane]; }

   private:
    T values_[kLanes] = {};
  };

  template <typename Body>
  void for_each_lane(const Body& body) const {
    for (unsigned lane = 0; lane < kLanes; ++lane) body(lane);
  }

  void sync() const {}

  template <unsigned lanes>
  void spread_largest(PerLane<std::uint32_t>& values) const {
    for (unsigned first = 0; first < kLanes; first += lanes) {
      std::uint32_t largest = 0;
      for (unsigned i = 0; i < lanes; ++i)
        largest = values[first + i] > largest ? values[first + i] : largest;
      for (unsigned i = 0; i < lanes; ++i) values[first + i] = largest;
    }
  }

  std::uint32_t lanes_with(const PerLane<bool>& values) const {
    std::uint32_t lanes = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      lanes |= static_cast<std::uint32_t>(values[lane]) << lane;
    return lanes;
  }

  float value_of(const PerLane<float>& low, const PerLane<float>& high, unsigned i) const {
    return (i < kLanes ? low : high)[i % kLanes];
  }

  PerLane<std::uint32_t> of_lanes_before(const PerLane<std::uint32_t>& values) const {
    PerLane<std::uint32_t> others;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      others[lane] = values[(lane + kLanes - 1) % kLanes];
    return others;
  }

  template <typename T>
  PerLane<T> exchanged(PerLane<T>& values, unsigned distance) const {
    PerLane<T> others;
    for (unsigned lane = 0; lane < kLanes; ++lane) others[lane] = values[lane ^ distance];
    return others;
  }
};

#endif

}  // namespace leeway::device_codec
