// Calls by sites: they go inside the sites and between them, over three communicators of each rank
// (collective/hierarchical_call.h). Over sockets, src/api/communicator/site_route.h makes such
// calls.
//
// Each of these communicators has checkers of its own, which treat a leg as any other call. The
// first communicator's checkers check the whole call. A rank has one call open at a time in each
// communicator, so the legs of a tier follow one another here. In the library they may overlap.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "checker/checkers.h"
#include "collective/hierarchical_call.h"
#include "endpoint/core_endpoints.h"
#include "run/call_group.h"
#include "run/watchers.h"

namespace leeway::sim {

class SiteCalls final : public PartedCalls {
 public:
  // All ranks join their site's communicators. The scenario must be valid and have sites.
  // `scenario` and the parts in `place` must outlive this object.
  SiteCalls(const scenario::Scenario& scenario, std::uint64_t seed, Place place);

  bool takes(std::uint32_t rank, const collective::OperationSpec& spec) const override;
  void submit(Instant now, std::uint32_t rank, const Call& call,
              Endpoints::Client& client) override;

 private:
  using Leg = collective::HierarchicalCall::Leg;

  // A leg in progress.
  struct UnderWay {
    Leg* leg = nullptr;  // null if no leg is in progress
    std::vector<std::size_t> lengths;
  };
  struct RankState {
    collective::SiteMap map;
    std::array<CallGroup*, collective::kTiers> groups{};
    std::array<UnderWay, collective::kTiers> under_way{};
    std::unique_ptr<collective::HierarchicalCall> hops;  // state of the open call
  };

  CallGroup& group_of(const collective::SiteMap& map, collective::Tier tier);
  void advance(Instant now, std::uint32_t rank);
  void begin(Instant now, std::uint32_t rank, Leg& leg);
  void on_leg_done(Instant now, std::uint32_t rank, collective::Tier tier,
                   const CallResult& result);
  void finish_call(Instant now, std::uint32_t rank);
  Rank rank_in(const RankState& state, collective::Tier tier) const;

  const scenario::Scenario& scenario_;
  const std::uint64_t seed_;
  std::vector<RankState> ranks_;
};

}  // namespace leeway::sim
