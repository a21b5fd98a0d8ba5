// Splits a collective into hops: inside sites, between counterparts ("across"), and inside again.
// Each hop is a collective of another communicator, so the protocol knows nothing of sites.
//
//   all_reduce       reduce_scatter inside, all_reduce across, all_gather inside
//   reduce_scatter   reduce_scatter inside for each site's blocks, reduce_scatter across
//   all_gather       all_gather across, all_gather inside for each site's blocks
//
// If the call is exact, so is every hop. In a lossy call only the hop across loses data. The hops
// inside repair until nothing is missing, and go on without a rank that is silent. Across, the
// partial sum of a site is one contribution, so estimators count sites as contributors.
//
// HierarchicalCall does no I/O. Its driver submits the legs to their tiers' communicators in the
// order in which next() returns them, which is the same on all ranks. The driver calls on_done()
// for each leg, and finish() once done() is true.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/time.h"
#include "collective/request.h"
#include "collective/site_map.h"

namespace leeway::collective {

// The communicators that carry the hops. `reduce` and `spread` have the ranks of one site; `across`
// has counterparts, one rank of each site. On each communicator all ranks begin operations in the
// same order. The order between different communicators does not matter.
enum class Tier : std::uint8_t { reduce = 0, across, spread };
inline constexpr int kTiers = 3;

class HierarchicalCall {
 public:
  // Returns true if the call may be split into hops. All ranks decide alike. These calls may not:
  // - calls with uneven blocks, without contents, or encoded elsewhere;
  // - late work (confirm_use), whose weights differ by owner;
  // - averages of integers and sums of narrow floats, which must be rounded only once;
  // - calls over more than 255 sites.
  static bool takes(const OperationSpec& spec, const SiteMap& sites);
  // Returns a stand-in for the call in the whole communicator. Through it ranks hear that their
  // calls differ, and hear of each other's failures.
  static OperationSpec stand_in(const OperationSpec& spec);

  // `spec` must have been validated in the whole communicator. `place`: the call's place among all
  // collectives of that communicator. `piece_bytes`: an exact all_reduce of more bytes is cut into
  // pieces of about that length, so that different pieces can move in different tiers at once.
  HierarchicalCall(const OperationSpec& spec, const SiteMap& sites, Instant submitted,
                   std::size_t piece_bytes, std::uint64_t place = 0);
  HierarchicalCall(const HierarchicalCall&) = delete;
  HierarchicalCall& operator=(const HierarchicalCall&) = delete;

  struct Leg {
    Tier tier = Tier::reduce;
    std::size_t piece = 0;
    std::size_t part = 0;  // index in `units_` of a first hop's units of work
    OperationSpec spec;
    std::uint64_t place = 0;  // among all legs of its tier, the same on all ranks
    bool tallies = false;  // carries no elements, but counts of those missing in a site's results
    bool held = false;     // for the driver of the call: a stand-in holds its place
  };
  bool lossy() const { return spec_.options.delivery.kind != Delivery::Kind::exact; }
  // Returns the tier's next leg if it may begin, else null. Sets the leg's deadline, counted from
  // `now`.
  Leg* next(Tier tier, Instant now);
  // Returns true if no leg of the tier is left to begin.
  bool through(Tier tier) const;
  std::span<Leg> not_begun(Tier tier) {
    const auto t = static_cast<std::size_t>(tier);
    return std::span(legs_[t]).subspan(next_[t]);
  }
  // Tells the call that the leg is over, and that nothing reads the leg's memory any more.
  void on_done(const Leg& leg, const Request& request, Instant now);
  // Fails the call. Legs that have not begun then take their places in the order of their
  // communicators, but send nothing.
  void fail(const Status& status, const protocol::Blame& blame = {});
  // Replaces the failure of a call that has failed by a more informative one.
  void explain(const Status& status) { failure_ = status; }
  const Status& failure() const { return failure_; }
  // Returns the rank, in the whole communicator, that caused the failure.
  const protocol::Blame& blame() const { return blame_; }
  bool done() const { return left_ == 0; }
  // Writes the outcome of a call that is done.
  void finish(Request& outcome, Instant now) const;

 private:
  // A part of an all_reduce's tensor that goes through all hops by itself. Other operations have
  // one piece.
  struct Piece {
    std::size_t offset = 0;  // elements
    std::size_t count = 0;
    std::size_t reduces_left = 0;
    bool across_done = false;
  };

  std::size_t per_site() const { return static_cast<std::size_t>(sites_.ranks_per_site()); }
  ConstTensorView input(std::size_t offset, std::size_t count) const;
  TensorView output(std::size_t offset, std::size_t count) const;
  CollectiveOptions reduce_options() const;
  CollectiveOptions across_options() const;
  CollectiveOptions spread_options() const;
  void add(Tier tier, std::size_t piece, OperationSpec spec, std::size_t part = 0);
  void plan_all_reduce(std::size_t piece_bytes);
  void plan_piece(std::size_t piece);
  void plan_reduce_scatter();
  void plan_all_gather();
  void add_tally();
  bool may_begin(const Leg& leg) const;
  Rank known_as(Tier tier, Rank rank) const;
  void weigh(Leg& leg);
  Duration time_left(Tier tier, Instant now) const;
  void merge(const Leg& leg, const Request& request, Instant now);
  void merge_across(const Request& request);
  void add_tallies(CollectiveReport& report) const;
  void put_back_residual() const;
  Status incomplete(const CollectiveReport& report) const;

  const OperationSpec spec_;
  const SiteMap& sites_;
  const Instant submitted_;
  const std::uint64_t place_;
  std::vector<Piece> pieces_;
  std::array<std::vector<Leg>, kTiers> legs_;
  std::array<std::size_t, kTiers> next_{};
  std::size_t left_ = 0;
  // A reduce_scatter's partial sums that go across, by site, and the parts of the caller's residual
  // and control variate for the blocks that go across.
  std::vector<std::byte> partials_;
  std::vector<float> residual_;
  std::vector<float> control_;
  std::vector<double> units_;  // units of work, by piece; for a reduce_scatter by site
  // After a lossy all_reduce, each rank sends these numbers to the other ranks of its site.
  enum Tally : std::size_t {
    kHeard,    // 1
    kMissing,  // elements of the rank's part that the hop across did not bring
    kCut,      // 1 if a deadline was the reason
    kTallies,
  };
  std::array<double, kTallies> tally_here_{1.0, 0.0, 0.0};
  std::vector<double> tallies_;  // by place, kTallies each; zeros for a rank that was not heard
  std::vector<bool> brought_;    // by place: some of that rank's part came
  Status failure_;
  protocol::Blame blame_;
  std::vector<PeerReport> peers_;  // by rank
  CollectiveReport report_;
};

}  // namespace leeway::collective
