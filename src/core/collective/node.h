// All communicators of one process over its paths to other processes. It does no I/O, like the
// engines that it holds: the runtime and the simulator drive this same class.
//
// A transport tells processes apart by *slots*; a communicator tells them apart by ranks. Datagrams
// name their communicator by its epoch. Datagrams, time and trains go in and out as in Endpoint
// (protocol/endpoint.h), with slots in place of ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "collective/engine.h"
#include "collective/lobby.h"
#include "congestion/receive_room.h"
#include "congestion/relay_pace.h"
#include "congestion/uplink.h"
#include "protocol/path.h"

namespace leeway::collective {

// This process as a member of one communicator. Made by Node::join().
class Member {
 public:
  Member(const protocol::EndpointConfig& config, std::vector<Rank> slots,
         std::span<protocol::Path* const> paths, MemoryWatcher* watcher);

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  const protocol::EndpointConfig& config() const { return engine_.endpoint().config(); }

  Rank slot_of(Rank rank) const { return slots_[rank]; }
  // Returns kNoRank if the process in that slot is no member.
  Rank rank_in(Rank slot) const { return slot < ranks_.size() ? ranks_[slot] : kNoRank; }

  // Number of trains that Node::poll_train() had handed out, up to and including this member's
  // latest. Once that many are no longer read, none of this member's is.
  std::uint64_t trains_end() const { return trains_end_; }

  // Length of the longest datagram that all ranks' paths carry to each other. Returns nullopt until
  // all have told theirs (Node::agree_on_size).
  std::optional<std::size_t> agreed_bytes() const;
  // The other ranks that have not told their size.
  std::vector<Rank> untold_sizes() const;
  // Returns true if each peer has acknowledged this rank's size, or is gone. Also true if ranks do
  // not ask each other.
  bool all_know_size() const;

 private:
  friend class Node;

  Engine engine_;
  std::vector<Rank> slots_;  // by rank
  std::vector<Rank> ranks_;  // by slot
  std::uint64_t trains_end_ = 0;
  bool touched_ = false;    // is to be woken, whatever the time
  bool sends_ = false;      // is in Node::sending_
  bool held_back_ = false;  // operations wait until its trains are no longer read
  std::uint64_t deaths_seen_ = 0;
  // Length of the longest datagram that each rank's paths carry, including this one's; 0 if not
  // known.
  std::vector<std::uint16_t> sizes_;
  std::vector<bool> knows_size_;  // by rank: it has acknowledged this one's size
  Rank size_asked_ = 0;           // ranks below were asked for their size
  bool size_told_ = false;        // all ranks that may not know this one's size were told it
  // Number of the first question that told this one's size; 0 if none.
  std::uint32_t first_told_ = 0;
};

struct SizeCounters {
  std::uint64_t probes_sent = 0;
  std::uint64_t datagrams_cut = 0;  // sent in pieces
  std::uint64_t pieces_joined = 0;  // datagrams put together
  // Number of times that a path was found to carry less than before.
  std::uint64_t paths_narrowed = 0;
};

class Node {
 public:
  // `congestion`: settings for pacing all datagrams that this process sends.
  explicit Node(const congestion::Settings& congestion = {});
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Turns on the search for the longest datagram of each path. Call before any join.
  void measure_sizes(const protocol::SizeLimits& limits) { sizes_ = limits; }

  // Paces all datagrams that this process sends from now on. Returns false, and changes nothing, if
  // it is paced already or the settings ask for no pacing.
  bool pace(Instant now, const congestion::Settings& congestion);
  // Makes this node a further lane of the process of `first`: from now on it sends within the share
  // of the link that `first` has. No other thread may use either node meanwhile. Returns false, and
  // changes nothing, if this node is paced already or `first` is not.
  bool pace_with(Instant now, Node& first);
  // Sets a callback for when data that was held back may leave earlier than next_wake() told. The
  // driver of another lane of this process calls it, and it must not use any node.
  void wake_by(std::function<void()> wake);

  // Becomes a member of a communicator whose ranks are these slots. Hands in datagrams that arrived
  // for it already. No other member may have its epoch.
  Member& join(Instant now, const protocol::EndpointConfig& config, std::vector<Rank> slots,
               MemoryWatcher* watcher = nullptr);
  // Takes the member out and returns it. Peers that still speak to it are answered by a good-bye
  // (WIRE 6.8).
  std::unique_ptr<Member> part(Member& member);
  bool has(std::uint32_t epoch) const { return find(epoch) != nullptr; }
  std::size_t size() const { return members_.size(); }

  // Call after using the member's engine or endpoint directly: it may have datagrams to send.
  void touch(Member& member);

  // Tells the other ranks which size this one's paths carry, once that is known for all of them,
  // and asks ranks that have not told theirs. Repeat until Member::agreed_bytes() has a value.
  // Without `measured`, this rank tells its configured size, whatever its paths carry. Returns true
  // if this rank's own size is known.
  bool agree_on_size(Member& member, bool measured);
  // Before a member leaves: tells its size to the peers that may still wait for it. Repeat until
  // Member::all_know_size().
  void tell_size(Member& member);
  // Returns a rank to which no datagram of a useful length passes, although short ones do; else
  // kNoRank.
  Rank too_narrow(const Member& member) const;

  void on_datagram(Instant now, Rank slot, ByteSpan datagram, Ecn ecn = Ecn::none);
  // Forgets the measurements of the path to the process in the slot. It has moved to another host,
  // or is reached through another process, `relay`, from now on, with `further` bytes more in each
  // datagram. A transport has proved it.
  void on_new_path(Instant now, Rank slot, Rank relay = kNoRank, std::size_t further = 0);
  // That relay passes on this much of the data that this process sends through it, and drops the
  // rest.
  void on_relay_share(Instant now, Rank relay, std::uint64_t bytes_per_second);
  // The path to the process leads through memory: datagrams of any length pass.
  void lift_size(Rank slot) { paths_[slot]->size = protocol::PathSize(); }
  // This process forwarded `bytes` bytes for others. They are taken from what it may send itself.
  // Members that leave stay for as long as it forwards.
  void note_forwarded(Instant now, std::uint64_t bytes);
  // `drops` datagrams have found this process' socket full by now; it holds `socket_bytes`. Peers
  // hear how many of theirs were dropped, and send less at a time (congestion/receive_room.h). Call
  // it while datagrams arrive, as often as wants_host_drops() asks: never if nothing is paced.
  bool wants_host_drops(Instant now) const { return now >= room_at_; }
  void on_host_drops(Instant now, std::uint64_t drops, std::size_t socket_bytes);
  // The system refused a datagram of `bytes` bytes for its length.
  void on_refused(Instant now, Rank slot, std::size_t bytes);
  // Time passed, or members were touched. `released`: number of handed-out trains that are no
  // longer read. Members with later ones start no operation.
  void on_wake(Instant now, std::uint64_t released = UINT64_MAX);
  // Writes the next train of some member, addressed to a slot. Members are served in rotation.
  bool poll_train(Instant now, protocol::TrainBuffer& out);
  std::uint64_t trains() const { return trains_; }
  std::optional<Instant> next_wake() const;
  // Fails all requests of all members, as Engine::cancel_all().
  void cancel_all(Instant now, const Status& status);

  // Returns true if any operation is open: peers may have to send something.
  bool busy() const;

  const protocol::Path& path(Rank slot) const { return *paths_[slot]; }
  // Returns null if nothing is paced.
  const congestion::Uplink* uplink() const { return uplink_.get(); }
  const SizeCounters& size_counters() const { return size_counters_; }
  // Datagrams that reached no member, by wire::Refusal.
  const std::array<std::uint64_t, wire::kRefusals>& refused() const { return refused_; }

 private:
  // A communicator that this process has left.
  struct Closed {
    std::uint32_t epoch = 0;
    Rank self = 0;
    std::vector<Rank> slots;
    std::uint16_t size = 0;  // Member::sizes_ of self
  };
  struct Answer {
    wire::Prefix prefix;
    Rank slot = 0;
    wire::Size size;
  };

  Member* find(std::uint32_t epoch) const;
  // A new path is searched for datagrams of `bytes_max` at most, which is what both ends'
  // interfaces send.
  protocol::Path& path_of(Rank slot, std::size_t bytes_max = SIZE_MAX);
  void wake(Instant now, Member& member, std::uint64_t released);
  void queue(Member& member);
  void spread_credit(Rank slot);
  void spread_deaths(Instant now, Member& finder);
  void on_stranger(Instant now, Rank slot, std::uint32_t epoch, ByteSpan datagram);
  void answer(Instant now, const Closed& closed, Rank slot, ByteSpan datagram);
  void answer_probe(const wire::Prefix& probe, Rank slot);
  void refuse(wire::Refusal reason) { ++refused_[static_cast<int>(reason)]; }
  bool poll_paced(Instant now, protocol::TrainBuffer& out);
  bool hand_out(Instant now, Member& member, protocol::TrainBuffer& out);
  void address(Instant now, Member& member, protocol::TrainBuffer& out);
  void note_paced(Instant now, const protocol::TrainBuffer& out, double share = 1);
  void begin_pacing(Instant now, std::unique_ptr<congestion::Uplink> uplink);
  void begin_link(Rank slot);
  void note_relayed(Instant now, const protocol::TrainBuffer& out);
  void hold_relayed(Instant now, Rank relay);
  void wake_relayed(Instant now);
  void note_report(Instant now, Rank slot);
  // node_sizes.cc
  void on_process_datagram(Instant now, Rank slot, ByteSpan datagram, Ecn ecn);
  void on_size(Instant now, Rank slot, const wire::Prefix& prefix, const wire::Size& size);
  void on_piece(Instant now, Rank slot, const wire::Prefix& prefix, ByteSpan datagram, Ecn ecn);
  const Member* member_with(Rank slot) const;
  bool write_size(Instant now, protocol::TrainBuffer& out);
  bool write_size_probe(Instant now, protocol::TrainBuffer& out);
  bool write_size_question(protocol::TrainBuffer& out);
  std::size_t least_size(const Member& member, bool measured) const;
  void fit_to_path(Instant now, protocol::TrainBuffer& out);
  void look_at_size_by(Instant at) { sizes_at_ = std::min(sizes_at_, at); }

  bool poll_any(Instant now, protocol::TrainBuffer& out, bool& numbered);
  void write_answer(Instant now, const Answer& answer, protocol::TrainBuffer& out);

  std::vector<std::unique_ptr<protocol::Path>> paths_;  // by slot; null before the first member
  std::unique_ptr<congestion::Uplink> uplink_;          // not set if nothing is paced
  // By slot: the relay through which datagrams go to it, and by how many bytes they are longer.
  struct Relayed {
    Rank relay = kNoRank;
    std::size_t further = 0;
  };
  std::vector<Relayed> relayed_;
  std::vector<congestion::RelayPace> relays_;  // by slot; empty before the first relay limits
  // No held path opens before this time.
  Instant relays_at_ = Instant::infinite_future();
  std::function<void()> wake_;
  congestion::ReceiveRoom receive_room_;  // its peers are slots
  std::vector<congestion::ReceiveRoom::Arrived> arrived_;
  Instant room_at_ = Instant::infinite_future();
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<Member*> touched_;
  std::vector<Member*> sending_;  // in rotation, from sending_at_ on
  std::size_t sending_at_ = 0;
  mutable Member* latest_ = nullptr;  // member whose datagram came last
  // No member is to be woken before this time.
  mutable Instant soonest_ = Instant::infinite_future();
  std::size_t held_back_ = 0;  // members
  std::uint64_t trains_ = 0;
  Lobby lobby_;
  std::vector<Closed> closed_;  // the latest ones, in a ring
  std::size_t next_closed_ = 0;
  std::vector<Answer> answers_;
  std::array<std::uint64_t, wire::kRefusals> refused_{};
  protocol::SizeLimits sizes_;
  // No path is to be looked at before this time.
  Instant sizes_at_ = Instant::infinite_future();
  bool sizes_due_ = false;       // some paths have probes to send
  Member* asks_size_ = nullptr;  // has ranks to ask for their size
  // Questions sent so far. Each has a number of its own: injected faults go by it, and would
  // otherwise lose all of a link or none.
  std::uint32_t size_questions_ = 0;
  std::vector<std::byte> whole_;  // a train that is being cut
  SizeCounters size_counters_;
};

}  // namespace leeway::collective
