// Large calls of a communicator over several lanes: slices of one tensor, each over a channel whose
// driver has a socket and a thread of its own (see collective/sliced_call.h for the cut).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "driving/channel.h"
#include "leeway/options.h"

namespace leeway::internal {

using driving::Channel;
using driving::WorkState;

// Returns the options of lane 1 and up of a communicator with `options`. They differ in the name,
// the port and the seed of faults.
Options options_of_lane(const Options& options, int lane);

class Lanes {
 public:
  // All ranks must make one, or none. `first` is lane 0 and must outlive it. `further` must have
  // the same ranks.
  Lanes(Channel& first, std::vector<std::unique_ptr<Channel>> further);
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Returns true if all ranks cut this call, which lane 0 would carry.
  bool takes(const collective::OperationSpec& spec) const;
  // May be called on any thread, also from a callback. The spec must have been validated. `place`:
  // among all collectives of the communicator.
  std::shared_ptr<WorkState> start(const collective::OperationSpec& spec, std::uint64_t place);

  // Without lane 0.
  const std::vector<std::unique_ptr<Channel>>& further() const { return further_; }
  void abort(const char* how);
  // Adds the closing of each lane to `closing`, so that all close at the same time. Each may have
  // to wait for peers.
  void close(std::vector<std::function<void()>>& closing);

 private:
  Channel& lane(std::size_t i) { return i == 0 ? first_ : *further_[i - 1]; }

  Channel& first_;
  std::vector<std::unique_ptr<Channel>> further_;
};

}  // namespace leeway::internal
