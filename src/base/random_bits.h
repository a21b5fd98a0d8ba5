// Random numbers of the system, for seeds and for names that nobody else has.
#pragma once

#include <cstdint>
#include <random>

namespace leeway {

// Returns 64 random bits. Throws std::runtime_error if the system has none.
inline std::uint64_t random_bits() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace leeway
