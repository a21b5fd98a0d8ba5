// Protocol core of one rank, without I/O. Time and datagrams come in; trains of datagrams (GSO
// batches) and a wake-up time come out.
//
//   on_datagram(now, from, bytes)   a datagram arrived
//   on_wake(now)                    time passed; call it after every arrived datagram was handed in
//   poll_train(now, buffer)         writes the datagrams to send next, until it returns false
//   next_wake()                     when on_wake() is due
//
// It never reads a clock, opens a socket, starts a thread or logs. It allocates only when a round
// opens and when it leaves. Rules are numbered in proto/README.md (WIRE n) and cited where they are
// kept. State of its own is kept in a class of its own (the members at the end of this file, and
// README.md). This class moves flows and rounds. Its source is cut by topic: endpoint.cc (rounds
// and leaving), endpoint_receive.cc, endpoint_reports.cc, endpoint_send.cc, endpoint_group.cc,
// endpoint_parity.cc, endpoint_timers.cc, endpoint_liveness.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "leeway/status.h"
#include "protocol/early_datagrams.h"
#include "protocol/endpoint_state.h"
#include "protocol/failures.h"
#include "protocol/inquiry.h"
#include "protocol/packet_order.h"
#include "protocol/progress.h"
#include "protocol/recovery.h"
#include "protocol/settling.h"
#include "protocol/watched_tags.h"
#include "wire/packet.h"

namespace leeway::protocol {

class Endpoint {
 public:
  // Uses paths of its own.
  explicit Endpoint(const EndpointConfig& config);
  // Uses paths that it shares with other communicators of this process, by peer. That of `self` is
  // not used. They must outlive it.
  Endpoint(const EndpointConfig& config, std::span<Path* const> paths);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Opens the next operation of its numbering (collectives: one for all; send/recv: per ordered
  // pair). Client and plan must stay valid, and the plan unchanged, until on_closed(). Returns null
  // when limits::kOpenCollectivesMax collectives are open: try again later. Messages always have
  // room. The caller stores the pointer, then calls start(), from which callbacks may come.
  Round* open_round(Instant now, const RoundPlan& plan, RoundClient& client);
  void start(Instant now, Round& round);

  // Key of the packet from which all senders start when they send the owner's shard in collective
  // `number`.
  std::uint64_t rotation_key(std::uint32_t number, FlowKind kind, Rank owner) const {
    return order_.rotation_key(number, kind, owner);
  }
  std::uint32_t next_collective() const { return state_.rounds.opened_below(); }
  std::uint32_t next_message(Rank peer, std::uint32_t tag, bool send) const {
    return state_.rounds.next_message(peer, tag, send);
  }
  // Returns false if limits::kTagsPerPeerMax other tags were used with the peer.
  bool has_room_for(Rank peer, std::uint32_t tag) const {
    return state_.rounds.has_room_for(peer, tag);
  }

  // Tells whether an activity outside of rounds waits for all peers.
  void watch_all(Instant now, bool on);

  // Receives from any rank. While a tag is watched, arrivals of its messages are noted, and peers
  // that are silent for too long are found dead.
  void watch_tag(Instant now, std::uint32_t tag);
  void forget_tag(std::uint32_t tag) { tags_.forget(tag); }
  // Returns a rank that sent a message with this watched tag for which no receive is posted.
  // Rotates over ranks, so that none starves.
  std::optional<Rank> sender_of(std::uint32_t tag) { return tags_.sender_of(tag); }
  // Returns true if any such message was heard since take_heard() was last called.
  bool heard_message() const { return tags_.heard(); }
  bool take_heard() { return tags_.take_heard(); }

  // Packets of the phase `kind` may have become available: a reduction finished a chunk of it, or
  // one was encoded.
  void release_chunks(Round& round, FlowKind kind);
  // Fails an operation that cannot go on here, and tells peers the reason and the rank in `blame`.
  // Not within a call of its client.
  void fail(Instant now, Round& round, const Status& status, const Blame& blame = {});
  // Ends a round that stands in for something that is now over. Not within a call of its client.
  void end_stand_in(Instant now, Round& round, const Status& status, const Blame& blame = {});

  void on_datagram(Instant now, Rank from, ByteSpan datagram);
  // A datagram from this rank comes soon: prefetches the memory that it will touch. Useful where
  // one thread plays many ranks (simulator): the cache holds little of a thousand ranks' links and
  // flows.
  void expect(Rank from) const;
  void on_wake(Instant now);
  // With Poll::control no data is handed out.
  enum class Poll : std::uint8_t { all, control };
  bool poll_train(Instant now, TrainBuffer& out, Poll what = Poll::all);
  std::optional<Instant> next_wake() const;
  // The same; infinite future if no timer is armed.
  Instant wake_at() const { return state_.timers.next(); }

  // Leaves the group so that no peer is left waiting for this rank (departure.h). Serves peers
  // until they are quiet, then says good-bye. No round may be opened any more.
  void leave(Instant now);
  // Leaves at once: all open rounds fail, and every peer is told until it answers.
  void say_goodbye(Instant now);
  // Returns true once every peer has answered, has left itself, or did not answer in time. That is
  // some seconds after leave() at the latest.
  bool left() const;
  // This process forwarded a datagram between two of its peers (WIRE 9.8).
  void on_forwarded(Instant now) { state_.departure.on_forwarded(now); }
  bool has_forwarded() const { return state_.departure.has_forwarded(); }

  // Another communicator found that the peer's process is dead. Exact operations with it fail, now
  // and later, and lossy ones do without it.
  void bury(Instant now, Rank peer);
  // Error if most peers gave this rank up, so that no operation can succeed here any more; else ok.
  const Status& given_up() const { return given_up_; }
  // Error that names the first peer that was found dead; ok if none was.
  const Status& first_death() const { return first_death_; }
  // Returns kNoRank if no peer is dead.
  Rank first_dead() const { return first_dead_; }
  // Returns true if the peer has said good-bye, or is dead.
  bool is_gone(Rank peer) const { return state_.links[peer].gone; }
  // Returns true if at least one peer is gone.
  bool any_gone() const { return state_.any_gone; }
  // Returns true if every peer is gone.
  bool all_gone() const;
  // Share of the peers to which the oldest collective still sends that have opened it. While some
  // have not, the links of the others are not to be served: all ranks would send to them at once.
  double ready_share() const;
  // Reason why this rank's flows with the peer wait, for diagnostics.
  enum class Hold : std::uint8_t {
    nothing,  // no flow is open
    gate,     // data is ready, but the peer has not opened the operation
    credit,   // data is ready, but the credit is used up
    relay,    // data is ready, but the relay on the way has no room for it yet
    turn,     // data is ready and may leave
    answer,   // all data has left, or none is ready yet: waits for the peer's data or report
  };
  Hold hold(Rank peer) const;
  // A path that other communicators had filled has credit again.
  void on_credit(Rank peer) { state_.outbox.queue_data(peer); }

  // Fails every open round (communicator shut down).
  void cancel_all(Instant now, const Status& status);

  // Asks every peer for a report, which measures round trips and proves the path. See
  // peers_proven(), hears_multicast().
  void probe_all();
  void probe(Rank peer);
  // Returns true if the peer has reported any of our multicast.
  bool hears_multicast(Rank peer) const { return state_.links[peer].group.hears(); }
  // Longest time-out of the links to peers that are not gone; 0 if there is none.
  Duration slowest_timeout() const { return state_.slowest_timeout(); }
  // Returns true if datagrams pass both ways: one came from the peer, and it reported one of ours.
  // A peer that has left reports no more, and had proved its own side before.
  bool proven(Rank peer) const {
    const Link& link = state_.links[peer];
    return link.heard && (link.answered || link.gone);
  }
  int peers_proven() const;
  bool heard(Rank peer) const { return state_.links[peer].heard; }

  bool idle() const { return state_.rounds.open_count() == 0; }
  int open_rounds() const { return static_cast<int>(state_.rounds.open_count()); }
  int open_collectives() const { return static_cast<int>(state_.rounds.collective_count()); }
  const EndpointCounters& counters() const { return state_.counters; }
  const Link& link(Rank peer) const { return state_.links[peer]; }
  const EndpointConfig& config() const { return state_.config; }

  // Shortens datagrams to the length that all ranks agreed their paths carry. No operation may be
  // open, or have been opened.
  void shorten_datagrams(std::size_t bytes);

  // The links to these ranks keep bytes intact (EndpointConfig::intact). No operation may be open.
  void keep_intact(std::vector<std::uint8_t> by_rank);

 private:
  // endpoint.cc: rounds
  void start_towards(Round& round, Rank peer);
  void start_talking(Instant now, Round& message);
  void set_up_flows(Round& round, FlowKind kind);
  void set_up_send(Round& round, FlowKind kind, Rank peer);
  void set_up_receive(Round& round, FlowKind kind, Rank peer);
  void replay_early(Instant now, Round& round);
  // Removes rounds that ended while an event was handled, once it has been handled.
  void reap(Instant now) {
    if (state_.rounds.any_ended()) reap_ended(now);
  }
  void reap_ended(Instant now);

  // endpoint_receive.cc
  void on_data(Instant now, Rank from, const wire::DataHeader& header, ByteSpan datagram);
  void accept_data(Instant now, Round& round, Rank from, const wire::DataHeader& header,
                   ByteSpan payload);
  void after_arrival(Instant now, Round& round, Rank from, const wire::DataHeader& header);
  template <typename Header>
  bool same_length(Instant now, Round& round, Rank from, const Header& header);
  bool take_length(Instant now, Round& round, Rank from, std::uint32_t packets, std::uint32_t tail);
  void touch(Rank from, std::uint32_t tag);
  void without_round(Rank from, const wire::DataHeader& header, ByteSpan datagram);
  void watch_chunks(Instant now, Round& round, Rank from, const wire::DataHeader& header);
  void note_last_copy(Instant now, Round& round, Rank from, const wire::DataHeader& header);
  void on_end(Instant now, Rank from, const wire::End& end);
  void on_repair(Instant now, Rank from, const wire::Repair& repair, ByteSpan words);
  void on_probe(Instant now, Rank from);
  void answer_probe(Instant now, Rank peer);
  void on_goodbye(Instant now, Rank from);
  void dispute(Instant now, Round& round, Rank from);

  // endpoint_parity.cc
  void begin_copy(Round& round, FlowKind kind, Rank peer);
  void append_parity(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out);
  void accept_parity(Instant now, Round& round, Rank from, const wire::DataHeader& header,
                     ByteSpan payload);

  // endpoint_reports.cc
  void on_report(Instant now, Rank from, const wire::Report& report);
  bool take_opened(Rank from, const wire::Report& report);
  bool waits_in_vain(const wire::Report& report) const;
  void apply_report(Instant now, Round& round, Rank from, const wire::Report& report);
  void learn_use(Round& round, Rank from, const wire::Report& report);
  void hear_failures(Rank from, const wire::Report& report);
  void on_entry(Instant now, Round& round, Rank from, const wire::OpenRound& theirs);
  void on_peer_failed(Instant now, Round& round, Rank from, const wire::OpenRound& theirs);
  void note_cut(Round& round, Rank from, Rank by);
  void compare_tags(Instant now, Round& round, Rank from, const wire::OperationTag& theirs);

  // endpoint_send.cc
  void tell_settled(Rank peer);
  int copies(Rank peer, std::uint32_t tries) const;
  bool poll_control(Instant now, TrainBuffer& out);
  bool poll_data(Instant now, TrainBuffer& out);
  bool write_control(Instant now, Rank peer, TrainBuffer& out);
  void write_bare(Instant now, wire::PacketType type, Rank to, TrainBuffer& out);
  void write_report(Instant now, Rank peer, TrainBuffer& out);
  bool write_repair_request(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out);
  bool write_farewell(Instant now, Rank peer, TrainBuffer& out);
  void write_end(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out);
  bool fill_from_link(Instant now, Rank peer, TrainBuffer& out);
  bool fill_from_flow(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out);
  std::uint32_t eager_credit(const SendFlow& flow, Rank peer) const;
  struct Place {
    PacketIndex index;
    PacketPosition position;
    PacketIndex ahead;          // as in RoundClient::payload()
    std::uint16_t attempt = 0;  // number of the request that it answers
  };
  void append_data(Instant now, Rank to, Round& round, FlowKind kind, Rank receiver,
                   const Place& place, TrainBuffer& out);
  wire::DataHeader header_in(const Round& round, FlowKind kind, const SendFlow& flow) const;
  void write_data(Instant now, Rank to, Round& round, const wire::DataHeader& header,
                  const Payload& payload, MutableByteSpan scratch, TrainBuffer& out);
  void note_sent(Round& round, FlowKind kind, Rank peer, std::uint32_t packets);
  void end_pass(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out);

  // endpoint_group.cc
  bool fill_from_group(Instant now, TrainBuffer& out);
  bool fill_from_pass(Instant now, Round& round, FlowKind kind, TrainBuffer& out);
  void wake_group(Instant now, Round& round, FlowKind kind);

  // endpoint_liveness.cc
  void watch(Instant now, Rank peer);
  bool expects(Rank peer) const;
  void wake_watch(Instant now, Rank peer);
  void lose_peer(Instant now, Round& round, Rank peer);
  void start_without(Instant now, Round& round);
  void on_given_up(Instant now, Rank from);
  void lose_group_member(Instant now, Rank from);
  void lose_in_all_rounds(Instant now, Rank peer);
  Status gave_up_by(Rank peer) const;
  Status loss_of(const Round& round, Rank peer) const;
  void answer_dead(Rank from, wire::PacketType type);

  // endpoint_timers.cc
  void wake_link(Instant now, Rank peer);
  void wake_flows(Instant now, Round& round, Rank peer);
  void wake_round(Instant now, Round& round);
  void wake_receive(Instant now, Round& round, FlowKind kind, Rank peer);
  void wake_send(Instant now, Round& round, FlowKind kind, Rank peer);
  void wake_leave(Instant now);
  void ask_gated(Instant now, Round& round, FlowKind kind, Rank peer);
  void ask_again(Instant now, Round& round, FlowKind kind, Rank peer);
  void on_abandoned(Instant now, Round& round, FlowKind kind, Rank peer);
  void answer_receives(Rank from, const wire::Report& report);

  EndpointState state_;
  PacketOrder order_{state_.config};
  WatchedTags tags_{state_.config.size, state_.rounds};
  Settling settling_{state_};
  Progress progress_{state_, settling_};
  Inquiry inquiry_{state_};
  Recovery recovery_{state_.counters};
  EarlyDatagrams early_;
  // When the first round of the current busy period was opened, or of the last one when idle.
  Instant busy_since_{0};
  HeardFailures heard_failures_;
  bool watched_from_outside_ = false;
  Status first_death_;
  Rank first_dead_ = kNoRank;
  Status given_up_;
  int gave_us_up_ = 0;  // peers that gave this rank up
};

}  // namespace leeway::protocol
