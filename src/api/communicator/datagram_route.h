// Calls of a communicator as datagrams. With `Options::lanes` large calls are cut into slices, each
// over a channel whose driver has a socket and a thread of its own (see collective/sliced_call.h
// for the cut). Other calls go over the first channel, lane 0.
#pragma once

#include <vector>

#include "communicator/route.h"
#include "leeway/options.h"

namespace leeway::internal {

// Returns the options of lane 1 and up of a communicator with `options`. The lane's options have
// another name, port and seed of faults.
Options options_of_lane(const Options& options, int lane);

class DatagramRoute final : public Route {
 public:
  explicit DatagramRoute(std::unique_ptr<Channel> first) { lanes_.push_back(std::move(first)); }

  // Adds lanes, whose ranks are those of lane 0. All ranks must call this, or none.
  void add(std::vector<std::unique_ptr<Channel>> further);

  Channel& first() { return *lanes_.front(); }
  const Channel& first() const { return *lanes_.front(); }
  // Lane 0 and the further ones.
  const std::vector<std::unique_ptr<Channel>>& lanes() const { return lanes_; }

  bool takes(const collective::OperationSpec& /*spec*/) const override { return true; }
  StandIns hold(const collective::OperationSpec& spec, Channel::Place place) override;
  std::shared_ptr<WorkState> start(const collective::OperationSpec& spec,
                                   Channel::Place place) override;
  Result<CollectiveReport> run(const collective::OperationSpec& spec,
                               Channel::Place place) override;
  void abort(const char* how) override;
  void close(std::vector<std::function<void()>>& closing) override;
  // Adds all lanes' counters. The names of lane 1's counters begin with "lane1_", and so on. The
  // counters of lane 1 and up count what the whole process does on the lane.
  void add_counters(Channel::Counters& rows) override;

  // Returns the state of the first lane whose state is not kOk, or kOk if there is none.
  StatusCode state() const;
  Status status() const;
  // Returns true if a peer has left any of the lanes.
  bool peer_left() const;

 private:
  std::size_t slices(const collective::OperationSpec& spec, Channel::Place place) const;

  std::vector<std::unique_ptr<Channel>> lanes_;
};

}  // namespace leeway::internal
