// printf into a string.
#pragma once

#include <string>

namespace leeway::tools {

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

}  // namespace leeway::tools
