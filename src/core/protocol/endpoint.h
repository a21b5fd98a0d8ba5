// Protocol core of one rank, without I/O. Time and datagrams come in; trains of datagrams (GSO
// batches) and a wake-up time come out.
//
//   on_datagram(now, from, bytes)   a datagram arrived
//   on_wake(now)                    time passed; first hand in all datagrams that have arrived
//   poll_train(now, buffer)         writes the datagrams to send next, until it returns false
//   wake_at()                       when on_wake() is due
//
// Endpoint never reads a clock, opens a socket, starts a thread or logs. It allocates only when a
// round opens and when the rank leaves. Comments cite the rules of proto/README.md as WIRE n. This
// class hands each event to the part that handles it, and then removes rounds that have ended. The
// parts are the members at the end of this file; README.md describes them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "leeway/status.h"
#include "protocol/control_writer.h"
#include "protocol/endpoint_state.h"
#include "protocol/inquiry.h"
#include "protocol/leaving.h"
#include "protocol/liveness.h"
#include "protocol/opening.h"
#include "protocol/packet_order.h"
#include "protocol/progress.h"
#include "protocol/receiver.h"
#include "protocol/report_reader.h"
#include "protocol/sender.h"
#include "protocol/settling.h"
#include "protocol/watched_tags.h"

namespace leeway::protocol {

class Endpoint {
 public:
  // `paths`, by peer, are shared with other communicators of this process, and must outlive the
  // endpoint. The path of `self` is not used. If `paths` is empty, the endpoint makes its own.
  explicit Endpoint(const EndpointConfig& config, std::span<Path* const> paths = {})
      : state_(config, paths) {}

  // Opens a round with the next number. All collectives share one numbering. Messages (send/recv)
  // are numbered per ordered pair of ranks and tag. Client and plan must stay valid, and the plan
  // unchanged, until on_closed(). Returns null if limits::kOpenCollectivesMax collectives are open:
  // try again later. Messages always have room. The caller keeps the pointer, then calls start(),
  // which may call the client back.
  Round* open_round(Instant now, const RoundPlan& plan, RoundClient& client);
  // Turns an open stand-in into an operation with the same number and a new plan. The client calls
  // start() next.
  void reopen_round(Instant now, Round& round, const RoundPlan& plan) {
    opening_.reopen(now, round, plan);
  }
  void start(Instant now, Round& round);
  // Call it when more packets of the phase `kind` may be available: a reduction finished a chunk,
  // or a chunk was encoded.
  void release_chunks(Round& round, FlowKind kind) { sender_.release(round, kind); }
  // Fails an operation that cannot go on here, and tells peers the reason and the rank in `blame`.
  // The operation's client must not call it from a callback.
  void fail(Instant now, Round& round, const Status& status, const Blame& blame = {});
  // Ends a stand-in when the call whose place it holds is over. The stand-in's client must not call
  // this from a callback.
  void end_stand_in(Instant now, Round& round, const Status& status, const Blame& blame = {});
  // Fails open rounds because the communicator is being shut down.
  void cancel(Instant now, const Status& status, Cancelled which = Cancelled::all);

  void on_datagram(Instant now, Rank from, ByteSpan datagram);
  // Prefetches the memory that the next datagram from this rank will touch. This helps where one
  // thread plays a thousand ranks (simulator), whose links and flows do not fit the cache.
  void expect(Rank from) const;
  void on_wake(Instant now);
  // Poll::control hands out control datagrams only.
  enum class Poll : std::uint8_t { all, control };
  bool poll_train(Instant now, TrainBuffer& out, Poll what = Poll::all) {
    return control_.poll(now, out) || (what == Poll::all && sender_.poll(now, out));
  }
  // When on_wake() is due; infinite future if no timer is armed.
  Instant wake_at() const { return state_.timers.next(); }
  // Call it when the path to this peer has credit again after other communicators had used it up.
  void on_credit(Rank peer);

  // Watches a tag for which a receive from any rank waits. From then on, arrivals of messages with
  // this tag are noted, and peers that are silent for too long are found dead.
  void watch_tag(Instant now, std::uint32_t tag);
  WatchedTags& tags() { return tags_; }
  const WatchedTags& tags() const { return tags_; }

  // With `on`, watches whether all peers live, because something other than a round waits for them.
  void watch_all(Instant now, bool on) { liveness_.watch_all(now, on); }
  // Call it when another communicator found that the peer's process is dead. Exact operations with
  // the peer fail, now and later, and lossy ones do without it.
  void bury(Instant now, Rank peer);
  const Liveness& liveness() const { return liveness_; }
  // Asks every peer for a report, which measures round trips and proves the path (Link::proven()).
  void probe_all();
  void probe(Rank peer) { state_.queue_probe(peer); }
  int peers_proven() const;

  // Leaves the group so that no peer is left waiting for this rank (departure.h). Serves peers
  // until they are quiet, then says good-bye. No round may be opened any more.
  void leave(Instant now);
  // Leaves at once: all open rounds fail, and the good-bye is repeated to each peer until it
  // answers.
  void say_goodbye(Instant now);
  // Returns true once every peer has answered the good-bye, has left itself, or did not answer in
  // time. After leave() this takes at most some seconds.
  bool left() const { return leaving_.left(); }
  // Call it when this process forwarded a datagram between two of its peers (WIRE 9.8).
  void on_forwarded(Instant now) { state_.departure.on_forwarded(now); }

  const EndpointConfig& config() const { return state_.config; }
  const EndpointCounters& counters() const { return state_.counters; }
  const Link& link(Rank peer) const { return state_.links[peer]; }
  const RoundTable& rounds() const { return state_.rounds; }
  const EndpointState& state() const { return state_; }
  const PacketOrder& order() const { return order_; }
  const Sender& sender() const { return sender_; }

  // Shortens datagrams to the length that all ranks agreed their paths carry. Call it before the
  // first operation is opened.
  void shorten_datagrams(std::size_t bytes);
  // Sets which links keep bytes intact (EndpointConfig::intact). No operation may be open.
  void keep_intact(std::vector<std::uint8_t> by_rank);

 private:
  void wake_link(Instant now, Rank peer);
  void wake_flows(Instant now, Round& round, Rank peer);
  void wake_round(Instant now, Round& round);
  // Removes the rounds that have ended. Call it when an event has been handled.
  void reap(Instant now) {
    if (state_.rounds.any_ended()) opening_.reap_ended(now);
  }

  EndpointState state_;
  PacketOrder order_{state_.config};
  WatchedTags tags_{state_.config.size, state_.rounds};
  Settling settling_{state_};
  Progress progress_{state_, settling_};
  Inquiry inquiry_{state_};
  ControlWriter control_{state_, settling_.failures()};
  Sender sender_{state_, order_, control_, progress_};
  Receiver receiver_{state_, settling_, progress_, inquiry_, tags_};
  ReportReader reports_{state_, settling_, progress_, tags_};
  Liveness liveness_{state_, settling_, tags_};
  Leaving leaving_{state_};
  Opening opening_{state_, order_, inquiry_, liveness_};
};

}  // namespace leeway::protocol
