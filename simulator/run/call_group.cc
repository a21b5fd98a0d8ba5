#include "run/call_group.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"

namespace leeway::sim {
namespace {

using collective::OperationKind;

CallKind kind_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::all_reduce:
      return CallKind::all_reduce;
    case OperationKind::reduce_scatter:
      return CallKind::reduce_scatter;
    default:
      LEEWAY_ASSERT(kind == OperationKind::all_gather);
      return CallKind::all_gather;
  }
}

// Returns the block lengths in the form of Call::lengths. Here a block has the same length for
// every receiver.
std::vector<std::size_t> lengths_of(const collective::OperationSpec& spec, std::size_t ranks) {
  if (!spec.uneven()) return {};
  const collective::BlockList& blocks =
      spec.kind == OperationKind::reduce_scatter ? spec.input_blocks : spec.output_blocks;
  std::vector<std::size_t> lengths(ranks * ranks);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    lengths[i] = blocks.count(static_cast<Rank>(i / ranks));
  return lengths;
}

CallResult result_of(const collective::Request& outcome, Instant submitted, Instant now) {
  CallResult result;
  result.status = outcome.status;
  result.submitted_ns = submitted.ns;
  result.done_ns = now.ns;
  for (const PeerReport& peer : outcome.report.peers) {
    result.expected += peer.expected;
    result.arrived += peer.arrived;
    result.arrived_first += peer.arrived - peer.repaired;
  }
  result.bytes_sent = outcome.report.bytes_sent;
  result.deadline_cut = outcome.report.deadline_cut;
  result.contributors_mean = outcome.report.contributors.mean;
  result.contributors_min = outcome.report.contributors.min;
  result.report = &outcome.report;
  return result;
}

}  // namespace

CallGroup::CallGroup(Setup setup) : setup_(std::move(setup)) {
  scenario_.set_ranks(static_cast<std::uint32_t>(setup_.processes.size()));
  *scenario_.mutable_operation() = setup_.scenario.operation();
  scenario_.mutable_operation()->clear_site_ranks();
  scenario_.mutable_operation()->clear_lanes();
  *scenario_.mutable_checkers() = setup_.scenario.checkers();
  // I10 is checked for the whole call only, because nobody knows the loss-free result of a leg or
  // slice.
  scenario_.mutable_checkers()->add_skip("i10");
  CheckerSetup checked{.processes = setup_.processes,
                       .epoch = setup_.epoch,
                       .credit = setup_.credit,
                       .lane = setup_.lane};
  checked.engines.resize(setup_.processes.size());
  checked.network = &setup_.scenario;
  checkers_ = std::make_unique<Checkers>(scenario_, setup_.seed, std::move(checked));
  communicator_ = setup_.core.add(setup_.epoch, setup_.processes, checkers_.get(), setup_.lane);
  setup_.watchers.add(checkers_->packets());
  for (std::uint32_t rank = 0; rank < setup_.processes.size(); ++rank)
    (void)setup_.core.open(Instant{0}, communicator_, rank);
}

void CallGroup::on_pause(Instant now, std::uint32_t process) {
  const Rank rank = rank_in(setup_.processes, process);
  if (rank != kNoRank) checkers_->on_pause(now, rank);
}

void CallGroup::on_resume(Instant now, std::uint32_t process) {
  const Rank rank = rank_in(setup_.processes, process);
  if (rank != kNoRank) checkers_->on_resume(now, rank);
}

void CallGroup::on_death(std::uint32_t process) {
  const Rank rank = rank_in(setup_.processes, process);
  if (rank != kNoRank) checkers_->on_death(rank);
}

void CallGroup::finish(Instant now, const Network& network, std::vector<CheckRecord>& into) {
  merge(into, checkers_->finish(now, network, false), name());
}

Call part_of(const Call& whole, const collective::OperationSpec& spec, std::size_t ranks,
             std::vector<std::size_t>& lengths) {
  lengths = lengths_of(spec, ranks);
  return {.kind = kind_of(spec.kind),
          .round = whole.round,
          .bytes = std::max(spec.input.bytes(), spec.output.bytes()),
          .spec = &spec,
          .lengths = lengths};
}

void PartedCalls::begin_whole(Instant now, std::uint32_t rank, const Call& call,
                              Endpoints::Client& client) {
  place_.checkers.on_submit_whole(now, rank, call);
  open_[rank] = {call, now, &client};
}

void PartedCalls::end_whole(Instant now, std::uint32_t rank, const collective::Request& outcome) {
  Open& open = open_[rank];
  const CallResult result = result_of(outcome, open.submitted, now);
  place_.checkers.on_done_whole(now, rank, open.call, result);
  std::exchange(open.client, nullptr)->on_done(now, rank, result);
}

Rank rank_in(std::span<const Rank> processes, std::uint32_t process) {
  const auto found = std::find(processes.begin(), processes.end(), process);
  return found == processes.end() ? kNoRank : static_cast<Rank>(found - processes.begin());
}

}  // namespace leeway::sim
