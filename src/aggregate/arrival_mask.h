// Walking the set bits of a block's arrival mask, in rank order.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace leeway::aggregate {

template <typename Visit>
void for_each_arrived(std::span<const std::uint64_t> mask, Visit visit) {
  for (std::size_t w = 0; w < mask.size(); ++w) {
    for (std::uint64_t left = mask[w]; left != 0; left &= left - 1) {
      visit(w * 64 + static_cast<std::size_t>(std::countr_zero(left)));
    }
  }
}

inline bool contains(std::span<const std::uint64_t> mask, std::size_t rank) {
  return (mask[rank / 64] >> (rank % 64) & 1) != 0;
}

}  // namespace leeway::aggregate
