// What the compilers of devices and hosts differ in. The kernels of this room are written once and
// compiled by both, so that the host can prove what a device will compute.
//
// A warp works in phases. A phase is the body of for_each_lane(), and a lane reads only what it
// wrote itself or what an earlier phase wrote. On a device all lanes run a phase side by side. On a
// host they run it one after the other, and values of lanes are arrays.
#pragma once

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

// What one instruction loads or stores, at multiples of 16 bytes.
struct alignas(16) Quad {
  std::uint32_t words[4];
};

LEEWAY_GPU bool is_quad_aligned(const std::byte* at) {
  return reinterpret_cast<std::uintptr_t>(at) % sizeof(Quad) == 0;
}

// `value` x `power` + `addend`. The product by a power of two is exact, so that fusing it with the
// sum, which spares devices an instruction, changes no bit.
LEEWAY_GPU float scaled_plus(float value, float power, float addend) {
#ifdef __CUDACC__
  return __fmaf_rn(value, power, addend);
#else
  return value * power + addend;
#endif
}

// Four bytes of two words; four bits of `selector` name each, 0 .. 3 for those of `low`.
LEEWAY_GPU std::uint32_t bytes_of_two(std::uint32_t low, std::uint32_t high,
                                      std::uint32_t selector) {
#ifdef __CUDACC__
  return __byte_perm(low, high, selector);
#else
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  std::uint32_t picked = 0;
  for (unsigned i = 0; i < 4; ++i)
    picked |= static_cast<std::uint32_t>(both >> (8 * (selector >> (4 * i) & 7)) & 0xFF) << (8 * i);
  return picked;
#endif
}

// The low word of two words that were shifted to the right by less than 32.
LEEWAY_GPU std::uint32_t shifted_right(std::uint32_t low, std::uint32_t high, unsigned shift) {
#ifdef __CUDACC__
  return __funnelshift_r(low, high, shift);
#else
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> shift);
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

#ifdef __CUDACC__

LEEWAY_GPU Quad load_quad(const std::byte* from) {
  const uint4 quad = *reinterpret_cast<const uint4*>(from);
  return {{quad.x, quad.y, quad.z, quad.w}};
}
LEEWAY_GPU void store_quad(std::byte* to, const Quad& quad) {
  *reinterpret_cast<uint4*>(to) =
      make_uint4(quad.words[0], quad.words[1], quad.words[2], quad.words[3]);
}
template <typename T>
LEEWAY_GPU T load_element(const std::byte* from) {
  return *reinterpret_cast<const T*>(from);
}
template <typename T>
LEEWAY_GPU void store_element(std::byte* to, T value) {
  *reinterpret_cast<T*>(to) = value;
}

// The aligned word at `from`, of which the bytes first .. end - 1 count. A device reads all four:
// no allocation ends within a word. A host does not.
LEEWAY_GPU std::uint32_t load_word_around(const std::byte* from, unsigned, unsigned) {
  return *reinterpret_cast<const std::uint32_t*>(from);
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

  // What lanes wrote to shared memory before is there for all lanes after.
  LEEWAY_GPU void sync() const { __syncwarp(); }

  // Gives each lane the largest value of its group. Groups are `lanes` neighbours, a power of two.
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

  // Value i of twice as many values as lanes, of which `low` holds the first half.
  LEEWAY_GPU float value_of(const PerLane<float>& low, const PerLane<float>& high,
                            unsigned i) const {
    return __shfl_sync(~0u, i < kLanes ? low[0] : high[0], i % kLanes);
  }

  // The values of the lanes whose number differs in the one bit of `distance`.
  LEEWAY_GPU PerLane<float> exchanged(PerLane<float>& values, unsigned distance) const {
    PerLane<float> others;
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

  float value_of(const PerLane<float>& low, const PerLane<float>& high, unsigned i) const {
    return (i < kLanes ? low : high)[i % kLanes];
  }

  PerLane<float> exchanged(PerLane<float>& values, unsigned distance) const {
    PerLane<float> others;
    for (unsigned lane = 0; lane < kLanes; ++lane) others[lane] = values[lane ^ distance];
    return others;
  }
};

#endif

}  // namespace leeway::device_codec
