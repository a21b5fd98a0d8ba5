// I17: a rank is told correctly whether an owner used its contribution (WIRE 3.9), and each owner
// gets the weight that was meant for it.
//
// PeerReport::missed says that the owner used nothing, so no packet may have reached the owner in
// time. With confirm_use a report without `missed` is a promise, too: the owner got a packet,
// unless it left, died or failed, or the deadline came.
#pragma once

#include "checker/check.h"
#include "checker/ledger_book.h"
#include "endpoint/endpoints.h"

namespace leeway::sim {

class UseCheck {
 public:
  UseCheck(Check& check, LedgerBook& book) : check_(check), book_(book) {}

  // Call it when the rank's call is over, before its ledger is closed.
  void on_done(Instant now, Rank rank, const CallLedger& call, const CallResult& result,
               bool confirmed);

 private:
  void check_weights(Instant now, Rank rank, const CallLedger& call);

  Check& check_;
  LedgerBook& book_;
};

}  // namespace leeway::sim
