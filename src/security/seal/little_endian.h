// Numbers in sealed datagrams' clear bytes and path messages: little-endian.
#pragma once

#include <cstddef>

#include "leeway/types.h"

namespace leeway::seal {

template <typename Unsigned>
void put(Unsigned value, MutableByteSpan out) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    out[i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
}

template <typename Unsigned>
Unsigned take(ByteSpan in) {
  Unsigned value = 0;
  for (std::size_t i = sizeof value; i-- > 0;)
    value = static_cast<Unsigned>(value << 8 | std::to_integer<Unsigned>(in[i]));
  return value;
}

}  // namespace leeway::seal
