#include "protocol/mismatch.h"

namespace leeway::protocol {

Status too_long(const Round& round, Rank from, std::uint64_t sent, Rank to, std::uint64_t room) {
  return Status::error(
      StatusCode::kMismatch,
      "%s #%u: rank %u sends %llu elements, and the receive of rank %u has room for %llu",
      round.plan->name, round.number, from, static_cast<unsigned long long>(sent), to,
      static_cast<unsigned long long>(room));
}

Status unequal_pair(const Round& round, Rank from, std::uint64_t sent, Rank to,
                    std::uint64_t expected) {
  return Status::error(
      StatusCode::kMismatch, "%s #%u: rank %u sends rank %u %llu elements, rank %u expects %llu",
      round.plan->name, round.number, from, to, static_cast<unsigned long long>(sent), to,
      static_cast<unsigned long long>(expected));
}

}  // namespace leeway::protocol
