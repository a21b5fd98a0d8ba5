// Parses numbers with units from the command line. An error quotes the text and gives a valid
// example.
#pragma once

#include <cstdint>
#include <string_view>

#include "leeway/status.h"

namespace leeway::lab {

// Parses "100Mb", "1.5Gb/s", "500kbit" or "2000000" to megabits a second; must be more than 0.
Result<double> parse_rate_mbps(std::string_view text);

// Parses "50ms", "200us" or "1.5s" to milliseconds; must be 0 or more.
Result<double> parse_time_ms(std::string_view text);

// Parses "1500", "64K", "1M" or "9000B" to bytes (K = 1024); must be 1 or more.
Result<std::uint64_t> parse_bytes(std::string_view text);

// Parses "1%" or "0.01" to a share; must be 0 to 1.
Result<double> parse_share(std::string_view text);

}  // namespace leeway::lab
