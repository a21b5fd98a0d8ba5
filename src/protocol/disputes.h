// Collectives about which ranks disagreed, as they were meant here. Reports go on listing them
// (WIRE 3.5): a rank that opens one only now must hear of the disagreement, and not take the others
// to have left.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/limits.h"
#include "wire/packet.h"

namespace leeway::protocol {

class Disputes {
 public:
  // `pair_sends`, `pair_receives`: by rank, where ranks compare in pairs; else empty.
  void add(std::uint32_t round, const wire::OperationTag& tag,
           std::span<const std::uint64_t> pair_sends = {},
           std::span<const std::uint64_t> pair_receives = {}) {
    Dispute& dispute = latest_[count_++ % latest_.size()];
    dispute.entry = {.round = round, .reduce_settled = true, .spread_settled = true, .tag = tag};
    dispute.pair_sends.assign(pair_sends.begin(), pair_sends.end());
    dispute.pair_receives.assign(pair_receives.begin(), pair_receives.end());
  }

  // Adds what is recent and not listed yet to a report to `peer`, where there is room; collectives
  // below `opened_below` have been opened.
  void list(Rank peer, std::uint32_t opened_below, wire::Report& report) const {
    const std::size_t kept = std::min<std::size_t>(count_, latest_.size());
    for (const Dispute& dispute : std::span(latest_).first(kept)) {
      wire::OpenRound entry = dispute.entry;
      if (!dispute.pair_sends.empty())
        tell_pair(dispute.pair_sends[peer], dispute.pair_receives[peer], entry.tag);
      const auto listed = std::span(report.open).first(report.open_count);
      const bool open_still =
          std::any_of(listed.begin(), listed.end(), [&](const wire::OpenRound& other) {
            return !other.point_to_point && other.round == entry.round;
          });
      const bool recent = opened_below - entry.round <= std::uint32_t{limits::kOpenRoundsMax};
      if (!open_still && recent && report.open_count < report.open.size())
        report.open[report.open_count++] = entry;
    }
  }

 private:
  struct Dispute {
    wire::OpenRound entry;
    std::vector<std::uint64_t> pair_sends;
    std::vector<std::uint64_t> pair_receives;
  };
  std::array<Dispute, 4> latest_{};  // a ring
  std::uint32_t count_ = 0;          // ever
};

}  // namespace leeway::protocol
