// Collectives of a communicator whose ranks name sites. They go inside the sites and between them,
// over three communicators of its ranks (see collective/hierarchical_call.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "collective/hierarchical_call.h"
#include "communicator/channels.h"

namespace leeway::internal {

// Returns the number by which the options identify this rank's site; 0 if they name none.
Result<std::uint64_t> site_of(const Options& options);

class SiteRoute final : public Route, public std::enable_shared_from_this<SiteRoute> {
 public:
  // All ranks must make a SiteRoute, or none. `parent` must outlive this object. `far`: links
  // between the sites are long or slow. All ranks must give the same `far`, because it decides
  // which calls go by sites.
  SiteRoute(const collective::SiteMap& sites, Channels& parent, const Options& options, bool far);

  // Takes large calls only: a small one loses more by additional hops than it gains by fewer bytes
  // between sites.
  bool takes(const collective::OperationSpec& spec) const override;
  StandIns hold(const collective::OperationSpec& spec, Channel::Place place) override {
    return {parent_.datagrams().hold(collective::HierarchicalCall::stand_in(spec), place)};
  }
  std::shared_ptr<WorkState> start(const collective::OperationSpec& spec,
                                   Channel::Place place) override;
  void abort(const char* how) override;
  // Leaves the three communicators at once, and adds nothing to `closing`. After that the calls
  // that remain end their stand-ins, for which the parent's datagrams must still be there.
  void close(std::vector<std::function<void()>>& closing) override;
  // Adds the counters of the three communicators. Names begin with "reduce_", "across_" and
  // "spread_".
  void add_counters(Channel::Counters& rows) override;

 private:
  struct Call {
    Call(const collective::OperationSpec& spec, const collective::SiteMap& sites, Instant now,
         std::size_t piece_bytes, std::uint64_t place)
        : work(std::make_shared<WorkState>(spec)), hops(spec, sites, now, piece_bytes, place) {}
    std::shared_ptr<WorkState> work;
    collective::HierarchicalCall hops;
    std::shared_ptr<WorkState> stand_in;  // among the parent's calls
    bool stand_in_over = false;
    std::vector<std::shared_ptr<WorkState>> under_way;  // current legs
  };
  struct Finished {
    std::shared_ptr<Call> call;
    const collective::HierarchicalCall::Leg* leg;
    std::shared_ptr<WorkState> work;
  };
  struct Starting {
    std::shared_ptr<Call> call;
    collective::HierarchicalCall::Leg* leg;
    bool holds = false;  // only its place is held
  };

  void advance();
  std::vector<Starting> take_startable(Instant now);
  void take_done(Instant now, std::vector<std::shared_ptr<Call>>& done);
  void begin(const Starting& starting);
  void on_leg_done(const Finished& one, Instant now);
  void on_stand_in_done(const std::shared_ptr<Call>& call);
  void end_rest(const Call& call);
  std::shared_ptr<WorkState> oldest();
  bool is_advancing_elsewhere();

  const collective::SiteMap sites_;
  Channels& parent_;
  std::array<std::unique_ptr<Channels>, collective::kTiers> tiers_;
  const std::uint32_t generation_;  // count of forks at its creation
  const std::size_t least_bytes_;
  const std::size_t piece_bytes_;

  std::mutex mutex_;
  struct Ending {
    std::shared_ptr<WorkState> work;
    Status status;
    protocol::Blame blame;
  };
  std::vector<Ending> endings_;              // operations to end, without the lock
  std::deque<std::shared_ptr<Call>> calls_;  // in the order in which ranks made them
  std::vector<Finished> finished_;           // legs that are over and not handled yet
  std::thread::id advancing_;                // the thread in advance(); none by default
  std::atomic<bool> closed_{false};          // no leg begins any more
  std::uint64_t next_sequence_ = 0;
};

}  // namespace leeway::internal
