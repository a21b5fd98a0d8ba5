// A requested operation, and its outcome when it is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "collective/operation_spec.h"
#include "leeway/report.h"
#include "protocol/round.h"

namespace leeway::collective {

class MessageGroup;
struct PayloadAgreement;

// The submitter owns the request, which must stay valid until `done` is set.
struct Request {
  OperationSpec spec;
  std::uint64_t sequence = 0;  // on this communicator, from 0
  // Place of a collective among all collectives of its communicator, if calls go over several
  // channels. A single channel counts its collectives itself, and this is nullopt.
  std::optional<std::uint64_t> place;
  std::optional<std::uint64_t> automatic_number;  // among the reductions whose codec is automatic
  Instant submitted{0};  // deadlines count from here, also for an operation that had to queue
  bool done = false;
  Status status;
  protocol::Blame blame;  // for a failed collective: the rank that its error names
  CollectiveReport report;
  double units = 0.0;  // units of work in all contributions to our shard that came
  std::shared_ptr<PayloadAgreement> payload;  // set if elements are encoded elsewhere
  std::shared_ptr<MessageGroup> group;        // for an exchange: its messages
  // For a message that was posted: its number among those of the same peer, tag and direction.
  std::optional<std::uint32_t> message_number;
  MessageGroup* member_of = nullptr;  // the group that this message belongs to
  // The submitter sets these two: where it keeps the request, and the list to which finish() adds
  // the request.
  std::size_t index = 0;
  std::vector<Request*>* finished = nullptr;

  // Sets the outcome, and tells the message's group and the submitter's list if there are any.
  void finish(const Status& outcome, Instant now);
};

// Adds a part's counts of a peer to the whole call's row for that peer.
void add_counts(const PeerReport& part, PeerReport& whole);
// Merges the contributors of a part of a call into those of the parts before.
void add_contributors(const ContributorStats& part, ContributorStats& whole);
// Sets the report's losses to the sums over its rows of peers.
void set_losses(CollectiveReport& report);

}  // namespace leeway::collective
