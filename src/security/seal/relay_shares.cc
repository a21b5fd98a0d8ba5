#include "seal/relay_shares.h"

#include <algorithm>

namespace leeway::seal {

void RelayShares::on_sent(Rank relay, std::uint64_t datagrams) {
  if (relay >= shares_.size()) shares_.resize(relay + std::size_t{1});
  shares_[relay].sent += datagrams;
}

void RelayShares::on_message(Rank relay, const ShareMessage& message) {
  const bool known = relay < shares_.size() && shares_[relay].sent > 0;
  const std::uint64_t refused = known ? shares_[relay].refused : 0;
  const auto more = message.refused - static_cast<std::uint32_t>(refused);
  if (!known || more > shares_[relay].sent - refused) {
    ++words_refused_;
    return;
  }
  Share& share = shares_[relay];
  share.refused += more;
  share.bytes_per_second = std::max(message.bytes_per_second, kLeast);
  std::erase_if(changes_, [&](const Change& earlier) { return earlier.relay == relay; });
  changes_.push_back({relay, share.bytes_per_second});
}

std::optional<RelayShares::Change> RelayShares::poll() {
  if (changes_.empty()) return std::nullopt;
  const Change change = changes_.back();
  changes_.pop_back();
  return change;
}

std::uint64_t RelayShares::refused() const {
  std::uint64_t sum = 0;
  for (const Share& share : shares_) sum += share.refused;
  return sum;
}

}  // namespace leeway::seal
