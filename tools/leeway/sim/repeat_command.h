// The command lines that people are told to type: to repeat one run, to continue a stopped command.
#pragma once

#include <string>
#include <string_view>

#include "sim/plan.h"

namespace leeway::tools::simulation {

// As a shell reads it back: in single quotes where needed.
std::string shell_word(std::string_view text);

// Returns the command that repeats one run alone: the given settings, those of its cell, its seed.
std::string repeat_command(const Arguments& arguments, const Plan& plan, const RunName& run);

// Returns the command that continues this one, and keeps what has finished.
std::string resume_command(const Arguments& arguments);

// The part of the arguments that both are made from, to be kept beside results.
std::string arguments_json(const Arguments& arguments);
Result<Arguments> parse_arguments(std::string_view json);

}  // namespace leeway::tools::simulation
