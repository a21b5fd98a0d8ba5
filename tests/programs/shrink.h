// Makes a failing program smaller, so that it still fails in the same way.
#pragma once

#include <functional>

#include "programs/program.h"

namespace leeway::programs {

using Fails = std::function<bool(const Program& program)>;

// Makes one change at a time and keeps it if `fails` still returns true, until no change is left or
// `fails` was called `tries_max` times.
Program shrink(Program program, const Fails& fails, unsigned tries_max);

}  // namespace leeway::programs
