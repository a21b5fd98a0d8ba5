// Parts of error texts: lists of ranks, and text that other processes sent.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "leeway/types.h"

namespace leeway::rendezvous {

// Returns a list for error texts, like "1, 3-5, 9". After eight ranges it ends in "... and 12
// more".
std::string list_ranks(const std::vector<Rank>& ascending);

// Returns text of another process in a form that is safe to print: at most `length_max` characters,
// control and non-ASCII characters as '?'.
std::string printable(const std::string& text, std::size_t length_max = 40);

}  // namespace leeway::rendezvous
