// Collectives about which ranks disagreed, as they were meant here. Reports go on listing them
// (WIRE 3.5): a rank that opens one only now must hear of the disagreement, and not take the others
// to have left.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/limits.h"
#include "wire/packet.h"

namespace leeway::protocol {

class Disputes {
 public:
  void add(std::uint32_t round, const wire::OperationTag& tag) {
    latest_[count_++ % latest_.size()] = {
        .round = round, .reduce_settled = true, .spread_settled = true, .tag = tag};
  }

  // Adds what is recent and not listed yet, where there is room; collectives below `opened_below`
  // have been opened.
  void list(std::uint32_t opened_below, wire::Report& report) const {
    const std::size_t kept = std::min<std::size_t>(count_, latest_.size());
    for (const wire::OpenRound& entry : std::span(latest_).first(kept)) {
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
  std::array<wire::OpenRound, 4> latest_{};  // a ring
  std::uint32_t count_ = 0;                  // ever
};

}  // namespace leeway::protocol
