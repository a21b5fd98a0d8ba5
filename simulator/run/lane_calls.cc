#include "run/lane_calls.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/contracts.h"
#include "base/philox.h"

namespace leeway::sim {
namespace {

using collective::SlicedCall;

// Stream tag of the keyed hash (base/philox.h). In the library all lanes share an epoch. Here each
// lane has its own epoch, so that checkers can tell packets of different lanes apart.
constexpr std::uint32_t kLaneEpochStream = 0x4A000000;

}  // namespace

LaneCalls::LaneCalls(const scenario::Scenario& scenario, std::uint64_t seed, Place place)
    : PartedCalls(place, scenario.ranks()), scenario_(scenario), ranks_(scenario.ranks()) {
  std::vector<Rank> all(scenario.ranks());
  std::iota(all.begin(), all.end(), Rank{0});
  for (std::uint32_t lane = 1; lane < scenario.operation().lanes(); ++lane) {
    credits_.push_back(place.checkers.credit_of_lane());
    groups_.push_back(std::make_unique<CallGroup>(CallGroup::Setup{
        .scenario = scenario,
        .seed = seed,
        .core = place.core,
        .watchers = place.watchers,
        .name = "lane[" + std::to_string(lane) + "]",
        .epoch = epoch_from(keyed_hash(seed, lane, kLaneEpochStream, 0, 0)),
        .lane = lane,
        .processes = all,
        .credit = credits_.back().get(),
        .on_done = [this, lane](Instant now, std::uint32_t rank, const CallResult& result) {
          on_slice_done(now, rank, lane, result);
        }}));
  }
}

// ---- calls --------------------------------------------------------------------------------------

std::size_t LaneCalls::slices_of(const collective::OperationSpec& spec) const {
  return SlicedCall::slices(spec, static_cast<int>(ranks_.size()), groups_.size() + 1,
                            scenario_.operation().slice_bytes());
}

bool LaneCalls::takes(std::uint32_t rank, const collective::OperationSpec& spec) const {
  return slices_of(spec) > 1 &&
         collective::validate(spec, static_cast<Rank>(rank), static_cast<int>(ranks_.size())).ok();
}

void LaneCalls::submit(Instant now, std::uint32_t rank, const Call& call,
                       Endpoints::Client& client) {
  RankState& state = ranks_[rank];
  LEEWAY_ASSERT(!state.sliced && takes(rank, *call.spec));
  begin_whole(now, rank, call, client);
  state.sliced.emplace(*call.spec, static_cast<int>(ranks_.size()), slices_of(*call.spec));
  state.left = state.sliced->size();
  state.slices.assign(state.left, {});
  // Slices finish in later events, so no callback comes while this loop runs.
  for (std::size_t lane = 0; lane < state.sliced->size(); ++lane) {
    const Call slice =
        part_of(call, state.sliced->slice(lane), ranks_.size(), state.slices[lane].lengths);
    if (lane == 0) {
      place_.core.submit(now, rank, slice, *this);
    } else {
      place_.core.submit(now, groups_[lane - 1]->communicator(), rank, slice, *groups_[lane - 1]);
    }
  }
}

void LaneCalls::on_slice_done(Instant now, std::uint32_t rank, std::size_t lane,
                              const CallResult& result) {
  RankState& state = ranks_[rank];
  state.slices[lane].outcome = *result.request;
  if (--state.left == 0) finish_call(now, rank);
}

void LaneCalls::finish_call(Instant now, std::uint32_t rank) {
  RankState& state = ranks_[rank];
  std::vector<const collective::Request*> parts;
  for (const Slice& slice : state.slices) parts.push_back(&slice.outcome);
  collective::Request outcome;
  outcome.submitted = open(rank).submitted;
  const auto failed =
      std::find_if(parts.begin(), parts.end(), [](const auto* part) { return !part->status.ok(); });
  if (failed == parts.end()) {
    state.sliced->finish(parts, outcome, now);
  } else {
    outcome.finish((*failed)->status, now);
  }
  state.sliced.reset();
  end_whole(now, rank, outcome);
}

}  // namespace leeway::sim
