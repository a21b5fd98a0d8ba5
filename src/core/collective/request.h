// A requested operation, and its outcome once done.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/time.h"
#include "collective/operation_spec.h"
#include "leeway/report.h"
#include "protocol/round.h"

namespace leeway::collective {

class MessageGroup;
struct PayloadAgreement;

// Owned by its submitter, and must stay valid until done.
struct Request {
  OperationSpec spec;
  std::uint64_t sequence = 0;  // on this communicator, from 0
  // Place of a collective among all collectives of the communicator, if these go over several
  // channels. nullopt if the channel counts its own.
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
  // For a message that was posted: its place among those of its pair, tag and direction.
  std::optional<std::uint32_t> message_number;
  MessageGroup* member_of = nullptr;  // the group that this message belongs to

  // Ends the operation, and tells its group if it has one.
  void finish(const Status& outcome, Instant now);
};

// Adds the counts of a peer in a part of a call to the whole call's row.
void add_counts(const PeerReport& part, PeerReport& whole);
// Adds the contributors of a part of a call to those of the parts before it.
void add_contributors(const ContributorStats& part, ContributorStats& whole);
// Sets the report's losses to those that its rows of peers show together.
void set_losses(CollectiveReport& report);

}  // namespace leeway::collective
