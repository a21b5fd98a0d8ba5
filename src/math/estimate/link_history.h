// Delivery rates of the links into one rank, learnt from earlier operations and smoothed over about
// ten of them. Estimators use these rates where the counts of the present operation say nothing.
// Each link has two rates: one for packets, one for whole short flows.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "leeway/types.h"

namespace leeway::estimate {

// Flows of fewer packets than this are short. Chance or a burst may lose all of a short flow. If
// all of a longer flow is lost, the sender is late, or the link is down.
inline constexpr std::uint32_t kShortFlowPackets = 64;

class LinkHistory {
 public:
  explicit LinkHistory(std::size_t ranks) : links_(ranks) {}

  // Fraction of packets that arrived in first passes.
  double delivery_rate(Rank rank) const { return links_[rank].delivery; }

  // Fraction of the short flows of about `packets` packets from which at least one packet arrived
  // in time; 1 for longer flows.
  double heard_rate(Rank rank, std::uint32_t packets) const {
    return is_short(packets) ? links_[rank].heard[length_class(packets)] : 1.0;
  }

  void learn_delivery(Rank rank, double fraction) { smooth(links_[rank].delivery, fraction); }
  void learn_heard(Rank rank, std::uint32_t packets, double heard) {
    if (is_short(packets)) smooth(links_[rank].heard[length_class(packets)], heard);
  }

 private:
  // Lengths 1, 2-3, 4-7, ... 32-63: the chance to lose all of a flow depends on its length.
  static constexpr std::size_t kLengthClasses = std::bit_width(kShortFlowPackets) - 1;
  struct Link {
    Link() { heard.fill(1.0f); }
    double delivery = 1.0;
    std::array<float, kLengthClasses> heard;
  };

  static bool is_short(std::uint32_t packets) { return packets > 0 && packets < kShortFlowPackets; }
  static std::size_t length_class(std::uint32_t packets) {
    return static_cast<std::size_t>(std::bit_width(packets)) - 1;
  }
  template <typename Rate>
  static void smooth(Rate& rate, double newest) {
    constexpr double kGain = 0.1;
    rate += static_cast<Rate>(kGain * (newest - rate));
  }

  std::vector<Link> links_;
};

}  // namespace leeway::estimate
