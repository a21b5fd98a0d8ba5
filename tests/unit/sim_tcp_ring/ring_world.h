// A ring over TCP on the network of a scenario text, with a client that keeps all results.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "endpoint/tcp_ring.h"
#include "engine/event_queue.h"
#include "network/network.h"
#include "topology/topology.h"

namespace leeway::sim {

class RingWorld final : public Endpoints::Client {
 public:
  explicit RingWorld(const std::string& scenario, std::uint64_t seed = 1);

  // Submits one call on every live rank and runs until all have returned. Returns results by rank.
  std::vector<CallResult> call(CallKind kind, std::uint64_t bytes);
  void submit(std::uint32_t rank, CallKind kind, std::uint64_t bytes);
  void run_until(std::int64_t ns);
  void run_until_done(std::size_t results);

  TcpRing& ring() { return *ring_; }
  Network& network() { return *network_; }
  Instant now() const { return queue_.now(); }
  void kill(std::uint32_t rank);

  struct Done {
    std::uint32_t rank = 0;
    std::string text;
    CallResult result;
  };
  std::vector<Done> done;

  void on_done(Instant now, std::uint32_t rank, const CallResult& result) override;

 private:
  bool step();

  EventQueue queue_;
  std::unique_ptr<Topology> topology_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<TcpRing> ring_;
  std::vector<bool> live_;
  std::uint32_t round_ = 0;
};

}  // namespace leeway::sim
