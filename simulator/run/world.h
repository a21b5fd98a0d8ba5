// One run: ranks that compute and call, endpoints, network and faults, all driven by one event
// queue.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "checker/checkers.h"
#include "compute/compute_time.h"
#include "endpoint/core_endpoints.h"
#include "endpoint/endpoints.h"
#include "engine/event_queue.h"
#include "network/network.h"
#include "run/call_group.h"
#include "run/compute_book.h"
#include "run/drift_probe.h"
#include "run/fault_schedule.h"
#include "run/further_communicator.h"
#include "run/message_plan.h"
#include "run/operation_plan.h"
#include "run/replica_rank.h"
#include "run/round_book.h"
#include "run/run.h"
#include "run/uneven_plan.h"
#include "run/watchers.h"
#include "topology/topology.h"
#include "traffic/cross_traffic.h"

namespace leeway::sim {

class World final : private Endpoints::Client {
 public:
  // `options` and `scenario` must outlive the object.
  static Result<std::unique_ptr<World>> make(const scenario::Scenario& scenario, std::uint64_t seed,
                                             const RunOptions& options);

  // Runs until every live rank has finished its last round, or the simulated time ends. Returns
  // kCancelled if told to stop.
  Result<RunRecord> run();

 private:
  struct RankState {
    std::uint32_t round = 0;
    std::size_t call = 0;  // index among the round's splits first, and then among its other calls
    Wish wish{};           // the values that the rank gives in the open split
    std::vector<Wish> wishes;
    MicroBatches micro_batches;
    double weight = 1;
    collective::OperationSpec spec;  // operation of the open call
    int pauses = 0;                  // pauses that overlap
    bool submit_due = false;         // the compute time ended during a pause
    bool dead = false;
    bool running = true;  // the run goes on for this rank
    const scenario::Leave* leave = nullptr;
    bool leave_due = false;  // the time to leave came during a pause
    bool rounds_over = false;
  };
  // What an event of EventKind::rank means. The event's argument has this value.
  enum class RankEvent : std::uint64_t { computed = 0, leaves = 1 };

  World(const scenario::Scenario& scenario, std::uint64_t seed, const RunOptions& options)
      : scenario_(scenario),
        seed_(seed),
        options_(options),
        book_(scenario.ranks()),
        compute_book_(scenario) {}

  Status set_up_network();
  Status set_up_endpoints();
  Status set_up_contents();
  Status set_up_replicas();
  Status set_up_checkers();
  Status set_up_leaves();
  Status set_up_communicators();
  Status set_up_sites();
  Status set_up_lanes();
  bool has_contents() const { return core_ != nullptr && scenario_.contents(); }

  bool step();
  void begin_round(Instant now, std::uint32_t rank);
  void end_rounds(Instant now, std::uint32_t rank);
  void stop_running(std::uint32_t rank);
  void leave(Instant now, std::uint32_t rank);
  void on_left(Instant now, std::uint32_t rank) override;
  void on_computed(Instant now, std::uint32_t rank);
  void submit_call(Instant now, std::uint32_t rank);
  std::vector<FurtherCommunicator*> splits_of(std::uint32_t round) const;
  void submit_split(Instant now, std::uint32_t rank, const FurtherCommunicator& wanted);
  void absorb_split(Instant now, std::uint32_t rank, FurtherCommunicator& wanted);
  void on_member_finished(Instant now, std::uint32_t rank);
  void fill_contribution(std::uint32_t rank);
  void spoil(std::uint32_t rank);
  void draw_owner_weights(std::uint32_t rank);
  void on_done(Instant now, std::uint32_t rank, const CallResult& result) override;
  void absorb(std::uint32_t rank, CallKind kind, const CallResult& result);
  void absorb_replica_reduce(std::uint32_t rank);
  void close_rounds(Instant now);
  void close_round(Instant now, std::uint32_t number);
  void on_fault(Instant now, std::uint32_t number, bool begins);
  void end_fault(Instant now, std::uint32_t number);
  void become_calm(Instant now);
  void on_pause(Instant now, std::uint32_t rank);
  void on_resume(Instant now, std::uint32_t rank);
  void on_death(Instant now, std::uint32_t rank);
  template <typename Use>
  void each_group(const Use& use) {
    for (const auto& parted : parted_)
      for (const auto& group : parted->groups()) use(*group);
  }
  RunRecord make_record();

  const scenario::Scenario& scenario_;
  const std::uint64_t seed_;
  const RunOptions& options_;

  EventQueue queue_{1 << 12};
  std::optional<Topology> topology_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Endpoints> endpoints_;
  std::unique_ptr<CrossTraffic> cross_;
  CoreEndpoints* core_ = nullptr;  // endpoints_, if they are core endpoints
  std::optional<ComputeTimes> compute_;
  std::optional<FaultSchedule> faults_;
  std::optional<OperationPlan> plan_;
  std::optional<MessagePlan> messages_;
  std::optional<UnevenPlan> uneven_;
  std::unique_ptr<Workload> workload_;
  std::vector<RankMemory> memory_;  // by rank; each one empty without contents
  std::vector<ReplicaRank> replicas_;
  std::unique_ptr<DriftProbe> drift_;
  std::unique_ptr<Checkers> checkers_;
  Watchers watchers_;
  std::vector<std::unique_ptr<FurtherCommunicator>> communicators_;
  std::vector<std::unique_ptr<PartedCalls>>
      parted_;  // calls by sites and over lanes; the first of these that takes a call gets it

  std::vector<RankState> ranks_;
  RoundBook book_;
  ComputeBook compute_book_;
  // Numbers of the faults that have begun and whose end is still to come.
  std::vector<std::uint32_t> open_faults_;
  bool calm_ = false;
  bool stopping_ = false;           // no rank begins a round that no other rank has begun
  std::uint32_t rounds_begun_ = 0;  // by any rank
  Status refusal_;  // error of a call that the library refuses whatever the network does
  std::uint64_t events_ = 0;
  std::uint32_t running_ = 0;  // ranks that are alive and have rounds to do
};

}  // namespace leeway::sim
