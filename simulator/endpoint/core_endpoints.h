// The shipping protocol core at every rank: a collective::Node for each process, over the simulated
// network in virtual time.
//
// The first communicator has all processes; a process's number is its rank there. Further
// communicators have some of the processes. Each process joins, aborts and leaves them at a time of
// its own.
//
// With lanes (Operation.lanes) a process has one node and one socket for each lane, behind one
// uplink, as in the library. The communicators of this class use lane 0 unless add() names another
// one. In this class each lane of a process counts as a process, with number lane * ranks + rank.
// On the network it has the number of its rank.
//
// This class adds models of the machine around the core, and nothing of the protocol. The socket
// makes the sender wait while the uplink is full. A process may be stopped (datagrams then wait in
// its socket, up to the socket's buffer) or die. The library's own fault injection ($LEEWAY_FAULT,
// Operation.inject) acts between socket and core.
//
// Without contents (scenario.contents) tensors have a size and no memory, and the network carries
// only the headers of data packets. Lengths and times of datagrams stay the same. The payload that
// the core sends is never read; the receiver gets zeros in its place.
//
// core_endpoints.cc: set-up and events of processes. core_calls.cc: calls of clients.
// core_arrivals.cc and core_departures.cc: datagrams from and to the network.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collective/node.h"
#include "endpoint/addresses.h"
#include "endpoint/core_observer.h"
#include "endpoint/endpoints.h"
#include "endpoint/uplink.h"
#include "impairment/fault_plan.h"
#include "network/network.h"
#include "protocol/pieces.h"
#include "scenario.pb.h"
#include "seal/associations.h"
#include "seal/forwarding.h"
#include "seal/relay_shares.h"
#include "seal/roaming.h"
#include "sealing/null_cipher.h"
#include "topology/topology.h"

namespace leeway::sim {

// All ranks use one seed, as with LEEWAY_SEED. Over a real network, the same seed gives the same
// permutations, stochastic rounding and virtual losses.
class CoreEndpoints final : public Endpoints, private PacketReceiver {
 public:
  // Attaches itself to the network for data and control. All arguments must outlive it. The
  // scenario must be valid.
  static Result<std::unique_ptr<CoreEndpoints>> make(const scenario::Scenario& scenario,
                                                     std::uint64_t seed, const Topology& topology,
                                                     EventQueue& queue, Network& network);

  // Sets the observer of the first communicator.
  void observe(CoreObserver* observer) { communicators_[0].observer = observer; }

  // Ends the faults of Operation.inject.
  void set_calm();
  // From now on the network carries no multicast.
  void stop_multicast();

  void submit(Instant now, std::uint32_t rank, const Call& call, Client& client) override {
    submit(now, 0, rank, call, client);
  }
  void on_event(const Event& event) override;
  void pause(Instant now, std::uint32_t rank) override;
  void resume(Instant now, std::uint32_t rank) override;
  void kill(Instant now, std::uint32_t rank) override;
  // Gives the process another address, or only another port. Datagrams must be sealed.
  void change_address(std::uint32_t rank, bool port_only);

  // Makes the rank leave the first communicator, `at_once` or after serving its peers until they
  // are quiet, and ends its process. `client` is told when it has left. The rank must have no open
  // call and submit none later. Its process must be in no other communicator.
  void leave(Instant now, std::uint32_t rank, bool at_once, Client& client);

  // ---- further communicators; `communicator` 0 is the first one ----

  // Adds a communicator that has no members yet, and returns its number. `processes` holds the
  // process of each rank. No other communicator may have the epoch.
  std::uint32_t add(std::uint32_t epoch, std::vector<Rank> processes, CoreObserver* observer,
                    std::uint32_t lane = 0);
  // Makes the rank a member. Its process may have kept datagrams for the communicator; the observer
  // is first told of these, as if they arrived now.
  const collective::Engine& open(Instant now, std::uint32_t communicator, std::uint32_t rank);
  void submit(Instant now, std::uint32_t communicator, std::uint32_t rank, const Call& call,
              Client& client);
  // Does what Communicator::abort() does: ends the open call and tells its client before returning.
  // Returns true if all open operations of the call failed with kCancelled.
  bool abort(Instant now, std::uint32_t communicator, std::uint32_t rank);
  // Makes the rank leave the communicator after serving its peers (leave()). Its process goes on.
  void close(Instant now, std::uint32_t communicator, std::uint32_t rank, Client& client);

  const collective::Engine& engine(std::uint32_t rank) const {
    return communicators_[0].seats[rank].member->engine();
  }
  const collective::Node& node(std::uint32_t process) const { return *processes_[process].node; }
  // Returns true if no live rank has anything open. A confirmation that is awaited counts as open.
  bool idle() const;
  // Returns null if nothing is sealed.
  const seal::Associations* seals(std::uint32_t process) const {
    return processes_[process].seals.get();
  }
  // Returns null if nothing is sealed, because addresses then do not matter.
  const Addresses* addresses() const { return addresses_ ? &*addresses_ : nullptr; }
  // Returns null if nothing is sealed.
  const seal::Roaming* roaming(std::uint32_t process) const {
    return processes_[process].roaming.get();
  }
  // Returns counts of the datagrams that the process forwarded as a relay.
  const seal::Forwarding::Counters& forwarded(std::uint32_t process) const {
    return processes_[process].forwarding.counters();
  }
  // Number of datagrams that Operation.inject lost.
  std::uint64_t injected_losses() const { return injected_losses_; }
  // Number of datagrams that found a paused rank's socket full.
  std::uint64_t socket_losses() const { return socket_losses_; }

 private:
  enum class Step : std::uint64_t { pump = 0, wake = 1, arrive = 2 };

  // A datagram that has arrived. `payload` is its number in the network's pool, or kNoPayload if
  // `bytes` lie elsewhere. Without contents, `bytes` may be only the header. `length` is always the
  // length of the whole datagram.
  struct Datagram {
    std::uint32_t from;
    ByteSpan bytes;
    std::size_t length;
    std::uint32_t payload;
    Ecn ecn = Ecn::none;
  };
  // A datagram that waits: in a paused process's socket, or because of Operation.inject. The pool
  // keeps its payload until the datagram is handed in or dropped.
  struct Kept {
    std::uint32_t from = 0;
    std::uint32_t payload = kNoPayload;
    std::uint32_t length = 0;
    Ecn ecn = Ecn::none;
  };
  // A datagram that this process forwards as a relay, sealed for its receiver. The pool keeps its
  // payload until the datagram is sent or dropped.
  struct Onward {
    Rank to = kNoRank;
    std::uint32_t payload = kNoPayload;
    std::uint32_t length = 0;
    bool is_share = false;  // a message of the relay itself, and no forwarded datagram
  };
  // The place of one process in one communicator.
  struct Seat {
    std::uint32_t process = 0;
    std::uint32_t communicator = 0;
    std::uint32_t rank = 0;
    collective::Member* member = nullptr;  // null before it is opened
    std::unique_ptr<collective::Member> former;
    collective::Request request;
    std::vector<collective::Request> messages;  // requests of the open call
    Call call;
    Client* client = nullptr;  // client of the open call
    Client* leaver = nullptr;  // client that is told when the rank has left
    bool aborted = false;
  };
  struct Communicator {
    std::uint32_t epoch = 0;
    std::uint32_t lane = 0;
    std::vector<Rank> processes;  // by rank
    std::vector<Seat> seats;      // by rank
    CoreObserver* observer = nullptr;
  };
  struct Process {
    std::unique_ptr<collective::Node> node;
    std::unique_ptr<NullExchange> exchange;     // null if nothing is sealed
    std::unique_ptr<seal::Associations> seals;  // likewise
    std::unique_ptr<seal::Roaming> roaming;     // likewise
    seal::Forwarding forwarding;
    seal::RelayShares shares;
    std::vector<Onward> onward;
    std::optional<impairment::FaultPlan> faults;  // faults of datagrams that arrive here
    std::vector<Seat*> seats;                     // seats whose member is one of the node's
    Instant wake_at =
        // Time of the scheduled wake-up. Wake-up events of any other time are ignored.
        Instant::infinite_future();
    Uplink uplink;
    bool pump_due = false;
    bool paused = false;
    bool dead = false;
    std::vector<Kept> socket;  // datagrams that wait while the process is paused
    std::size_t socket_bytes = 0;
    std::uint64_t socket_losses = 0;
    std::vector<std::uint32_t> hearers;  // processes that hear this one's multicast
    collective::Lobby lobby;             // the same contents as in the node's own lobby
    // Pieces of datagrams, by sender. The node puts pieces together for itself; these serve to tell
    // observers of whole datagrams.
    std::vector<protocol::Pieces> arriving;
  };

  CoreEndpoints(EventQueue& queue, Network& network, bool contents, std::size_t datagram_bytes,
                std::size_t socket_bytes)
      : socket_bytes_(socket_bytes),
        queue_(queue),
        network_(network),
        contents_(contents),
        arrived_(contents ? 0 : datagram_bytes, std::byte{0}) {}

  Status set_up_processes(const scenario::Scenario& scenario, std::uint64_t seed,
                          const Topology& topology);
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(configs_.size()); }
  std::uint32_t rank_of(std::uint32_t process) const { return process % ranks(); }
  std::uint32_t lane_of(std::uint32_t process) const { return process / ranks(); }
  Status set_up_multicast(const scenario::Scenario& scenario);
  void set_up_sealing(const scenario::Scenario& scenario);
  void on_packet(Instant now, const Packet& packet, ByteSpan payload) override;
  void expect(const Packet& packet) const override;
  bool unseal(Instant now, std::uint32_t process, std::uint64_t word, Datagram& datagram);
  bool unseal_relayed(Instant now, std::uint32_t process, const seal::RelayHead& head,
                      const seal::Associations::Opened& outer, Datagram& datagram);
  void roam(Instant now, std::uint32_t rank);
  void change_keys(Instant now, std::uint32_t rank);
  void seal_for_relay(std::uint32_t rank, Rank to, Rank relay, ByteSpan datagram);
  void send_relayed(Instant now, std::uint32_t rank, const Train& train, Rank relay);
  void send_path_message(Instant now, std::uint32_t rank, Rank to, const NetworkAddress& address,
                         ByteSpan sealed, bool core);
  void send_onward(Instant now, std::uint32_t rank);
  std::uint64_t note_sent(Instant now, std::uint32_t rank, const NetworkAddress& to,
                          std::size_t bytes, bool path_message);
  void pass_faults(Instant now, std::uint32_t rank, Datagram datagram);
  void hold_back(Instant until, std::uint32_t rank, const Datagram& datagram);
  Kept keep(const Datagram& datagram);
  void hand_in_kept(Instant now, std::uint32_t rank, const Kept& kept);
  void hand_in(Instant now, std::uint32_t rank, const Datagram& datagram);
  void keep_in_socket(Process& process, const Datagram& datagram);
  void want_pump(Instant now, std::uint32_t rank);
  void pump(Instant now, std::uint32_t rank);
  void launch(Instant now, std::uint32_t rank, const Train& train);
  ByteSpan seal_train(Instant now, std::uint32_t rank, const Train& train);
  ByteSpan in_a_row(const Train& train);
  ByteSpan whole(const Datagram& datagram);
  void arm(Instant now, std::uint32_t rank);
  void finish_call(Instant now, Seat& seat);
  void tell(Instant now, std::uint32_t process, const Datagram& datagram, ByteSpan bytes);
  void tell_cut(const Train& train, std::uint32_t from, ByteSpan datagram);
  void tell_datagram(Instant now, std::uint32_t process, std::uint32_t sender, ByteSpan bytes);
  void tell_stray(Instant now, std::uint32_t process, std::uint32_t from, std::uint32_t epoch,
                  ByteSpan bytes);
  void tell_loss(std::uint32_t process, std::uint32_t from, std::uint32_t epoch);
  void join(Instant now, Seat& seat);
  void part(Seat& seat);
  void settle(Instant now, Seat& seat);
  static std::span<const collective::Request> requests_of(const Seat& seat);
  static std::span<const collective::Request> parts_of(const Seat& seat);
  static bool is_done(const Seat& seat);
  static CallResult result_of(Instant now, const Seat& seat);

  const std::size_t socket_bytes_;  // room of a socket
  EventQueue& queue_;
  Network& network_;
  std::vector<protocol::EndpointConfig> configs_;  // by rank, of the first communicator
  std::vector<Process> processes_;                 // lane by lane
  std::optional<Addresses> addresses_;             // set if datagrams are sealed
  std::deque<Communicator> communicators_;
  // Datagrams that Operation.inject delays, reorders or duplicates.
  std::vector<Kept> held_;
  std::vector<std::uint32_t> free_held_;
  protocol::TrainBuffer buffer_;
  std::vector<std::byte> train_bytes_;  // a train's datagrams, end to end
  std::vector<std::byte> sealed_;       // a sealed train or path message
  std::vector<std::byte> unsealed_;     // a datagram that arrived sealed
  std::vector<std::byte> relayed_;      // one that is sealed for a relay
  std::vector<std::byte> corrupted_;    // a datagram that Operation.inject damaged
  bool contents_ = true;
  bool ecn_capable_ = false;        // datagrams that processes send may be marked
  std::vector<std::byte> arrived_;  // without contents: a header, and zeros behind it
  std::uint64_t injected_losses_ = 0;
  std::uint64_t socket_losses_ = 0;
};

}  // namespace leeway::sim
