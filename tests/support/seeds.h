// Chooses the number of seeds of a random search, or of rounds of a statistic.
#pragma once

namespace leeway::testing {

// True in a build for `tools/test --all`.
#if defined(LEEWAY_TEST_ALL)
inline constexpr bool kTakesAll = true;
#else
inline constexpr bool kTakesAll = false;
#endif

// Returns the number of seeds or rounds to test: `all` in `tools/test --all`, otherwise `usual`. A
// seed that once found a fault must be within `usual`, or have a test of its own.
constexpr int seeds(int usual, int all) {
  return kTakesAll ? all : usual;
}

}  // namespace leeway::testing
