// Times in texts for people.
#pragma once

#include <array>
#include <cstdio>

#include "leeway/types.h"

namespace leeway {

// Returns a null-terminated text such as "60000 ms" or "0.437 ms".
inline std::array<char, 32> in_milliseconds(Duration time) {
  constexpr std::int64_t kMillisecond = 1'000'000;
  const bool plain = time.count() >= 10 * kMillisecond || time.count() % kMillisecond == 0;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f ms", plain ? 0 : 3,
                static_cast<double>(time.count()) / 1e6);
  return text;
}

}  // namespace leeway
