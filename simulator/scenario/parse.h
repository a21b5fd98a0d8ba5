// Reads a file as a valid scenario, or returns one sentence that says what is wrong.
//
// Errors are kInvalidArgument (the scenario is wrong) or kUnavailable (a file cannot be read). They
// begin with file:line:column if the place is known. Only the first error is returned.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "scenario/places.h"

namespace leeway::sim::scenario {

// Limit on the size of a file. Larger files are refused. Long tables can be files of their own.
inline constexpr std::size_t kScenarioBytesMax = 1 << 20;

// Parses `text`, and checks its format, schema, limits and rules. `file_name` is for error messages
// only.
Result<Scenario> parse_text(std::string_view text, std::string_view file_name);

// Like parse_text(), for a file. A scenario without a name gets the file's name. Also calls
// resolve_files().
Result<Scenario> read_file(const std::string& path);

// Makes relative paths in fields marked `file` relative to `folder`. Each file must be readable.
Status resolve_files(Scenario& scenario, const std::string& folder, const Places& places = {});

}  // namespace leeway::sim::scenario
