// Search for an address of a host that answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace leeway::nccl {

// Returns the "host:port" that takes a TCP connection first, or nullopt if none does within three
// seconds. Blocks for that time at most.
std::optional<std::string> find_reachable(const std::vector<std::string>& places);

// Like find_reachable(), but returns the first place of the list if none answers. If the list has
// only one place, returns it without trying it.
std::string first_reachable(const std::vector<std::string>& places);

}  // namespace leeway::nccl
