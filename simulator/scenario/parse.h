// Reads a file as a scenario that can be run, or returns one sentence that says why it cannot.
//
// Errors are kInvalidArgument (the scenario is wrong) or kUnavailable (a file cannot be read) and
// begin with file:line:column where the place is known. Only the first error is returned.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "scenario/places.h"

namespace leeway::sim::scenario {

// Larger files are refused. Long tables belong in files of their own.
inline constexpr std::size_t kScenarioBytesMax = 1 << 20;

// Checks text format, schema, limits and rules. `file_name` is for error messages only.
Result<Scenario> parse_text(std::string_view text, std::string_view file_name);

// Also names a nameless scenario after its file, and resolves the files that the scenario refers
// to.
Result<Scenario> read_file(const std::string& path);

// Relative paths in fields marked `file` become paths from `folder`; each file must be readable.
Status resolve_files(Scenario& scenario, const std::string& folder, const Places& places = {});

}  // namespace leeway::sim::scenario
