// CRC-32C (Castagnoli polynomial 0x1EDC6F41, reflected, initial and final complement), the checksum
// of every datagram.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "leeway/types.h"

namespace leeway {

// Returns the checksum of `bytes`, which may have any alignment and length, by the fastest kernel
// for this processor. Checksums can be continued: crc32c(b, crc32c(a)) is the checksum of a
// followed by b. crc32c("123456789") == 0xE3069283.
std::uint32_t crc32c(ByteSpan bytes, std::uint32_t crc = 0);

// Returns crc32c(bytes), and meanwhile brings `next` into the cache. It is for a caller that walks
// uncached memory in an order that hardware prefetchers cannot guess. Over 9 KB packets of a 200 MB
// buffer, on one Zen 5 core, it reaches 28 GB/s. crc32c() alone reaches 13.5 GB/s, and crc32c()
// after a fetch of all of `next` 17 GB/s.
std::uint32_t crc32c_prefetching(ByteSpan bytes, ByteSpan next);

namespace internal {

struct Crc32cKernel {
  std::string_view name;
  std::uint32_t (*run)(ByteSpan bytes, std::uint32_t crc);
};

// The kernels that this processor can run, fastest first; the last one is portable. For tests and
// measurements.
std::span<const Crc32cKernel> crc32c_kernels();

}  // namespace internal
}  // namespace leeway
