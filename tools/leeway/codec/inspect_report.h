// The output of `leeway codec inspect`.
#pragma once

#include <cstddef>
#include <string>

#include "codec/inspection.h"

namespace leeway::tools::codecs {

// At most `width` (>= 60) columns.
std::string inspect_text(const Inspection& inspection, std::size_t width);

// {"file", "elements", "zeros", ..., "histogram": [{"log2", "count"}], "formats": [...], "best":
// {...}, "pruning": [...]}
std::string inspect_json(const Inspection& inspection);

}  // namespace leeway::tools::codecs
