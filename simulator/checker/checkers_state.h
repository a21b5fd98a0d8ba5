// The state of Checkers, shared by the files that implement it: checkers.cc (construction, faults,
// rounds, the end) and checkers_observer.cc (packets and calls).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "checker/agreement.h"
#include "checker/bias.h"
#include "checker/checkers.h"
#include "checker/conservation.h"
#include "checker/coverage.h"
#include "checker/credit.h"
#include "checker/deadlines.h"
#include "checker/departures.h"
#include "checker/ledger_book.h"
#include "checker/message_check.h"
#include "checker/reduction_reference.h"
#include "checker/report_check.h"
#include "checker/site_check.h"
#include "checker/use_check.h"

namespace leeway::sim {

// One number for each invariant. It is also the index of its check.
enum Invariant : std::uint8_t {
  i1,
  i2,
  i3,
  i4,
  i5,
  i6,
  i7,
  i8,
  i9,
  i10,
  i11,
  i12,
  i13,
  i14,
  i15,
  i16,
  i17,
  i18,
  i19,
  i20,
  i21
};

struct Checkers::State final : PacketObserver {
  State(const scenario::Scenario& scenario, std::uint64_t seed, CheckerSetup setup_in);

  void on_packet(Instant now, PacketStep step, LinkId link, const Packet& packet,
                 ByteSpan payload) override;
  bool looks_at_credit(const Packet& packet) const;
  void on_data_packet(Instant now, PacketStep step, const Packet& packet, ByteSpan payload);
  void on_data(Instant now, Rank rank, Rank from, const wire::DataHeader& header, ByteSpan payload);
  bool is_overwritten(Rank owner, Rank from, const CallLedger& call, PacketIndex index) const;
  void check_payload(Instant now, Rank rank, Rank from, const CallLedger& call,
                     const wire::DataHeader& header, ByteSpan payload);
  void check_contents(Instant now, Rank rank, CallLedger& call, const Call& asked,
                      const CallResult& result);
  void check_reduction(Instant now, Rank rank, CallLedger& call, const Call& asked,
                       const CallResult& result);
  void check_contributors(Instant now, Rank rank, const CallLedger& call,
                          const CollectiveReport& report,
                          const ReductionReference::Outcome& outcome);
  void check_liveness(Instant now, Rank rank, const Call& call, const CallResult& result);
  void check_forfeit(Instant now, Rank rank, const Call& call, const CallResult& result);
  void rule_out_contents();
  void learn_deaths(Instant now, Rank rank);
  bool is_first() const { return setup.processes.empty(); }
  Rank process_of(Rank rank) const { return is_first() ? rank : setup.processes[rank]; }
  std::optional<Rank> rank_of(std::uint32_t process) const;
  void on_damaged(std::uint32_t from, std::uint32_t to);
  // The checks of I18.
  void look_for_wrongly_dead(Instant now);
  void look_whether_told(Instant now, Rank rank, const Call& call, const CallResult& result);
  bool was_stopped_long(Instant now, Rank rank, Duration peer_timeout) const;
  void look_for_untold_deaths(Instant now, Rank rank, const protocol::Endpoint& endpoint);

  CheckerSetup setup;
  std::array<Check, 21> checks;
  LedgerBook book;
  Conservation conservation{checks[i1]};
  Deadlines deadlines;
  std::optional<ReportCheck> reports;
  std::optional<ReductionReference> reference;
  std::optional<Agreement> agreement;
  std::optional<Credit> own_credit;  // the first communicator's
  Credit* credit = nullptr;          // own_credit, or the first communicator's
  Departures departures;
  std::optional<SiteCheck> whole;  // if calls go by sites or over lanes
  MessageCheck messages{checks[i16]};
  UseCheck use{checks[i17], book};
  std::vector<bool> crashed;  // by rank: the rank crashed, or left
  struct Stop {
    std::optional<Instant> since;
    Duration longest{0};
  };
  std::vector<Stop> stops;  // by rank
  // By peer and rank: when the peer was found to have given the rank up.
  std::vector<Instant> given_up_from;
  Bias bias;
  CoverageCheck coverage{checks[i21]};
  bool all_reduce = false;
  // True if datagrams may be left at the run's end in endpoints that hold them back, or in sockets
  // of paused ranks.
  bool keeps_datagrams = false;
  std::uint32_t reduced_round = UINT32_MAX;  // the last round of which I10 took a result
  std::uint32_t fault_free_round = UINT32_MAX;
  // Rounds that a group may take to recover once faults are over.
  std::uint32_t recovery_rounds = 0;
  std::vector<std::uint64_t> refusable;  // by rank: datagrams that must be refused
  std::vector<std::uint64_t> strays;     // by process: datagrams that must reach no member
  bool has_lanes = false;
  std::vector<float> values;
  std::vector<std::byte> encoded;
  std::vector<LinkCounters> links;
};

}  // namespace leeway::sim
