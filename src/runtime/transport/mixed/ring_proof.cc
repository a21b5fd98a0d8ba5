#include "transport/mixed/ring_proof.h"

#include <algorithm>

namespace leeway::transport {

void RingProof::on_echo(std::uint64_t nonce) {
  if (nonce == nonce_ && standing_ == Standing::open) standing_ = Standing::proven;
}

std::optional<std::uint64_t> RingProof::echo_due() const {
  const bool due = found_ && claimed_ == found_ && echoed_ != found_;
  return due ? found_ : std::nullopt;
}

bool RingProof::poll_bell(Instant now) {
  if (standing_ != Standing::open || now < bell_at_) return false;
  if (now >= until_) {
    refuse();
    return false;
  }
  bell_at_ = now + every_;
  every_ = std::min(2 * every_, kEveryMax);
  return true;
}

Instant RingProof::next_wake() const {
  return standing_ == Standing::open ? bell_at_ : Instant::infinite_future();
}

}  // namespace leeway::transport
