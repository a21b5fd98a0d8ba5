// Units for tests: virtual time is in nanoseconds.
#pragma once

#include <cstdint>

namespace leeway::testing {

inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::int64_t kSecond = 1'000 * kMs;

}  // namespace leeway::testing
