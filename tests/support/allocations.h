// Counts calls of operator new in the whole program, for tests of code that must not allocate.
#pragma once

#include <cstddef>

namespace leeway::sim {

std::size_t allocations_so_far();

}  // namespace leeway::sim
