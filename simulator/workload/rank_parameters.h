// All ranks' copies of a model in one array, and the step of plain SGD on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/contracts.h"
#include "leeway/status.h"

namespace leeway::sim {

// Limit on float32 values in a workload, 16 GiB.
inline constexpr std::uint64_t kFloatsMax = std::uint64_t{1} << 32;

// Refuses `floats` values per rank if all ranks together have more than kFloatsMax. `what` names
// the values in the error.
inline Status check_floats(std::uint64_t ranks, std::uint64_t floats, const char* what) {
  if (floats <= kFloatsMax / ranks) return {};
  return Status::error(StatusCode::kResourceExhausted,
                       "workload: %llu %s for each of %llu ranks are more than %llu in all",
                       static_cast<unsigned long long>(floats), what,
                       static_cast<unsigned long long>(ranks),
                       static_cast<unsigned long long>(kFloatsMax));
}

class RankParameters {
 public:
  // All parameters are 0 at first.
  RankParameters(std::uint32_t ranks, std::size_t elements)
      : elements_(elements), values_(ranks * elements) {}

  std::size_t elements() const { return elements_; }
  std::size_t ranks() const { return values_.size() / elements_; }
  std::span<float> of(std::size_t rank) {
    LEEWAY_ASSERT(rank < ranks());
    return std::span(values_).subspan(rank * elements_, elements_);
  }

 private:
  std::size_t elements_;
  std::vector<float> values_;
};

inline void sgd_step(std::span<float> parameters, std::span<const float> gradient,
                     float learning_rate) {
  LEEWAY_ASSERT(parameters.size() == gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) parameters[i] -= learning_rate * gradient[i];
}

}  // namespace leeway::sim
