// Content of a datagram, in a few words, from its first bytes.
#pragma once

#include <string>

#include "leeway/types.h"

namespace leeway::sim::trace {

// "data round 3 reduce packet 17 of 64", "repair round 3 spread request 1 from packet 128", "report
// no. 12". Facts that the kept bytes do not hold are left out; "not Leeway's" for anything else.
std::string datagram_text(ByteSpan first_bytes);

}  // namespace leeway::sim::trace
