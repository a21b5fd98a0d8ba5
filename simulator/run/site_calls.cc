#include "run/site_calls.h"

#include <string>
#include <utility>

#include "base/contracts.h"
#include "base/philox.h"

namespace leeway::sim {
namespace {

using collective::HierarchicalCall;
using collective::SiteMap;
using collective::Tier;

// Stream tag of the keyed hash (base/philox.h), for epochs.
constexpr std::uint32_t kSiteEpochStream = 0x49000000;

constexpr std::array<const char*, collective::kTiers> kTierNames = {"reduce", "across", "spread"};

}  // namespace

SiteCalls::SiteCalls(const scenario::Scenario& scenario, std::uint64_t seed, Place place)
    : PartedCalls(place, scenario.ranks()), scenario_(scenario), seed_(seed) {
  const std::uint32_t per_site = scenario.operation().site_ranks();
  std::vector<std::uint64_t> sites;
  for (std::uint32_t rank = 0; rank < scenario.ranks(); ++rank)
    sites.push_back(1 + rank / per_site);
  for (Rank rank = 0; rank < sites.size(); ++rank) {
    auto map = SiteMap::of(sites, rank);
    LEEWAY_ASSERT(map.has_value());
    RankState& state = ranks_.emplace_back(RankState{.map = std::move(*map)});
    for (int tier = 0; tier < collective::kTiers; ++tier)
      state.groups[static_cast<std::size_t>(tier)] = &group_of(state.map, static_cast<Tier>(tier));
  }
}

CallGroup& SiteCalls::group_of(const SiteMap& map, Tier tier) {
  const bool across = tier == Tier::across;
  const int number = across ? map.place() : map.site();
  const std::string name =
      std::string(kTierNames[static_cast<std::size_t>(tier)]) + "[" + std::to_string(number) + "]";
  for (const auto& group : groups_) {
    if (group->name() == name) return *group;
  }
  groups_.push_back(std::make_unique<CallGroup>(CallGroup::Setup{
      .scenario = scenario_,
      .seed = seed_,
      .core = place_.core,
      .watchers = place_.watchers,
      .name = name,
      .epoch = epoch_from(keyed_hash(seed_, static_cast<std::uint32_t>(tier), kSiteEpochStream,
                                     static_cast<Rank>(number), 0)),
      .processes = across ? map.across() : map.inside(),
      .credit = place_.checkers.credit(),
      .on_done = [this, tier](Instant now, std::uint32_t process, const CallResult& result) {
        on_leg_done(now, process, tier, result);
      }}));
  return *groups_.back();
}

Rank SiteCalls::rank_in(const RankState& state, Tier tier) const {
  return static_cast<Rank>(tier == Tier::across ? state.map.site() : state.map.place());
}

// ---- calls --------------------------------------------------------------------------------------

bool SiteCalls::takes(std::uint32_t rank, const collective::OperationSpec& spec) const {
  return HierarchicalCall::takes(spec, ranks_[rank].map) &&
         collective::validate(spec, static_cast<Rank>(rank), static_cast<int>(ranks_.size())).ok();
}

void SiteCalls::submit(Instant now, std::uint32_t rank, const Call& call,
                       Endpoints::Client& client) {
  RankState& state = ranks_[rank];
  LEEWAY_ASSERT(state.hops == nullptr && takes(rank, *call.spec));
  begin_whole(now, rank, call, client);
  state.hops = std::make_unique<HierarchicalCall>(*call.spec, state.map, now,
                                                  scenario_.operation().site_piece_bytes());
  advance(now, rank);
}

// Begins the next leg of each tier that has none in progress. Legs finish in later events, so no
// callback comes while this loop runs.
void SiteCalls::advance(Instant now, std::uint32_t rank) {
  RankState& state = ranks_[rank];
  for (int tier = 0; tier < collective::kTiers; ++tier) {
    if (state.under_way[static_cast<std::size_t>(tier)].leg != nullptr) continue;
    Leg* const leg = state.hops->next(static_cast<Tier>(tier), now);
    if (leg != nullptr) begin(now, rank, *leg);
  }
}

void SiteCalls::begin(Instant now, std::uint32_t rank, Leg& leg) {
  RankState& state = ranks_[rank];
  const auto tier = static_cast<std::size_t>(leg.tier);
  UnderWay& under_way = state.under_way[tier];
  CallGroup& group = *state.groups[tier];
  under_way.leg = &leg;
  const Call call = part_of(open(rank).call, leg.spec, group.size(), under_way.lengths);
  place_.core.submit(now, group.communicator(), rank_in(state, leg.tier), call, group);
}

void SiteCalls::on_leg_done(Instant now, std::uint32_t rank, Tier tier, const CallResult& result) {
  RankState& state = ranks_[rank];
  const Leg* const leg =
      std::exchange(state.under_way[static_cast<std::size_t>(tier)].leg, nullptr);
  state.hops->on_done(*leg, *result.request, now);
  if (state.hops->done()) return finish_call(now, rank);
  advance(now, rank);
}

void SiteCalls::finish_call(Instant now, std::uint32_t rank) {
  const auto hops = std::move(ranks_[rank].hops);
  collective::Request outcome;
  hops->finish(outcome, now);
  end_whole(now, rank, outcome);
}

}  // namespace leeway::sim
