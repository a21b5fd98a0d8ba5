// I3: the report of a call agrees with what the network handed to its rank.
//
// For every sender:
//   arrived + duplicate + late = copies that came between the opening of the call and its return;
//   arrived = the different packets among them if the engine called none late; otherwise those that
//     it may have called late (LedgerBook) can be missing;
//   repaired, loss, loss_first_pass, elements_missing and complete follow from these.
// A half may settle with packets missing only for a reason: its deadline, a sender that has left,
// or a delivery class that allows it once the sender's pass has ended. In the last case, on a
// network that keeps the order, only packets that the network lost may be missing.
//
// A call that never opened must have failed with an empty report. Either its rank had been told
// that it was given up, or the rank left while the call waited behind others.
#pragma once

#include "checker/check.h"
#include "checker/ledger_book.h"
#include "endpoint/endpoints.h"

namespace leeway::sim {

class ReportCheck {
 public:
  // `ordered`: packets of a pair never overtake each other, and the observer is told of every loss.
  ReportCheck(Check& check, LedgerBook& book, bool ordered)
      : check_(check), book_(book), ordered_(ordered) {}

  // Call it when datagrams from `from` to `to` were damaged or refused. The checker can then no
  // longer count this pair's missing packets.
  void on_damaged(Rank from, Rank to);

  void on_done(Instant now, Rank rank, const CallLedger& call, const CallResult& result);

 private:
  void take_back_unread(Rank rank, const CallLedger& call, const CallResult& result);
  void check_unopened(Instant now, Rank rank, const CallLedger& call, const CallResult& result);
  void check_row(Instant now, Rank rank, const CallLedger& call, const PeerReport& row);
  void check_sums(Instant now, Rank rank, const CallLedger& call, const CallResult& result);
  void check_missing(Instant now, Rank rank, const CallLedger& call, const CallResult& result);
  void check_contributions(Instant now, Rank rank, const CallLedger& call,
                           const CallResult& result);
  void check_reason(Instant now, Rank rank, const CallLedger& call, wire::FlowKind kind, Rank from,
                    const CallResult& result);

  Check& check_;
  LedgerBook& book_;
  bool ordered_;
  std::vector<bool> damaged_;  // by from * size + to
};

}  // namespace leeway::sim
