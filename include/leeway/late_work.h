// Late work: a contribution that missed its round is carried into the next one, with its weight.
//
// Under a lossy delivery an owner settles its shard without the ranks that come too late, so their
// work of that step is lost. With LateWork a late rank adds the missed contribution to its next
// one:
//
//   LateWork late(gradient.size());
//   ... each step, with options.op = avg and options.weight = units behind `gradient`:
//   late.add_to(gradient, options);  // sets options.owner_weights and options.confirm_use
//   auto report = replica.reduce_gradients(gradient, options);  // or communicator.all_reduce()
//   if (report.ok()) late.keep(*report);
//
// Nothing is summed twice. A contribution is carried only if its owner has reported that it used
// none of the contribution's packets (PeerReport::missed). If the owner used some of the packets,
// the estimator has compensated for the lost ones already. An owner that does not answer counts as
// having used the contribution. The part that a rank adds to its own shard is never late. A
// contribution is carried for one round at most: it is dropped if it is missed again, or if a step
// ends without a report. An all_reduce of fewer datagrams than ranks has other owners in every call
// (CollectiveReport::owners), so contributions that such a call misses are dropped, too.
//
// LateWork is biased. A carried gradient belongs to the step before, and its rank weighs double in
// the call where the gradient arrives and nothing in the call that missed it. Formulas and figures:
// src/math/estimate/README.md, "Late work". Do not combine it with horvitz_thompson or augmented on
// shards of one packet: these estimators divide what arrives by the rate of arrival, so lost
// packets are compensated for already.
//
// LateWork costs a copy of the gradient in memory and in time, and a round trip per reduction
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

// Counts since creation. A gradient counts as one contribution for each owner of a shard.
struct LateWorkStatistics {
  std::uint64_t missed = 0;   // contributions that their owner did not use
  std::uint64_t carried = 0;  // contributions that were added to a later call
  std::uint64_t dropped = 0;  // missed again after being carried, or could not be carried: lost
  std::uint64_t elements_carried = 0;  // elements of the carried contributions
  double weight_carried = 0.0;         // their units of work, summed over owners
};

// Carries late contributions of one float32 tensor, for all_reduce and Replica::reduce_gradients
// with op = avg. Use one object for each tensor. In each step call add_to(), the reduction, then
// keep(). Not thread-safe.
class LEEWAY_EXPORT LateWork {
 public:
  explicit LateWork(std::size_t count);  // elements of the tensor

  // Call before each reduction, with its gradient and options. Adds the contributions that were
  // missed last time to `gradient`, and keeps a copy of the gradient as it was. Sets
  // options.confirm_use. options.owner_weights then points into this object until the next call.
  // Returns kInvalidArgument and changes nothing if the size or op is wrong, or the caller has set
  // owner_weights.
  Status add_to(std::span<float> gradient, CollectiveOptions& options);

  // Records which owners missed the contribution. Call after a reduction that succeeded.
  void keep(const CollectiveReport& report);

  // Valid for the life of this object.
  const LateWorkStatistics& statistics() const { return statistics_; }

 private:
  void carry(std::span<float> gradient, Rank owner, bool fresh_has_units);

  std::vector<float> kept_;  // the last contribution, without the carried part
  double kept_weight_ = 0.0;
  std::vector<bool> late_;             // by owner: it missed the last contribution
  std::vector<bool> carried_to_;       // by owner: the last call carried something to it
  std::vector<double> owner_weights_;  // for the current call, if something is carried
  LateWorkStatistics statistics_;
};

}  // namespace v0
}  // namespace leeway
