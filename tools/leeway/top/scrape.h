// One HTTP GET of http://host:port/metrics.
#pragma once

#include <string>

#include "leeway/status.h"

namespace leeway::tools::top {

// The answer's body. Waits two seconds at most.
Result<std::string> scrape(const std::string& address);

}  // namespace leeway::tools::top
