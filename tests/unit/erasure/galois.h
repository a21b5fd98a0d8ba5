// Arithmetic in GF(2^8) modulo 0x11D, bit by bit, to compare with.
#pragma once

namespace leeway::erasure {

inline unsigned times(unsigned a, unsigned b) {
  unsigned product = 0;
  for (; b != 0; b >>= 1) {
    if (b & 1) product ^= a;
    a <<= 1;
    if (a & 0x100) a ^= 0x11D;
  }
  return product;
}

inline unsigned inverse(unsigned a) {
  for (unsigned b = 1; b < 256; ++b) {
    if (times(a, b) == 1) return b;
  }
  return 0;
}

}  // namespace leeway::erasure
