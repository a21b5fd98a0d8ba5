// Reads and writes numbers at any byte address.
#pragma once

#include <cstddef>
#include <cstring>

namespace leeway::codec {

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

}  // namespace leeway::codec
