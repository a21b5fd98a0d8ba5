// A collective in hops: inside sites, between counterparts, and inside again. Each hop is a
// collective of a communicator of its own, so the protocol does not know of it.
//
//   all_reduce       reduce_scatter inside, all_reduce across, all_gather inside
//   reduce_scatter   reduce_scatter inside for each site's blocks, reduce_scatter across
//   all_gather       all_gather across, all_gather inside for each site's blocks
//
// Hops inside are exact if the call is. In a lossy call they are repaired until nothing is missing,
// and go on without a rank that is silent. Only the hop across is lossy. There a site's partial sum
// is one contribution, so estimators have as many contributors as there are sites.
//
// It does no I/O. Its driver hands its legs to the three communicators in the order in which next()
// returns them, which is the same on all ranks. It calls on_done() for each, and finish() once
// done().
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/time.h"
#include "collective/request.h"
#include "collective/site_map.h"

namespace leeway::collective {

// Communicators that a hierarchical collective goes over. Two of them have the ranks of a site. On
// each of them all ranks begin operations in the same order; the order between different
// communicators does not matter.
enum class Tier : std::uint8_t { reduce = 0, across, spread };
inline constexpr int kTiers = 3;

class HierarchicalCall {
 public:
  // Returns true if the call may go in hops, which all ranks decide alike. These calls may not:
  // - uneven ones, and those without contents or encoded elsewhere;
  // - late work (confirm_use), whose weights differ by owner;
  // - averages of integers, which are rounded once;
  // - sums of narrow floats, which are made in float32 and rounded once;
  // - calls over more than 255 sites.
  static bool takes(const OperationSpec& spec, const SiteMap& sites);
  // Returns the operation that stands for the call on the whole communicator. There ranks hear how
  // their calls differ, and of each other's failures.
  static OperationSpec stand_in(const OperationSpec& spec);

  // The spec must have been validated for all ranks. `place`: the call's place among all
  // collectives of the communicator. `piece_bytes`: an exact all_reduce of more bytes is cut into
  // pieces of about that length, which move in different tiers at once.
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
  // Returns the next leg of the tier if it may begin. Returns null if it may not yet, or if there
  // is none. The leg's deadline counts from now.
  Leg* next(Tier tier, Instant now);
  // Returns true if no leg of the tier is left to begin.
  bool through(Tier tier) const;
  // Returns the legs of the tier that are left to begin.
  std::span<Leg> not_begun(Tier tier) {
    const auto t = static_cast<std::size_t>(tier);
    return std::span(legs_[t]).subspan(next_[t]);
  }
  // Tells the call that the leg is over, and that its memory is free.
  void on_done(const Leg& leg, const Request& request, Instant now);
  // Tells the call that it cannot go on. Legs that have not begun then only take their places.
  void fail(const Status& status, const protocol::Blame& blame = {});
  // Replaces the failure of a call that has failed by one that tells more of the reason.
  void explain(const Status& status) { failure_ = status; }
  const Status& failure() const { return failure_; }
  // Rank of the communicator that the failure names.
  const protocol::Blame& blame() const { return blame_; }
  // Returns true if all legs are over.
  bool done() const { return left_ == 0; }
  // Writes the outcome of a call that is done.
  void finish(Request& outcome, Instant now) const;

 private:
  // A part of an all_reduce's tensor. Other operations have one piece.
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
  // For a reduce_scatter: partial sums that go across, by site; the residual and the control
  // variate of the blocks that go across.
  std::vector<std::byte> partials_;
  std::vector<float> residual_;
  std::vector<float> control_;
  std::vector<double> units_;  // units of work, by piece; for a reduce_scatter by site
  // Numbers of a lossy all_reduce that each rank of a site tells the others of its site.
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
