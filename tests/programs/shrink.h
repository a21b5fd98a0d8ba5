// Turns a program that fails into a small one that fails the same way.
#pragma once

#include <functional>

#include "programs/program.h"

namespace leeway::programs {

using Fails = std::function<bool(const Program& program)>;

// Makes the program smaller, one change at a time, until no change is left that keeps the failure,
// or `fails` was asked `tries_max` times.
Program shrink(Program program, const Fails& fails, unsigned tries_max);

}  // namespace leeway::programs
