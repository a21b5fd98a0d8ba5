// netem's correlated random number: x' = (1 - rho) u + rho x in 32-bit fixed point, u uniform
// (get_crandom in Linux's sch_netem.c). Its autocorrelation at lag k is rho^k. It is uniform only
// without correlation; otherwise values near the middle are more frequent.
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
  std::uint64_t rho_;  // f32
  std::uint32_t last_;
};

}  // namespace leeway::sim
