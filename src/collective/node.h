// All communicators of one process over its paths to other processes. Sans-IO, like the engines
// that it holds: the runtime and the simulator drive this same class.
//
// A transport tells processes apart by *slots*; a communicator tells them apart by ranks. Datagrams
// name their communicator by its epoch. The conversation with the world is an Endpoint's
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
  // kNoRank: that process is no member.
  Rank rank_in(Rank slot) const { return slot < ranks_.size() ? ranks_[slot] : kNoRank; }

  // Trains that Node::poll_train() had handed out when it handed out this member's latest: when so
  // many are no longer read, none of this member's is.
  std::uint64_t trains_end() const { return trains_end_; }

  // The longest datagram that all ranks' paths carry to each other; nothing: not all have said what
  // theirs do (Node::agree_on_size).
  std::optional<std::size_t> agreed_bytes() const;
  // The other ranks that have not.
  std::vector<Rank> untold_sizes() const;
  // Each peer has answered what told it this rank's, or is gone; or ranks do not ask each other.
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
  // The longest datagram that each rank's paths carry, this one's included; 0: not known
  std::vector<std::uint16_t> sizes_;
  std::vector<bool> knows_size_;  // by rank: it has answered what told it this one's
  Rank size_asked_ = 0;           // ranks below were asked for theirs
  bool size_told_ = false;        // all ranks that may not know this one's were told it
  std::uint32_t first_told_ = 0;  // number of the first question with this one's; 0: none
};

struct SizeCounters {
  std::uint64_t probes_sent = 0;
  std::uint64_t datagrams_cut = 0;   // sent in pieces
  std::uint64_t pieces_joined = 0;   // datagrams put together
  std::uint64_t paths_narrowed = 0;  // how often a path was found to carry less than before
};

class Node {
 public:
  // `congestion`: what paces all that this process sends.
  explicit Node(const congestion::Settings& congestion = {});
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Before any join: how long datagrams may be on each path is found out from now on.
  void measure_sizes(const protocol::SizeLimits& limits) { sizes_ = limits; }

  // From now on all that this process sends is paced so. False, and nothing changes: it is paced
  // already, or the settings ask for nothing.
  bool pace(Instant now, const congestion::Settings& congestion);
  // From now on what this node sends goes into the share of the line that `first` has: this one is
  // a further lane of its process. Nobody else uses either meanwhile. False, and nothing changes:
  // it is paced already, or `first` is not.
  bool pace_with(Instant now, Node& first);
  // Called, by whoever drives another lane of this process, when data that was held back may leave
  // earlier than next_wake() said. It must not use any node.
  void wake_by(std::function<void()> wake);

  // Becomes a member of a communicator whose ranks are these slots; what arrived for it already is
  // handed in. No other member has its epoch.
  Member& join(Instant now, const protocol::EndpointConfig& config, std::vector<Rank> slots,
               MemoryWatcher* watcher = nullptr);
  // Gives the member back, which is one no longer. Whoever still speaks to it is answered by a
  // good-bye (WIRE 6.8).
  std::unique_ptr<Member> part(Member& member);
  bool has(std::uint32_t epoch) const { return find(epoch) != nullptr; }
  std::size_t size() const { return members_.size(); }

  // After the member's engine or endpoint was spoken to directly: it may have something to send.
  void touch(Member& member);

  // Tells the other ranks what this one's paths carry, as soon as that is known of all of them, and
  // asks those that have not told theirs. To be repeated until Member::agreed_bytes() says
  // something. Not `measured`: this rank means the size that it has, whatever its paths carry.
  // Whether this rank's own is known.
  bool agree_on_size(Member& member, bool measured);
  // Before a member leaves: tells its size to the peers that may still wait for it. To be repeated
  // until Member::all_know_size().
  void tell_size(Member& member);
  // A rank to which no datagram of a useful length passes, although short ones do; or kNoRank.
  Rank too_narrow(const Member& member) const;

  void on_datagram(Instant now, Rank slot, ByteSpan datagram, Ecn ecn = Ecn::none);
  // The process in the slot has moved to another host, or is reached through another process from
  // now on, `relay`, with `further` bytes more in each datagram (a transport proved it): what was
  // measured of the path to it is forgotten.
  void on_new_path(Instant now, Rank slot, Rank relay = kNoRank, std::size_t further = 0);
  // That relay passes on so much of what this process sends through it, and drops the rest.
  void on_relay_share(Instant now, Rank relay, std::uint64_t bytes_per_second);
  // The path to the process leads through memory: whatever is sent passes.
  void lift_size(Rank slot) { paths_[slot]->size = protocol::PathSize(); }
  // So many bytes left this process for others: they are taken from what it may send itself, and
  // members that leave stay for as long as it is used.
  void note_forwarded(Instant now, std::uint64_t bytes);
  // So many datagrams have found this process' socket full by now; it holds `socket_bytes`. Peers
  // hear how many were theirs, and send less at a time (congestion/receive_room.h). To be called
  // while anything arrives, as often as wants_host_drops() says: never where nothing is paced.
  bool wants_host_drops(Instant now) const { return now >= room_at_; }
  void on_host_drops(Instant now, std::uint64_t drops, std::size_t socket_bytes);
  // The system refused a datagram of so many bytes for its length.
  void on_refused(Instant now, Rank slot, std::size_t bytes);
  // Time passed, or members were touched. `released`: how many of the trains handed out are no
  // longer read; members with later ones start nothing.
  void on_wake(Instant now, std::uint64_t released = UINT64_MAX);
  // The next train of some member, addressed to a slot; members take turns.
  bool poll_train(Instant now, protocol::TrainBuffer& out);
  std::uint64_t trains() const { return trains_; }
  std::optional<Instant> next_wake() const;
  // Fails everything of all members, as Engine::cancel_all().
  void cancel_all(Instant now, const Status& status);

  // Whether any operation is open: peers may owe something.
  bool busy() const;

  const protocol::Path& path(Rank slot) const { return *paths_[slot]; }
  // Null: nothing paces.
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
  // A new one is searched for datagrams of `bytes_max` at most: what both ends' interfaces send.
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

  std::vector<std::unique_ptr<protocol::Path>> paths_;  // by slot; null: not met yet
  std::unique_ptr<congestion::Uplink> uplink_;          // null: not paced
  // By slot: through whom datagrams go to it, and by how much they are longer.
  struct Relayed {
    Rank relay = kNoRank;
    std::size_t further = 0;
  };
  std::vector<Relayed> relayed_;
  std::vector<congestion::RelayPace> relays_;  // by slot; empty before the first relay limits
  // No held path opens before
  Instant relays_at_ = Instant::infinite_future();
  std::function<void()> wake_;
  congestion::ReceiveRoom receive_room_;  // its peers are slots
  std::vector<congestion::ReceiveRoom::Arrived> arrived_;
  Instant room_at_ = Instant::infinite_future();
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<Member*> touched_;
  std::vector<Member*> sending_;  // in turn, from sending_at_ on
  std::size_t sending_at_ = 0;
  mutable Member* latest_ = nullptr;  // whose datagram came last
  // No member is to be woken before
  mutable Instant soonest_ = Instant::infinite_future();
  std::size_t held_back_ = 0;  // members
  std::uint64_t trains_ = 0;
  Lobby lobby_;
  std::vector<Closed> closed_;  // the latest ones, in a ring
  std::size_t next_closed_ = 0;
  std::vector<Answer> answers_;
  std::array<std::uint64_t, wire::kRefusals> refused_{};
  protocol::SizeLimits sizes_;
  // No path is to be looked at before
  Instant sizes_at_ = Instant::infinite_future();
  bool sizes_due_ = false;       // some have probes to send
  Member* asks_size_ = nullptr;  // has ranks to ask for their size
  // Sent so far. Each has a number of its own: injected faults go by it, and would lose all of a
  // link or none.
  std::uint32_t size_questions_ = 0;
  std::vector<std::byte> whole_;  // a train that is being cut
  SizeCounters size_counters_;
};

}  // namespace leeway::collective
