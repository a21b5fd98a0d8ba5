#pragma once

#include <cstdint>

namespace leeway::protocol {

// Returns true if `a` comes after `b`, for 32-bit counters that may wrap (RFC 1982).
constexpr bool after(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace leeway::protocol
