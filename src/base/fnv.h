// FNV-1a, a hash that is the same on every machine and library, unlike std::hash.
#pragma once

#include <cstdint>
#include <string_view>

namespace leeway {

constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

}  // namespace leeway
