// Counts allocations by operator new in this test program, for tests that promise none.
#pragma once

#include <cstddef>

namespace leeway::sim {

std::size_t allocations_so_far();

}  // namespace leeway::sim
