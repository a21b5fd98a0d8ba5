// I17: a rank is told correctly whether its contribution was used (WIRE 3.9), and each owner is
// given the weight that was meant for it.
//
// PeerReport::missed says that the owner used nothing: then no packet may have reached the owner in
// time. With confirm_use the opposite is told, too. An owner that is not said to have missed
// everything had some packet, unless the owner left, died or failed, or the deadline came.
#pragma once

#include "checker/check.h"
#include "checker/ledger_book.h"
#include "endpoint/endpoints.h"

namespace leeway::sim {

class UseCheck {
 public:
  UseCheck(Check& check, LedgerBook& book) : check_(check), book_(book) {}

  // Call it when the rank's call is over, and its ledger still open.
  void on_done(Instant now, Rank rank, const CallLedger& call, const CallResult& result,
               bool confirmed);

 private:
  void check_weights(Instant now, Rank rank, const CallLedger& call);

  Check& check_;
  LedgerBook& book_;
};

}  // namespace leeway::sim
