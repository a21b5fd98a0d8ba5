// Late work: a contribution that missed its round is carried into the next one, with its weight.
//
// Under a lossy delivery an owner settles its shard without the ranks that come too late, and their
// work of that step is lost. With LateWork such a rank adds what was missed to its next
// contribution:
//
//   LateWork late(gradient.size());
//   ... each step, with options.op = avg and options.weight = units behind `gradient`:
//   late.add_to(gradient, options);  // sets options.owner_weights and options.confirm_use
//   auto report = replica.reduce_gradients(gradient, options);  // or communicator.all_reduce()
//   if (report.ok()) late.keep(*report);
//
// Nothing is summed twice. A contribution is carried only to an owner that has said that it used
// none of its packets (PeerReport::missed), and all of it or nothing: what is missing of a flow
// that was used in part is made up for by the estimator already. Silence counts as use. What a rank
// adds to its own shard is never late. It is bounded to one round: what was carried and is missed
// again is dropped, and so is what was kept when a step ends without a report. An all_reduce of
// fewer datagrams than ranks has other owners in every call (CollectiveReport::owners): what it
// misses is dropped, too.
//
// Off unless used, for it is biased: a carried gradient is that of the step before, and its rank
// weighs double where it arrives and nothing where it missed. Formulas and measurements:
// src/estimate/README.md, "Late work". Not with horvitz_thompson or augmented on shards of one
// packet, whose weights 1/q make up for lost ones already.
//
// Costs a copy of the gradient in memory and in time, and a round trip per reduction
// (CollectiveOptions::confirm_use).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/export.h"
#include "leeway/options.h"
#include "leeway/report.h"
#include "leeway/status.h"

namespace leeway {
inline namespace v0 {

// Since creation. A contribution to the shard of one owner counts as one.
struct LateWorkStatistics {
  std::uint64_t missed = 0;            // contributions that their owner did not use
  std::uint64_t carried = 0;           // of those, added to a later call
  std::uint64_t dropped = 0;           // missed after being carried, or not to be carried: lost
  std::uint64_t elements_carried = 0;  // of those, elements
  double weight_carried = 0.0;         // units, summed over owners
};

// For all_reduce and Replica::reduce_gradients of one float32 tensor with op = avg; one object a
// tensor. Not thread-safe.
class LEEWAY_EXPORT LateWork {
 public:
  explicit LateWork(std::size_t count);  // elements of the tensor

  // Call before each reduction, with its gradient and options. Adds what was missed last time to
  // `gradient`, and keeps a copy of what was there before. options.owner_weights then points into
  // this object until the next call. kInvalidArgument, and nothing is changed, for another size,
  // another op, or owner_weights set by the caller.
  Status add_to(std::span<float> gradient, CollectiveOptions& options);

  // What became of it: call after a reduction that succeeded.
  void keep(const CollectiveReport& report);

  // Valid for the life of this object.
  const LateWorkStatistics& statistics() const { return statistics_; }

 private:
  void carry(std::span<float> gradient, Rank owner, bool fresh_has_units);

  std::vector<float> kept_;  // the last contribution, without what was carried into it
  double kept_weight_ = 0.0;
  std::vector<bool> late_;             // by owner: the last contribution was missed there
  std::vector<bool> carried_to_;       // by owner: the last call carried something there
  std::vector<double> owner_weights_;  // of the call in progress, where something is carried
  LateWorkStatistics statistics_;
};

}  // namespace v0
}  // namespace leeway
