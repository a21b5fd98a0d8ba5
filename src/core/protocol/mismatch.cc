#include "protocol/mismatch.h"

#include <array>
#include <cstdio>

#include "protocol/endpoint_state.h"

namespace leeway::protocol {

Status too_long(const Round& round, Rank from, std::uint64_t sent, Rank to, std::uint64_t room) {
  return Status::error(
      StatusCode::kMismatch,
      "%s #%u: rank %u sends %llu elements, and the receive of rank %u has room for %llu",
      round.plan->name, round.number_said(), from, static_cast<unsigned long long>(sent), to,
      static_cast<unsigned long long>(room));
}

Status unequal_pair(const Round& round, Rank from, std::uint64_t sent, Rank to,
                    std::uint64_t expected) {
  return Status::error(
      StatusCode::kMismatch, "%s #%u: rank %u sends rank %u %llu elements, rank %u expects %llu",
      round.plan->name, round.number_said(), from, to, static_cast<unsigned long long>(sent), to,
      static_cast<unsigned long long>(expected));
}

Status disagree(const EndpointConfig& config, const Round& round, Rank peer,
                const wire::OperationTag& theirs) {
  return Status::error(StatusCode::kMismatch,
                       "%s #%u: ranks disagree: rank %u has %s; rank %u has %s", round.plan->name,
                       round.number_said(), config.own_name(), describe(round.plan->tag).data(),
                       config.known_as(peer), describe(theirs).data());
}

bool is_refusal(StatusCode code) {
  return code == StatusCode::kInvalidArgument || code == StatusCode::kUnsupported ||
         code == StatusCode::kResourceExhausted;
}

bool makes_another_call(StatusCode code) {
  return code == StatusCode::kMismatch || is_refusal(code);
}

Status failed_there(const EndpointConfig& config, const Round& round, Rank peer, StatusCode code,
                    Rank about) {
  const Rank us = config.own_name();
  const Rank them = config.known_as(peer);
  std::array<char, 24> third{"another rank"};
  if (about != kNoRank)
    std::snprintf(third.data(), third.size(), "rank %u", unsigned{config.known_as(about)});
  const auto text = [&](StatusCode as, const char* format) {
    std::array<char, 160> why{};
    std::snprintf(why.data(), why.size(), format, third.data());
    return Status::error(as, "rank %u: %s #%u: rank %u %s", us, round.plan->name,
                         round.number_said(), them, why.data());
  };
  switch (code) {
    case StatusCode::kMismatch:
      return text(code, "found that its call and that of %s differ");
    case StatusCode::kInvalidArgument:
    case StatusCode::kUnsupported:
    case StatusCode::kResourceExhausted:
      return Status::error(StatusCode::kMismatch,
                           "rank %u: %s #%u: rank %u refused its own call (%s), and its error "
                           "says why",
                           us, round.plan->name, round.number_said(), them, to_string(code).data());
    case StatusCode::kDeadlineExceeded:
      return text(code, about == kNoRank ? "gave it up at its own deadline, and its error says why"
                                         : "gave it up at its own deadline, waiting for %s");
    case StatusCode::kPeerLost:
      if (about == config.self) return text(code, kGaveUsUp);
      return text(code, about == kNoRank
                            ? "gave it up because a rank is gone, which its error names"
                            : "gave it up because %s is gone");
    default:
      return text(StatusCode::kMismatch, "could not go on with it, and its error says why");
  }
}

}  // namespace leeway::protocol
