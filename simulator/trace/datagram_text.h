// Describes a datagram in a few words, from its first bytes.
#pragma once

#include <string>

#include "leeway/types.h"

namespace leeway::sim::trace {

// Returns text such as "data round 3 reduce packet 17 of 64", "repair round 3 spread request 1 from
// packet 128" or "report no. 12". Facts beyond the kept bytes are left out. Returns "not Leeway's"
// for anything else.
std::string datagram_text(ByteSpan first_bytes);

}  // namespace leeway::sim::trace
