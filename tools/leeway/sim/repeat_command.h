// Makes command lines for people to type: to repeat one run, or to continue a stopped command.
#pragma once

#include <string>
#include <string_view>

#include "sim/plan.h"

namespace leeway::tools::simulation {

// A word as a shell must read it: in single quotes if needed.
std::string shell_word(std::string_view text);

// Returns the command that repeats one run alone, with the given settings, those of its cell, and
// its seed.
std::string repeat_command(const Arguments& arguments, const Plan& plan, const RunName& run);

// Returns the command that continues this one, and keeps what has finished.
std::string resume_command(const Arguments& arguments);

// The arguments from which both commands are made, to be kept beside results.
std::string arguments_json(const Arguments& arguments);
Result<Arguments> parse_arguments(std::string_view json);

}  // namespace leeway::tools::simulation
