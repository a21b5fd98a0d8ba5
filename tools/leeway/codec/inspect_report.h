// Formats the output of `leeway codec inspect`.
#pragma once

#include <cstddef>
#include <string>

#include "codec/inspection.h"

namespace leeway::tools::codecs {

// Returns the output for people, at most `width` (>= 60) columns wide.
std::string inspect_text(const Inspection& inspection, std::size_t width);

// Returns JSON: {"file", "elements", "zeros", ..., "histogram": [{"log2", "count"}], "formats":
// [...], "best": {...}, "pruning": [...]}
std::string inspect_json(const Inspection& inspection);

}  // namespace leeway::tools::codecs
