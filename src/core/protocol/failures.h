// Collectives that failed here, and why. Reports go on listing them for a while (WIRE 3.5), so that
// a rank that waits in such a collective, or opens it later, hears the reason and does not conclude
// that this rank has left.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "leeway/status.h"
#include "wire/packet.h"

namespace leeway::protocol {

class Failures {
 public:
  struct Failure {
    wire::OpenRound entry;     // how reports list it
    std::uint64_t opened = 0;  // collectives that this rank had opened by the time of the failure
    // By rank: the counts of an uneven all_to_all (RoundPlan::pair_sends); else empty.
    std::vector<std::uint64_t> pair_sends;
    std::vector<std::uint64_t> pair_receives;
  };

  // Adds a failure. This rank needs no more packets of the collective, so the entry says that both
  // halves are settled.
  void add(Failure failure) {
    failure.entry.reduce_settled = failure.entry.spread_settled = true;
    latest_[count_++ % latest_.size()] = std::move(failure);
  }

  // Adds recent failures, latest first, to a report to `peer`, unless the collective is listed
  // already. The report may have `entries_max` entries and `room` bytes. `opened`: collectives that
  // this rank has opened by now.
  void list(Rank peer, std::uint64_t opened, std::size_t entries_max, std::size_t room,
            wire::Report& report) const {
    const std::size_t kept = std::min<std::size_t>(count_, latest_.size());
    for (std::size_t ago = 1; ago <= kept; ++ago) {
      const Failure& failure = latest_[(count_ - ago) % latest_.size()];
      const bool recent = opened - failure.opened < std::uint64_t{limits::kOpenCollectivesMax};
      if (!recent || is_listed(report, failure.entry.round)) continue;
      wire::OpenRound entry = failure.entry;
      if (!failure.pair_sends.empty())
        wire::tell_pair(failure.pair_sends[peer], failure.pair_receives[peer], entry.tag);
      if (report.open_count >= entries_max) return;
      if (wire::report_bytes(report) + wire::entry_bytes(entry) > room) return;
      report.open[report.open_count++] = entry;
    }
  }

 private:
  static bool is_listed(const wire::Report& report, std::uint32_t round) {
    const auto listed = report.entries();
    return std::any_of(listed.begin(), listed.end(), [&](const wire::OpenRound& other) {
      return !other.point_to_point && other.round == round;
    });
  }

  std::array<Failure, limits::kOpenCollectivesMax> latest_{};  // a ring
  std::uint32_t count_ = 0;                                    // number of all failures ever
};

// Failures that peers reported of collectives that this rank has not opened yet. They are kept
// because peers may not report them again. This rank may open the collective as a stand-in, which
// sends no data that peers would answer by a report.
class HeardFailures {
 public:
  struct Heard {
    Rank from = kNoRank;  // kNoRank: no failure was heard
    wire::OpenRound entry;
  };

  // Notes a failure that a peer reported. Later reports about the same collective change nothing.
  void hear(Rank from, const wire::OpenRound& entry) {
    for (const Heard& heard : heard_) {
      if (heard.from != kNoRank && heard.entry.round == entry.round) return;
    }
    heard_[next_++ % heard_.size()] = {from, entry};
  }

  // Returns the failure that was heard of this collective, and forgets it. `from` is kNoRank if
  // none was heard.
  Heard take(std::uint32_t round) {
    for (Heard& heard : heard_) {
      if (heard.from != kNoRank && heard.entry.round == round) return std::exchange(heard, {});
    }
    return {};
  }

 private:
  std::array<Heard, limits::kOpenRoundsMax> heard_{};  // a ring
  std::uint32_t next_ = 0;
};

}  // namespace leeway::protocol
