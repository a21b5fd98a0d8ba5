// Ranks of several sites that make calls by sites, in virtual time.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "collective/hierarchical_call.h"
#include "node_processes.h"

namespace leeway::collective {

// Rank i is of site i / `per_site`.
class SiteRanks {
 public:
  SiteRanks(int sites, int per_site) : processes_(sites * per_site) {
    processes_.window = 1 << 10;
    processes_.named_by_slots = true;
    std::vector<std::uint64_t> names;
    for (int rank = 0; rank < sites * per_site; ++rank)
      names.push_back(static_cast<std::uint64_t>(1 + rank / per_site));
    for (Rank rank = 0; rank < names.size(); ++rank) {
      maps_.push_back(*SiteMap::of(names, rank));
      const SiteMap& map = maps_.back();
      const auto site = static_cast<std::uint32_t>(map.site());
      const auto place = static_cast<std::uint32_t>(map.place());
      members_.push_back({join(kEpochs + site, map.inside(), place),
                          join(2 * kEpochs + place, map.across(), site),
                          join(3 * kEpochs + site, map.inside(), place)});
    }
  }

  int size() const { return static_cast<int>(maps_.size()); }
  Processes& processes() { return processes_; }
  const SiteMap& map(Rank rank) const { return maps_[rank]; }
  // Returns the tier of the communicator that sent the datagram.
  static Tier tier_of(ByteSpan datagram) {
    wire::Prefix prefix;
    (void)wire::decode_prefix(datagram, nullptr, prefix);
    return static_cast<Tier>(prefix.epoch / kEpochs - 1);
  }

  // One call on one rank.
  struct Call {
    std::unique_ptr<HierarchicalCall> hops;
    std::vector<std::pair<HierarchicalCall::Leg*, std::unique_ptr<Request>>> legs;  // in progress
    Request outcome;
    std::vector<std::unique_ptr<Request>> over;
  };
  std::vector<std::unique_ptr<Call>> start(const std::function<OperationSpec(Rank)>& make,
                                           std::size_t piece_bytes = 0, std::uint64_t place = 0) {
    std::vector<std::unique_ptr<Call>> calls;
    for (Rank rank = 0; rank < size(); ++rank) {
      auto call = std::make_unique<Call>();
      call->hops = std::make_unique<HierarchicalCall>(make(rank), maps_[rank], processes_.now(),
                                                      piece_bytes, place);
      calls.push_back(std::move(call));
    }
    return calls;
  }
  // Returns true if all calls get done, except those of ranks that are stopped.
  bool run(std::vector<std::unique_ptr<Call>>& calls, Rank stopped = kNoRank) {
    return processes_.run_until(
        [&] {
          bool done = true;
          for (Rank rank = 0; rank < size(); ++rank) {
            if (rank != stopped) done &= advance(rank, *calls[rank]);
          }
          return done;
        },
        std::chrono::seconds(30));
  }

 private:
  static constexpr std::uint32_t kEpochs = 100;  // epochs per tier

  Member* join(std::uint32_t epoch, const std::vector<Rank>& slots, std::uint32_t rank) {
    return &processes_.join(epoch, slots, static_cast<Rank>(rank));
  }
  bool advance(Rank rank, Call& call) {
    if (call.outcome.done) return true;
    for (bool moved = true; std::exchange(moved, false);) {
      for (auto& [leg, request] : call.legs) {
        if (request == nullptr || !request->done) continue;
        call.hops->on_done(*leg, *request, processes_.now());
        call.over.push_back(std::move(request));
        moved = true;
      }
      for (int tier = 0; tier < kTiers; ++tier) {
        while (auto* const leg = call.hops->next(static_cast<Tier>(tier), processes_.now())) {
          auto request = std::make_unique<Request>();
          request->spec = leg->spec;
          Member& member = *members_[rank][static_cast<std::size_t>(tier)];
          member.engine().submit(processes_.now(), *request);
          processes_[rank].touch(member);
          call.legs.emplace_back(leg, std::move(request));
          moved = true;
        }
      }
    }
    if (call.hops->done()) call.hops->finish(call.outcome, processes_.now());
    return call.outcome.done;
  }

  Processes processes_;
  std::vector<SiteMap> maps_;
  std::vector<std::array<Member*, kTiers>> members_;
};

}  // namespace leeway::collective
