// The invariants I1 to I21 of one communicator, checked in every run. README.md says what each
// invariant means here, and what its check cannot see.
//
// The first communicator's checkers also check things that all communicators share: the network
// (I1), places for datagrams (I7), credit (I8), and datagrams that reach no member (I13).
//
// The core endpoints (CoreObserver), the network (packets()) and the run loop report events to this
// class. Endpoints that carry no data have no engines. For them, only the network's own invariants
// are checked.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checker/check.h"
#include "collective/node.h"
#include "endpoint/core_observer.h"
#include "network/network.h"
#include "run/run_record.h"
#include "scenario.pb.h"

namespace leeway::sim {

class Credit;

struct CheckerSetup {
  // Engines by rank; empty for endpoints without contents. They outlive the checkers. on_open()
  // sets an entry that is null.
  std::vector<const collective::Engine*> engines;
  std::size_t links = 0;  // links of the topology
  // nodes by process; without them I13 does not hear of stray datagrams
  std::vector<const collective::Node*> nodes;

  // For further communicators. `processes`: the process of each rank. `credit`: the credit check of
  // the first communicator's checkers, because communicators of a lane share paths.
  std::vector<Rank> processes;
  std::uint32_t epoch = 1;
  Credit* credit = nullptr;
  std::uint32_t lane = 0;  // lane whose paths it uses; on lane 1 and up it is the only communicator
  // scenario that describes the network, or null for the checkers' own scenario
  const scenario::Scenario* network = nullptr;
};

class Checkers final : public CoreObserver {
 public:
  // Skips the invariants of scenario.checkers.skip. The scenario is valid.
  Checkers(const scenario::Scenario& scenario, std::uint64_t seed, CheckerSetup setup);
  ~Checkers() override;

  // Returns the observer of packets, or null if no invariant needs it.
  PacketObserver* packets();
  // Returns the first communicator's credit, or null without contents.
  Credit* credit();
  // Makes a credit check for the paths of another lane, with the same windows. Its failures count
  // as failures of these checkers.
  std::unique_ptr<Credit> credit_of_lane();

  void on_open(std::uint32_t rank, const collective::Engine& engine) override;
  void on_stray(Instant now, std::uint32_t process) override;
  void on_lost(std::uint32_t rank, std::uint32_t from) override;
  void on_submit(Instant now, std::uint32_t rank, const Call& call) override;
  void on_datagram(Instant now, std::uint32_t rank, std::uint32_t from, ByteSpan datagram) override;
  void on_done(Instant now, std::uint32_t rank, const Call& call,
               const CallResult& result) override;
  void on_pumped(Instant now, std::uint32_t rank, const collective::Engine& engine) override;

  // Call these for a call by sites or over lanes. The checkers of other communicators see its legs
  // or slices; these checkers see the first slice.
  void on_submit_whole(Instant now, std::uint32_t rank, const Call& call);
  void on_done_whole(Instant now, std::uint32_t rank, const Call& call, const CallResult& result);

  // Call these when the run loop pauses, resumes or kills the rank's endpoint.
  void on_pause(Instant now, std::uint32_t rank);
  void on_resume(Instant now, std::uint32_t rank);
  void on_death(std::uint32_t rank);

  // Call these when a rank begins to leave the group, and when it has left. `at_once`: it leaves
  // without serving its peers first.
  void on_leave(Instant now, std::uint32_t rank, bool at_once);
  void on_left(Instant now, std::uint32_t rank);

  // Call it when the rank has aborted the communicator. `failed` is true if no call was open, or if
  // the open call failed with kCancelled before abort() returned.
  void on_abort(Instant now, std::uint32_t rank, bool failed);
  // Call it at the end of the run. `untouched`: whether the buffers of an aborted call are as the
  // caller left them.
  void on_aborted_buffers(std::uint32_t rank, bool untouched);

  // Call it when a call has returned to the rank's program (I20). Do not call it for the legs or
  // slices of a call.
  void on_returned(Instant now, std::uint32_t rank, std::uint32_t round, CallKind kind,
                   const Status& status);

  // Call it when a split is over. `good` is true if the rank was told the values that all other
  // ranks gave in the split.
  void on_split(Instant now, std::uint32_t rank, bool good);

  // Call it when the last fault is over: from `first_round` on nothing is lost and nobody pauses.
  // Rounds must be complete after three rounds of recovery (I9).
  void on_faults_over(std::uint32_t first_round);

  // Call it when all live ranks have returned from `round`.
  void on_round_end(Instant now, std::uint32_t round, const Network& network);

  // Call it with the `result` of a rank's reduction; `reference` is the loss-free average of the
  // same elements.
  void on_reduced(std::uint32_t round, std::uint32_t rank, std::span<const double> reference,
                  std::span<const float> result);

  // `overdrawn`: number of datagrams, beyond the allowed number, that went to addresses that had
  // not answered.
  void on_addresses(Instant now, std::uint64_t overdrawn);
  // Returns the records of i1 to i21, in order. `endpoints_idle`: true if no endpoint has anything
  // open or queued.
  std::vector<CheckRecord> finish(Instant now, const Network& network, bool endpoints_idle);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Adds the findings of a further communicator's checkers. `name` begins the text of its failures.
void merge(std::vector<CheckRecord>& into, const std::vector<CheckRecord>& further,
           const std::string& name);

// Checks I12: two runs of the same scenario and seed have the same trace. If the traces differ, the
// record says where.
CheckRecord same_trace(const RunRecord& first, const RunRecord& second);

}  // namespace leeway::sim
