// One HTTP GET of http://host:port/metrics.
#pragma once

#include <string>

#include "leeway/status.h"

namespace leeway::tools::top {

// Returns the body of the answer. Waits two seconds at most.
Result<std::string> scrape(const std::string& address);

}  // namespace leeway::tools::top
