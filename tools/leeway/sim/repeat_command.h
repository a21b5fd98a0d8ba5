// Makes command lines for people to type: to repeat one run, or to continue a stopped command.
#pragma once

#include <string>
#include <string_view>

#include "sim/plan.h"

namespace leeway::tools::simulation {

// Quotes a word for a shell: in single quotes if it needs them.
std::string shell_word(std::string_view text);

// Returns the command that repeats one run alone: with the settings of the command and of the run's
// cell, and the run's seed.
std::string repeat_command(const Arguments& arguments, const Plan& plan, const RunName& run);

// Returns the command that continues a stopped one and keeps finished runs.
std::string resume_command(const Arguments& arguments);

// Converts the command's arguments to JSON, to be kept beside results, and back.
std::string arguments_json(const Arguments& arguments);
Result<Arguments> parse_arguments(std::string_view json);

}  // namespace leeway::tools::simulation
