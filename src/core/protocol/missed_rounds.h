// The latest collectives whose reduce half was settled without any packet of one peer. Reports to
// that peer list them (WIRE 3.9).
#pragma once

#include <cstdint>

#include "wire/packet.h"

namespace leeway::protocol {

class MissedRounds {
 public:
  // Adds collective `number`. All collectives below `opened_below` have been opened.
  void note(std::uint32_t number, std::uint32_t opened_below) {
    bits_ = bits(opened_below);
    below_ = opened_below;
    const std::uint32_t ago = opened_below - 1 - number;
    if (ago < wire::kMissedRounds) bits_ |= 1u << ago;
  }
  // Bits for a report: bit k stands for collective opened_below - 1 - k.
  std::uint32_t bits(std::uint32_t opened_below) const {
    const std::uint32_t passed = opened_below - below_;
    return passed < wire::kMissedRounds ? bits_ << passed & ((1u << wire::kMissedRounds) - 1) : 0;
  }

 private:
  std::uint32_t bits_ = 0;   // relative to below_
  std::uint32_t below_ = 0;  // collectives below this number had been opened
};

}  // namespace leeway::protocol
