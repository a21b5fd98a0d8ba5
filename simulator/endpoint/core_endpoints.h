// The shipping protocol core at every rank: a collective::Engine each, in virtual time, over the
// simulated network.
//
// What a machine adds to the core is modelled here, and nothing of the protocol: a socket that
// makes the sender wait while its uplink is full, a process that can be stopped (what arrives waits
// in its socket, up to the socket's buffer) or die, and the library's own fault injection
// ($LEEWAY_FAULT, Operation.inject), which sits between socket and core.
//
// Without contents (scenario.contents) tensors have a size and no memory, and the network carries a
// data packet's header alone. The core is the same, and so is every datagram's length and time: the
// payload that it hands out is never read, and zeros stand for it where the header arrives.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "collective/engine.h"
#include "endpoint/core_observer.h"
#include "endpoint/endpoints.h"
#include "endpoint/uplink.h"
#include "impairment/fault_plan.h"
#include "network/network.h"
#include "scenario.pb.h"
#include "topology/topology.h"

namespace leeway::sim {

// What a socket of a paused process holds before it drops: the library's default receive buffer.
inline constexpr std::size_t kSocketBytes = std::size_t{8} << 20;

// All ranks' seed, as LEEWAY_SEED: permutations, stochastic rounding and virtual losses of a run
// with this seed over a real network are the same.
class CoreEndpoints final : public Endpoints, private PacketReceiver {
 public:
  // Attaches itself to the network for data and control. Everything referred to outlives it. The
  // scenario is valid.
  static Result<std::unique_ptr<CoreEndpoints>> make(const scenario::Scenario& scenario,
                                                     std::uint64_t seed, const Topology& topology,
                                                     EventQueue& queue, Network& network);

  void observe(CoreObserver* observer) { observer_ = observer; }

  // Operation.inject is over.
  void set_calm();
  // From now on the network carries no multicast.
  void stop_multicast();

  void submit(Instant now, std::uint32_t rank, const Call& call, Client& client) override;
  void on_event(const Event& event) override;
  void pause(Instant now, std::uint32_t rank) override;
  void resume(Instant now, std::uint32_t rank) override;
  void kill(Instant now, std::uint32_t rank) override;

  // The rank leaves the group, by serving its peers until they are quiet or at once. `client` hears
  // when it has left. No call of it is open, and none follows.
  void leave(Instant now, std::uint32_t rank, bool at_once, Client& client);

  const collective::Engine& engine(std::uint32_t rank) const { return *nodes_[rank].engine; }
  // No live rank has anything open, confirmations included.
  bool idle() const;
  // Datagrams that Operation.inject lost.
  std::uint64_t injected_losses() const { return injected_losses_; }
  // Datagrams that found a paused rank's socket full.
  std::uint64_t socket_losses() const { return socket_losses_; }

 private:
  enum class Step : std::uint64_t { pump = 0, wake = 1, arrive = 2 };

  // A datagram at its receiver. `payload` is its place in the network's pool; kNoPayload if its
  // bytes lie elsewhere. Without contents `bytes` may be the header alone of a datagram of `length`
  // bytes.
  struct Datagram {
    std::uint32_t from;
    ByteSpan bytes;
    std::size_t length;
    std::uint32_t payload;
  };
  // One that waits; its payload is held.
  struct Kept {
    std::uint32_t from = 0;
    std::uint32_t payload = kNoPayload;
    std::uint32_t length = 0;
  };
  struct Node {
    std::unique_ptr<collective::Engine> engine;
    std::optional<impairment::FaultPlan> faults;  // of what arrives here
    collective::Request request;
    std::vector<collective::Request> messages;  // of the open call
    Call call;
    Client* client = nullptr;  // of the open call
    Client* leaver = nullptr;  // to be told that the rank has left
    Instant wake_at =
        Instant::infinite_future();  // the armed wake-up; an event of another time is void
    Uplink uplink;
    bool pump_due = false;
    bool paused = false;
    bool dead = false;
    std::vector<Kept> socket;  // of a paused process
    std::size_t socket_bytes = 0;
    std::vector<std::uint32_t> hearers;  // of its multicast
  };

  CoreEndpoints(EventQueue& queue, Network& network, bool contents, std::size_t datagram_bytes)
      : queue_(queue),
        network_(network),
        contents_(contents),
        arrived_(contents ? 0 : datagram_bytes, std::byte{0}) {}

  Status set_up_multicast(const scenario::Scenario& scenario);
  void on_packet(Instant now, const Packet& packet, ByteSpan payload) override;
  void expect(const Packet& packet) const override;
  void pass_faults(Instant now, std::uint32_t rank, Datagram datagram);
  void hold_back(Instant until, std::uint32_t rank, const Datagram& datagram);
  Kept keep(const Datagram& datagram);
  void hand_in_kept(Instant now, std::uint32_t rank, const Kept& kept);
  void hand_in(Instant now, std::uint32_t rank, const Datagram& datagram);
  void keep_in_socket(Node& node, const Datagram& datagram);
  void want_pump(Instant now, std::uint32_t rank);
  void pump(Instant now, std::uint32_t rank);
  void launch(Instant now, std::uint32_t rank, const Train& train);
  ByteSpan in_a_row(const Train& train);
  ByteSpan whole(const Datagram& datagram);
  void arm(Instant now, std::uint32_t rank);
  void finish_call(Instant now, std::uint32_t rank);
  static bool is_done(const Node& node);
  static CallResult result_of(Instant now, const Node& node);

  EventQueue& queue_;
  Network& network_;
  CoreObserver* observer_ = nullptr;
  std::vector<Node> nodes_;
  std::vector<Kept> held_;  // by Operation.inject's delay, reordering and duplication
  std::vector<std::uint32_t> free_held_;
  protocol::TrainBuffer buffer_;
  std::vector<std::byte> train_bytes_;  // in a row
  std::vector<std::byte> corrupted_;    // a datagram that Operation.inject damaged
  bool contents_ = true;
  std::vector<std::byte> arrived_;  // without contents: a header, and zeros behind it
  std::uint64_t injected_losses_ = 0;
  std::uint64_t socket_losses_ = 0;
};

}  // namespace leeway::sim
