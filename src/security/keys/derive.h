// HKDF with SHA-256 (RFC 5869): derives keys from secrets.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::keys {

// A secret or a public half of 32 bytes.
using Key = std::array<std::byte, 32>;

// HKDF-Extract: one key from all of `input`.
Key extract(ByteSpan salt, ByteSpan input);

// HKDF-Expand with `label` as info. Fills `out`, at most 8,160 bytes.
void expand(const Key& key, std::string_view label, MutableByteSpan out);
// HKDF-Expand to 32 bytes.
Key expand(const Key& key, std::string_view label);

// Fills `out` with random bytes of the system. If the system has none, the process ends, so call
// check_random() first.
void fill_randomly(MutableByteSpan out);
// Checks that random bytes can be had. Returns kUnsupported if the system has none for this
// process, kResourceExhausted if there is no memory, or kCancelled if the process is ending and
// OpenSSL is torn down.
Status check_random();

// Overwrites bytes that must not stay in memory.
void wipe(MutableByteSpan secret);

}  // namespace leeway::keys
