// All communicators of one process over its paths to other processes. A node does no I/O, so the
// runtime and the simulator can drive the same class.
//
// A transport tells processes apart by *slots*, a communicator by ranks. Datagrams name their
// communicator by its epoch. Apart from slots in place of ranks, datagrams, time and trains go in
// and out as in Endpoint (protocol/endpoint.h).
//
// A node finds the member that a datagram is for, and lets members take turns. PathSizes, Pacing
// and RelayedPaths care for the paths, each without knowledge of the others.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "collective/answer_queue.h"
#include "collective/former_members.h"
#include "collective/lobby.h"
#include "collective/member.h"
#include "collective/pacing.h"
#include "collective/path_sizes.h"
#include "collective/paths.h"
#include "collective/relayed_paths.h"
#include "collective/rotation.h"

namespace leeway::collective {

class Node {
 public:
  // `congestion`: settings for pacing all datagrams that this process sends.
  explicit Node(const congestion::Settings& congestion = {}) { pace(Instant{0}, congestion); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Turns on the search for the longest datagram of each path. Call before any join.
  void measure_sizes(const protocol::SizeLimits& limits) { paths_.measure(limits); }
  // Finds datagram lengths, and lets ranks agree on one. Call touch() after agree() or tell().
  PathSizes& sizes() { return sizes_; }

  // Paces all datagrams that this process sends from now on. Returns false, and changes nothing, if
  // they are paced already or the settings ask for no pacing.
  bool pace(Instant now, const congestion::Settings& congestion) {
    return pacing_.begin(now, congestion);
  }
  // Makes this node a further lane of the process of `first`: both send within the one pace of
  // `first`. No other thread may use either node meanwhile. Returns false, and changes nothing, if
  // this node is paced already or `first` is not.
  bool pace_with(Instant now, Node& first) { return pacing_.begin_with(now, first.pacing_); }
  // Sets a callback. It is called when data that was held back may leave earlier than next_wake()
  // said. The thread that drives another lane may call it, so the callback must not use any node.
  void wake_by(std::function<void()> wake) { pacing_.wake_by(std::move(wake)); }

  // Makes this process a member of a communicator. `slots`: by rank. Datagrams that arrived for the
  // communicator earlier are taken in now. No other member may have its epoch.
  Member& join(Instant now, const protocol::EndpointConfig& config, std::vector<Rank> slots,
               MemoryWatcher* watcher = nullptr);
  // Takes the member out and returns it. From now on peers that speak to it get a good-bye (WIRE
  // 6.8).
  std::unique_ptr<Member> part(Member& member);
  bool has(std::uint32_t epoch) const { return find(epoch) != nullptr; }

  // Call it after direct use of the member's engine or endpoint, which may now have datagrams to
  // send.
  void touch(Member& member);

  void on_datagram(Instant now, Rank slot, ByteSpan datagram, Ecn ecn = Ecn::none);
  // Forgets the measurements of the path to the process in the slot. Call it when a transport has
  // proved that the process moved to another host, or is now reached through the process `relay`. A
  // relay makes each datagram `further` bytes longer.
  void on_new_path(Instant now, Rank slot, Rank relay = kNoRank, std::size_t further = 0);
  // Limits what this process sends through `relay` to `bytes_per_second`, because the relay drops
  // what exceeds that rate (WIRE 9.10).
  void on_relay_share(Instant now, Rank relay, std::uint64_t bytes_per_second) {
    relayed_.on_share(now, relay, bytes_per_second);
  }
  // Call it when this process, as a relay, has forwarded `bytes` bytes for other processes. Charges
  // the bytes to its own pace. Members that are leaving then stay for longer, so that the process
  // goes on forwarding.
  void note_forwarded(Instant now, std::uint64_t bytes);
  // Tells peers how many of their datagrams this process's socket dropped, so that they send
  // shorter bursts (congestion/receive_room.h). `drops`: the socket's drops so far. `socket_bytes`:
  // size of its buffer. Call it while datagrams arrive, whenever wants_host_drops() is true.
  // Without pacing wants_host_drops() is always false.
  bool wants_host_drops(Instant now) const { return pacing_.wants_host_drops(now); }
  void on_host_drops(Instant now, std::uint64_t drops, std::size_t socket_bytes) {
    pacing_.on_host_drops(now, drops, socket_bytes);
  }
  // Call it at next_wake(), and after touch(). `released`: number of the last train up to which the
  // transport no longer reads any. A member that sent a later train starts no operation, because
  // the transport still reads its memory.
  void on_wake(Instant now, std::uint64_t released = UINT64_MAX);
  // Writes the next train of some member, addressed to a slot. Members are served in rotation.
  bool poll_train(Instant now, protocol::TrainBuffer& out);
  std::uint64_t trains() const { return trains_; }
  // Time at which on_wake() is due; infinite future if never.
  Instant next_wake() const;
  // Fails all requests of all members, as Engine::cancel().
  void cancel_all(Instant now, const Status& status);

  // Returns true if an operation is open, so that peers may have to send something.
  bool busy() const;

  const protocol::Path& path(Rank slot) const { return paths_[slot]; }
  // Returns null if nothing is paced.
  const congestion::Uplink* uplink() const { return pacing_.uplink(); }
  // Datagrams that reached no member, counted by wire::Refusal.
  const std::array<std::uint64_t, wire::kRefusals>& refused() const { return refused_; }

 private:
  Member* find(std::uint32_t epoch) const;
  void wake(Instant now, Member& member, std::uint64_t released);
  void spread_credit(Rank slot);
  void spread_deaths(Instant now, Member& finder);
  void on_stranger(Instant now, Rank slot, std::uint32_t epoch, ByteSpan datagram);
  void answer_probe(const wire::Prefix& probe, Rank slot);
  void on_process_datagram(Instant now, Rank slot, ByteSpan datagram, Ecn ecn);
  void refuse(wire::Refusal reason) { ++refused_[static_cast<int>(reason)]; }
  bool poll_members(Instant now, protocol::TrainBuffer& out);
  bool poll_paced(Instant now, protocol::TrainBuffer& out);
  bool hand_out(Instant now, Member& member, protocol::TrainBuffer& out);
  void address(Instant now, Member& member, protocol::TrainBuffer& out);

  Paths paths_;
  Pacing pacing_{paths_};
  RelayedPaths relayed_{paths_};
  AnswerQueue answers_;
  PathSizes sizes_{paths_, answers_};
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<Member*> touched_;
  Rotation rotation_;
  mutable Member* latest_ = nullptr;  // member whose datagram came last
  // No member has to be woken before this time.
  mutable Instant soonest_ = Instant::infinite_future();
  std::size_t held_back_ = 0;  // members
  std::uint64_t trains_ = 0;
  Lobby lobby_;
  FormerMembers former_;
  std::array<std::uint64_t, wire::kRefusals> refused_{};
};

}  // namespace leeway::collective
