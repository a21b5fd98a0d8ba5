// The number of seeds of a random search, or of rounds of a statistic.
#pragma once

namespace leeway::testing {

// True in `tools/test --all`.
#if defined(LEEWAY_TEST_ALL)
inline constexpr bool kTakesAll = true;
#else
inline constexpr bool kTakesAll = false;
#endif

// Returns the number of seeds or rounds: `all` of them in `tools/test --all`, `usual` elsewhere.
// A fault that a search found must lie within `usual`, or be a test of its own.
constexpr int seeds(int usual, int all) {
  return kTakesAll ? all : usual;
}

}  // namespace leeway::testing
