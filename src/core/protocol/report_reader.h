// Reads reports of peers: how far a peer has come, which datagrams reached it, which operation it
// means, and which operations have failed there.
#pragma once

#include "protocol/failures.h"
#include "protocol/progress.h"
#include "protocol/watched_tags.h"

namespace leeway::protocol {

class ReportReader {
 public:
  ReportReader(EndpointState& state, Settling& settling, Progress& progress, WatchedTags& tags)
      : state_(state), settling_(settling), progress_(progress), tags_(tags) {}

  void on_report(Instant now, Rank from, const wire::Report& report);
  // Call it when a collective opens. Applies the failure that a peer reported of it before, if any.
  void recall(Instant now, Round& round);

 private:
  bool take_opened(Rank from, const wire::Report& report);
  bool waits_in_vain(const wire::Report& report) const;
  void answer_receives(Rank from, const wire::Report& report);
  void hear_failures(Rank from, const wire::Report& report);
  void apply_report(Instant now, Round& round, Rank from, const wire::Report& report);
  void learn_use(Round& round, Rank from, const wire::Report& report);
  void on_entry(Instant now, Round& round, Rank from, const wire::OpenRound& theirs);
  void on_peer_failed(Instant now, Round& round, Rank from, const wire::OpenRound& theirs);
  void note_cut(Round& round, Rank from, Rank by);
  void compare_tags(Instant now, Round& round, Rank from, const wire::OperationTag& theirs);

  EndpointState& state_;
  Settling& settling_;
  Progress& progress_;
  WatchedTags& tags_;
  HeardFailures heard_failures_;
};

}  // namespace leeway::protocol
