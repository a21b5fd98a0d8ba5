// Sums up the outcomes of a scenario's calls for its facts. Only one thread may use an object.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "integration/scenario.h"

namespace leeway::integration {

class Tally {
 public:
  void add(const std::string& what, const Result<CollectiveReport>& outcome, std::uint64_t wrong) {
    ++calls_;
    wrong_ += wrong;
    if (!outcome.ok()) return note(what + ": " + std::string(outcome.status().text()));
    if (wrong > 0) note(what + ": " + std::to_string(wrong) + " wrong elements");
    longest_ = std::max(longest_, outcome->times.total);
    deadline_cuts_ += outcome->deadline_cut;
    for (const PeerReport& peer : outcome->peers) {
      expected_ += peer.expected;
      arrived_ += peer.arrived;
      repaired_ += peer.repaired;
    }
  }

  Facts facts() const {
    const auto lost = [this](std::uint64_t arrived) {
      return expected_ == 0 ? 0.0
                            : 1.0 - static_cast<double>(arrived) / static_cast<double>(expected_);
    };
    return {{"calls", calls_},        {"wrong", wrong_},
            {"problems", problems_},  {"deadline_cuts", deadline_cuts_},
            {"packets", expected_},   {"loss_first_pass", lost(arrived_ - repaired_)},
            {"loss", lost(arrived_)}, {"longest_ms", milliseconds(longest_)}};
  }

 private:
  void note(const std::string& problem) {
    constexpr std::size_t kProblemsMax = 5;
    if (problems_.size() < kProblemsMax) problems_.push_back(problem);
  }

  std::uint64_t calls_ = 0;
  std::uint64_t wrong_ = 0;
  std::uint64_t deadline_cuts_ = 0;
  std::uint64_t expected_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t repaired_ = 0;
  Duration longest_{0};
  Facts problems_ = Facts::array();
};

}  // namespace leeway::integration
