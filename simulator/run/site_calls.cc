#include "run/site_calls.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/contracts.h"
#include "base/philox.h"

namespace leeway::sim {
namespace {

using collective::HierarchicalCall;
using collective::OperationKind;
using collective::SiteMap;
using collective::Tier;

// Stream tag of the keyed hash (base/philox.h): epochs.
constexpr std::uint32_t kSiteEpochStream = 0x49000000;

constexpr std::array<const char*, collective::kTiers> kTierNames = {"reduce", "across", "spread"};

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

// As the checkers are told of uneven blocks (Call::lengths): every rank's block is the same for
// all.
std::vector<std::size_t> lengths_of(const collective::OperationSpec& spec, std::size_t ranks) {
  if (!spec.uneven()) return {};
  const collective::BlockList& blocks =
      spec.kind == OperationKind::reduce_scatter ? spec.input_blocks : spec.output_blocks;
  std::vector<std::size_t> lengths(ranks * ranks);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    lengths[i] = blocks.count(static_cast<Rank>(i / ranks));
  return lengths;
}

// Of a call that is over.
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

// A communicator of a tier: the ranks of a site, or counterparts.
class SiteCalls::Group final : public Endpoints::Client {
 public:
  Group(SiteCalls& owner, Tier tier, int number, std::vector<Rank> processes)
      : owner_(owner), tier_(tier), number_(number), processes_(std::move(processes)) {
    const scenario::Scenario& whole = owner.scenario_;
    scenario_.set_ranks(static_cast<std::uint32_t>(processes_.size()));
    *scenario_.mutable_operation() = whole.operation();
    scenario_.mutable_operation()->clear_site_ranks();
    *scenario_.mutable_checkers() = whole.checkers();
    // The whole call's error is looked at; of legs nobody knows the loss-free result.
    scenario_.mutable_checkers()->add_skip("i10");
    const std::uint32_t epoch = std::max<std::uint32_t>(
        2, static_cast<std::uint32_t>(keyed_hash(owner.seed_, static_cast<std::uint32_t>(tier),
                                                 kSiteEpochStream, static_cast<Rank>(number), 0)));
    CheckerSetup setup{
        .processes = processes_, .epoch = epoch, .credit = owner.place_.checkers.credit()};
    setup.engines.resize(processes_.size());
    setup.network = &whole;
    checkers_ = std::make_unique<Checkers>(scenario_, owner.seed_, std::move(setup));
    communicator_ = owner.place_.core.add(epoch, processes_, checkers_.get());
    owner.place_.watchers.add(checkers_->packets());
    for (std::uint32_t rank = 0; rank < processes_.size(); ++rank)
      (void)owner.place_.core.open(Instant{0}, communicator_, rank);
  }

  bool is(Tier tier, int number) const { return tier_ == tier && number_ == number; }
  std::size_t size() const { return processes_.size(); }
  std::uint32_t communicator() const { return communicator_; }
  Checkers& checkers() { return *checkers_; }
  std::string name() const {
    return std::string(kTierNames[static_cast<std::size_t>(tier_)]) + "[" +
           std::to_string(number_) + "]";
  }

  void on_done(Instant now, std::uint32_t rank, const CallResult& result) override {
    owner_.on_leg_done(now, processes_[rank], tier_, result);
  }

 private:
  SiteCalls& owner_;
  const Tier tier_;
  const int number_;
  scenario::Scenario scenario_;  // as if it were alone
  std::vector<Rank> processes_;  // by rank
  std::uint32_t communicator_ = 0;
  std::unique_ptr<Checkers> checkers_;
};

SiteCalls::SiteCalls(const scenario::Scenario& scenario, std::uint64_t seed, Place place)
    : scenario_(scenario), seed_(seed), place_(place) {
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

SiteCalls::~SiteCalls() = default;

SiteCalls::Group& SiteCalls::group_of(const SiteMap& map, Tier tier) {
  const bool across = tier == Tier::across;
  const int number = across ? map.place() : map.site();
  for (const auto& group : groups_) {
    if (group->is(tier, number)) return *group;
  }
  groups_.push_back(
      std::make_unique<Group>(*this, tier, number, across ? map.across() : map.inside()));
  return *groups_.back();
}

Rank SiteCalls::rank_in(const RankState& state, Tier tier) const {
  return static_cast<Rank>(tier == Tier::across ? state.map.site() : state.map.place());
}

// ---- calls --------------------------------------------------------------------------------------

bool SiteCalls::takes(std::uint32_t rank, const collective::OperationSpec& spec) const {
  return HierarchicalCall::takes(spec) && HierarchicalCall::check(spec).ok() &&
         collective::validate(spec, static_cast<Rank>(rank), static_cast<int>(ranks_.size())).ok();
}

void SiteCalls::submit(Instant now, std::uint32_t rank, const Call& call,
                       Endpoints::Client& client) {
  RankState& state = ranks_[rank];
  LEEWAY_ASSERT(state.hops == nullptr && takes(rank, *call.spec));
  state.call = call;
  state.client = &client;
  state.submitted = now;
  place_.checkers.on_submit_by_sites(now, rank, call);
  state.hops = std::make_unique<HierarchicalCall>(*call.spec, state.map, now,
                                                  scenario_.operation().site_piece_bytes());
  advance(now, rank);
}

// Legs are over later, by an event of the endpoints: none calls back from here.
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
  Group& group = *state.groups[tier];
  under_way.leg = &leg;
  under_way.lengths = lengths_of(leg.spec, group.size());
  const Call call{.kind = kind_of(leg.spec.kind),
                  .round = state.call.round,
                  .bytes = std::max(leg.spec.input.bytes(), leg.spec.output.bytes()),
                  .spec = &leg.spec,
                  .lengths = under_way.lengths};
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

// The client may submit the next call.
void SiteCalls::finish_call(Instant now, std::uint32_t rank) {
  RankState& state = ranks_[rank];
  const auto hops = std::move(state.hops);
  collective::Request outcome;
  hops->finish(outcome, now);
  const CallResult result = result_of(outcome, state.submitted, now);
  place_.checkers.on_done_by_sites(now, rank, state.call, result);
  std::exchange(state.client, nullptr)->on_done(now, rank, result);
}

// ---- faults, and the outcome --------------------------------------------------------------------

void SiteCalls::on_pause(Instant now, std::uint32_t rank) {
  const RankState& state = ranks_[rank];
  for (int tier = 0; tier < collective::kTiers; ++tier)
    state.groups[static_cast<std::size_t>(tier)]->checkers().on_pause(
        now, rank_in(state, static_cast<Tier>(tier)));
}

void SiteCalls::on_resume(Instant now, std::uint32_t rank) {
  const RankState& state = ranks_[rank];
  for (int tier = 0; tier < collective::kTiers; ++tier)
    state.groups[static_cast<std::size_t>(tier)]->checkers().on_resume(
        now, rank_in(state, static_cast<Tier>(tier)));
}

void SiteCalls::on_death(std::uint32_t rank) {
  const RankState& state = ranks_[rank];
  for (int tier = 0; tier < collective::kTiers; ++tier)
    state.groups[static_cast<std::size_t>(tier)]->checkers().on_death(
        rank_in(state, static_cast<Tier>(tier)));
}

void SiteCalls::on_faults_over(std::uint32_t first_round) {
  for (const auto& group : groups_) group->checkers().on_faults_over(first_round);
}

void SiteCalls::finish(Instant now, const Network& network, std::vector<CheckRecord>& into) {
  for (const auto& group : groups_)
    merge(into, group->checkers().finish(now, network, false), group->name());
}

}  // namespace leeway::sim
