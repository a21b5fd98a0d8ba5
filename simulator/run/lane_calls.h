// Calls of ranks with several lanes: large ones are cut into slices, one for each lane
// (collective/sliced_call.h), as src/api/communicator/datagram_route.h does over sockets.
//
// The first slice is a call of the first communicator. Each further lane has a communicator with
// checkers of its own. The first communicator's checkers also check the whole call.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "checker/checkers.h"
#include "checker/credit.h"
#include "collective/sliced_call.h"
#include "endpoint/core_endpoints.h"
#include "run/call_group.h"
#include "run/watchers.h"

namespace leeway::sim {

class LaneCalls final : public PartedCalls, private Endpoints::Client {
 public:
  // All ranks join the communicators of their lanes. The scenario must be valid, with several
  // lanes. `scenario` and the parts in `place` must outlive this object.
  LaneCalls(const scenario::Scenario& scenario, std::uint64_t seed, Place place);

  bool takes(std::uint32_t rank, const collective::OperationSpec& spec) const override;
  void submit(Instant now, std::uint32_t rank, const Call& call,
              Endpoints::Client& client) override;

 private:
  struct Slice {
    std::vector<std::size_t> lengths;
    collective::Request outcome;
  };
  struct RankState {
    std::optional<collective::SlicedCall> sliced;  // state of the open call
    std::vector<Slice> slices;
    std::size_t left = 0;
  };

  std::size_t slices_of(const collective::OperationSpec& spec) const;
  void on_done(Instant now, std::uint32_t rank, const CallResult& result) override {
    on_slice_done(now, rank, 0, result);
  }
  void on_slice_done(Instant now, std::uint32_t rank, std::size_t lane, const CallResult& result);
  void finish_call(Instant now, std::uint32_t rank);

  const scenario::Scenario& scenario_;
  std::vector<std::unique_ptr<Credit>> credits_;
  std::vector<RankState> ranks_;
};

}  // namespace leeway::sim
