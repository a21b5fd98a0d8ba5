// Which of a host's addresses answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace leeway::nccl {

// Of several "host:port", the first that takes a TCP connection. Blocks for three seconds at most.
std::optional<std::string> find_reachable(const std::vector<std::string>& places);

// The same, or the first of all where none does. Does not look where there is only one.
std::string first_reachable(const std::vector<std::string>& places);

}  // namespace leeway::nccl
