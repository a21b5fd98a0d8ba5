// Counts what this test program takes from operator new, for cases that promise to take nothing.
#pragma once

#include <cstddef>

namespace leeway::sim {

std::size_t allocations_so_far();

}  // namespace leeway::sim
