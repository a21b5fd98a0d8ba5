// Puts a run together: network, endpoints, contents, checkers.
#include <utility>

#include "endpoint/tcp_ring.h"
#include "run/lane_calls.h"
#include "run/site_calls.h"
#include "run/world.h"
#include "scenario/rank_set.h"
#include "seal/forwarding.h"

namespace leeway::sim {
namespace {

template <typename T>
Status take(Result<T> made, std::optional<T>& into) {
  if (!made.ok()) return made.status();
  into.emplace(std::move(*made));
  return {};
}

template <typename T, typename Base>
Status take(Result<std::unique_ptr<T>> made, std::unique_ptr<Base>& into) {
  if (!made.ok()) return made.status();
  into = std::move(*made);
  return {};
}

}  // namespace

Result<std::unique_ptr<World>> World::make(const scenario::Scenario& scenario, std::uint64_t seed,
                                           const RunOptions& options) {
  if (Status taken = check_calls(scenario); !taken.ok()) return taken;
  auto world = std::unique_ptr<World>(new World(scenario, seed, options));
  for (const auto part :
       {&World::set_up_network, &World::set_up_endpoints, &World::set_up_contents,
        &World::set_up_checkers, &World::set_up_leaves, &World::set_up_communicators,
        &World::set_up_sites, &World::set_up_lanes}) {
    if (Status status = ((*world).*part)(); !status.ok()) return status;
  }
  return world;
}

Status World::set_up_network() {
  if (Status status = take(Topology::make(scenario_), topology_); !status.ok()) return status;
  const std::size_t payload_bytes_max =
      scenario_.operation().datagram_bytes() +
      (scenario_.has_sealing() ? seal::kOverheadBytes + seal::kRelayOverheadBytes : 0);
  if (Status status = take(Network::make(*topology_, seed_, queue_, payload_bytes_max), network_);
      !status.ok()) {
    return status;
  }
  if (Status status = take(ComputeTimes::make(scenario_, seed_), compute_); !status.ok())
    return status;
  if (Status status = take(FaultSchedule::make(scenario_), faults_); !status.ok()) return status;
  return take(CrossTraffic::make(scenario_, seed_, queue_, *network_), cross_);
}

Status World::set_up_endpoints() {
  ranks_.resize(scenario_.ranks());
  running_ = scenario_.ranks();
  switch (scenario_.endpoint()) {
    case scenario::Scenario::tcp_ring:
      return take(TcpRing::make(scenario_, *topology_, queue_, *network_), endpoints_);
    case scenario::Scenario::core:
      break;
  }
  auto core = CoreEndpoints::make(scenario_, seed_, *topology_, queue_, *network_);
  if (!core.ok()) return core.status();
  core_ = core->get();
  endpoints_ = std::move(*core);
  return {};
}

// Sets up workload and buffers. Without contents, calls have sizes and no data.
Status World::set_up_contents() {
  memory_.resize(scenario_.ranks());
  if (!has_contents()) {
    const std::size_t elements = scenario_.operation().bytes() / sizeof(float);
    uneven_.emplace(scenario_, seed_, elements);
    return take(OperationPlan::make(scenario_, elements), plan_);
  }
  if (Status status = take(options_.workload(scenario_, seed_), workload_); !status.ok())
    return status;
  if (Status status = take(OperationPlan::make(scenario_, workload_->elements()), plan_);
      !status.ok())
    return status;
  const auto& operation = scenario_.operation();
  messages_.emplace(scenario_, seed_, plan_->message_options());
  uneven_.emplace(scenario_, seed_, plan_->elements());
  for (std::uint32_t rank = 0; rank < scenario_.ranks(); ++rank) {
    RankMemory& memory = memory_[rank];
    memory.gradient.assign(plan_->elements(), 0.0f);
    memory.result.assign(plan_->elements(), 0.0f);
    if (operation.error_feedback()) memory.residual.assign(plan_->elements(), 0.0f);
    if (operation.has_control_variate() &&
        operation.control_variate() == scenario::Operation::previous) {
      memory.previous.assign(plan_->elements(), 0.0f);
    }
    memory.parameters = workload_->parameters(rank);
  }
  return plan_->is_replica_step() ? set_up_replicas() : Status();
}

Status World::set_up_replicas() {
  if (memory_[0].parameters.empty()) {
    return Status::error(
        StatusCode::kInvalidArgument,
        "operation.kind replica_step needs a workload with a model: quadratic, logistic or gpt");
  }
  for (std::uint32_t rank = 0; rank < scenario_.ranks(); ++rank) {
    auto replica =
        ReplicaRank::make(scenario_.operation(), rank, scenario_.ranks(), memory_[rank].parameters);
    if (!replica.ok()) return replica.status();
    replicas_.push_back(std::move(*replica));
  }
  drift_ = std::make_unique<DriftProbe>(scenario_, plan_->elements());
  return {};
}

Status World::set_up_leaves() {
  for (const scenario::Leave& leave : scenario_.leave()) {
    const auto leavers = scenario::ranks_of(scenario_, leave.ranks());
    if (!leavers.ok()) return leavers.status();
    for (const std::uint32_t rank : *leavers) ranks_[rank].leave = &leave;
  }
  return {};
}

// Without contents only the network's own invariants are checked. Most others need a ledger of
// every packet, for which such runs have no memory.
Status World::set_up_checkers() {
  CheckerSetup setup{.links = topology_->links()};
  for (std::uint32_t rank = 0; has_contents() && rank < scenario_.ranks(); ++rank) {
    setup.engines.push_back(&core_->engine(rank));
    setup.nodes.push_back(&core_->node(rank));
  }
  checkers_ = std::make_unique<Checkers>(scenario_, seed_, std::move(setup));
  if (has_contents()) core_->observe(checkers_.get());
  watchers_.add(checkers_->packets());
  watchers_.add(options_.packets);
  network_->observe(watchers_.observer());
  return {};
}

Status World::set_up_communicators() {
  for (int number = 0; number < scenario_.communicator_size(); ++number) {
    auto made = FurtherCommunicator::make(
        scenario_, seed_, number,
        {queue_, *core_, checkers_->credit(), watchers_,
         [this](Instant now, std::uint32_t rank) { on_member_finished(now, rank); }});
    if (!made.ok()) return made.status();
    communicators_.push_back(std::move(*made));
  }
  if (!communicators_.empty()) network_->observe(watchers_.observer());
  return {};
}

Status World::set_up_sites() {
  if (scenario_.operation().site_ranks() == 0) return {};
  parted_.push_back(std::make_unique<SiteCalls>(scenario_, seed_,
                                                PartedCalls::Place{*core_, *checkers_, watchers_}));
  network_->observe(watchers_.observer());
  return {};
}

Status World::set_up_lanes() {
  if (scenario_.operation().lanes() == 1) return {};
  parted_.push_back(std::make_unique<LaneCalls>(scenario_, seed_,
                                                PartedCalls::Place{*core_, *checkers_, watchers_}));
  network_->observe(watchers_.observer());
  return {};
}

}  // namespace leeway::sim
