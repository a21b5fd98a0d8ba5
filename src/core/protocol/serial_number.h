#pragma once

#include <cstdint>

namespace leeway::protocol {

// Serial-number comparison (RFC 1982) of 32-bit counters that may wrap.
constexpr bool after(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace leeway::protocol
