// netem's correlated random numbers (get_crandom in Linux's sch_netem.c). A number x is followed by
// (1 - rho) u + rho x in 32-bit fixed point, where u is uniform. The autocorrelation at lag k is
// rho^k. If rho is above 0, the numbers are not uniform: values near the middle are more frequent.
#pragma once

#include <cstdint>

#include "engine/random_stream.h"

namespace leeway::sim {

class CorrelatedUniform {
 public:
  // `correlation` is 0 to 1. With 1 the first number repeats for ever.
  CorrelatedUniform(RandomStream random, double correlation)
      : random_(random), rho_(to_f32(correlation)), last_(random_.u32()) {}

  std::uint32_t next() {
    const std::uint64_t fresh = random_.u32();
    const Wide sum = Wide{fresh} * (kOneF32 - rho_) + Wide{last_} * rho_;
    last_ = static_cast<std::uint32_t>(sum >> 32);
    return last_;
  }

 private:
  RandomStream random_;
  std::uint64_t rho_;  // in fixed point, where 1.0 is kOneF32
  std::uint32_t last_;
};

}  // namespace leeway::sim
