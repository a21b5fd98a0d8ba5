// Runs the library's core at every rank of a simulated network, watched by the checkers. The
// observer between core and checkers can lie to the checkers, so that they see what a broken core
// would show.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checker/checkers.h"
#include "endpoint/core_endpoints.h"
#include "scenario.pb.h"

namespace leeway::sim {

scenario::Scenario scenario_of(const std::string& text);

// Changes to what the checkers hear.
struct Lies {
  // Returns how often the checkers hear of a datagram; the truth is 1.
  std::function<int(std::uint32_t rank, std::uint32_t from, ByteSpan datagram)> copies;
  // Changes a datagram before the checkers see it.
  std::function<void(std::uint32_t rank, std::vector<std::byte>& datagram)> datagram;
  // Changes a call's outcome before the checkers see it.
  std::function<void(std::uint32_t rank, const Call& call, CallResult& result,
                     CollectiveReport& report, std::span<float> values)>
      outcome;
  // Changes a packet of the network before the checkers see it. Returns false to hide it.
  std::function<bool(PacketStep step, Packet& packet)> packet;
  Duration delay_of_return{0};
};

class CoreRun final : private CoreObserver, private PacketObserver, private Endpoints::Client {
 public:
  CoreRun(const std::string& text, std::uint64_t seed, Lies lies = {});

  // Runs all rounds of the scenario. Returns the records of i1 to i17.
  std::vector<CheckRecord> run();

  Checkers& checkers() { return *checkers_; }
  Endpoints& endpoints() { return *core_; }
  Network& network() { return *network_; }
  // If true, replicas request blocks that would become too old.
  bool refresh_old = true;
  // Pauses one rank.
  void pause(std::uint32_t rank, Instant from, Instant until);

 private:
  struct RankState {
    std::uint32_t round = 0;
    std::size_t call = 0;
    bool finished = false;
    std::vector<float> gradient;
    std::vector<float> result;
    std::vector<float> parameters;
    std::vector<float> residual;
    std::vector<double> weights;  // by owner
    collective::BroadcastLedger ledger;
    std::vector<std::vector<std::uint32_t>> ages;
    collective::OperationSpec spec;
  };

  void on_submit(Instant now, std::uint32_t rank, const Call& call) override;
  void on_datagram(Instant now, std::uint32_t rank, std::uint32_t from, ByteSpan datagram) override;
  void on_done(Instant now, std::uint32_t rank, const Call& call,
               const CallResult& result) override;
  void on_pumped(Instant now, std::uint32_t rank, const collective::Engine& engine) override;
  void on_packet(Instant now, PacketStep step, LinkId link, const Packet& packet,
                 ByteSpan payload) override;
  void on_done(Instant now, std::uint32_t rank, const CallResult& result) override;

  void submit(Instant now, std::uint32_t rank);
  void on_fault(Instant now, std::uint32_t rank, bool begins);
  void fill(std::uint32_t rank);
  collective::OperationSpec spec_of(std::uint32_t rank, CallKind kind);
  void prepare_ages(std::uint32_t rank);
  void take_ages(std::uint32_t rank);
  std::vector<CallKind> calls() const;
  bool finished() const;

  scenario::Scenario scenario_;
  std::uint64_t seed_;
  Lies lies_;
  EventQueue queue_{1 << 12};
  std::optional<Topology> topology_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<CoreEndpoints> core_;
  std::unique_ptr<Checkers> checkers_;
  std::vector<RankState> ranks_;
};

// Returns the record of one invariant.
const CheckRecord& record_of(const std::vector<CheckRecord>& records, const std::string& id);
// Returns the ids of the invariants that failed, "i3 i5", and the text of the first.
std::string failed(const std::vector<CheckRecord>& records);

}  // namespace leeway::sim
