// The number of seeds of a random search, or of rounds of a statistic.
#pragma once

namespace leeway::testing {

// Returns the number of seeds or rounds: `all` of them in `tools/test --all`, `usual` elsewhere.
// A fault that a search found must lie within `usual`, or be a test of its own.
constexpr int seeds([[maybe_unused]] int usual, [[maybe_unused]] int all) {
#if defined(LEEWAY_TEST_ALL)
  return all;
#else
  return usual;
#endif
}

}  // namespace leeway::testing
