// HKDF with SHA-256 (RFC 5869): keys out of secrets.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::keys {

// A secret or a public half of 32 bytes.
using Key = std::array<std::byte, 32>;

// HKDF-Extract: one key of all that `input` holds.
Key extract(ByteSpan salt, ByteSpan input);

// HKDF-Expand with `label` as its info: as many bytes as `out` has, at most 8,160.
void expand(const Key& key, std::string_view label, MutableByteSpan out);
// The same, for 32 bytes.
Key expand(const Key& key, std::string_view label);

// From the system's generator, which check_random() has found. Ends the process where there is
// none.
void fill_randomly(MutableByteSpan out);
// kUnsupported: the system has no random numbers for this process. kResourceExhausted: no memory.
// kCancelled: the process is ending, and its program's OpenSSL is gone.
Status check_random();

// Overwrites what must not stay in memory.
void wipe(MutableByteSpan secret);

}  // namespace leeway::keys
