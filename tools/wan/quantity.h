// Numbers with units, as a person writes them on the command line. An error quotes the text, and
// gives an example of a valid one.
#pragma once

#include <cstdint>
#include <string_view>

#include "leeway/status.h"

namespace leeway::lab {

// "100Mb", "1.5Gb/s", "500kbit", "2000000": megabits a second; more than 0.
Result<double> parse_rate_mbps(std::string_view text);

// "50ms", "200us", "1.5s": milliseconds; 0 or more.
Result<double> parse_time_ms(std::string_view text);

// "1500", "64K", "1M", "9000B": bytes, K = 1024; 1 or more.
Result<std::uint64_t> parse_bytes(std::string_view text);

// "1%", "0.01": 0 to 1.
Result<double> parse_share(std::string_view text);

}  // namespace leeway::lab
