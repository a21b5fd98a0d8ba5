// The protocol core of one rank: sans-IO. Time and datagrams come in; trains of datagrams and a
// wake-up time come out.
//
//   on_datagram(now, from, bytes)   something arrived
//   on_wake(now)                    time passed; call it after every arrived datagram was handed in
//   poll_train(now, buffer)         what to send next, until it returns false
//   next_wake()                     when on_wake() is due
//
// It never reads a clock, opens a socket, starts a thread or logs, and allocates only when a round
// opens and when it leaves. Rules are numbered in proto/README.md (WIRE n) and cited where they are
// kept. What has a state of its own is a class of its own (the members at the end of this file, and
// README.md); this one moves flows and rounds. Its source is cut by topic: endpoint.cc (rounds and
// leaving), endpoint_receive.cc, endpoint_reports.cc, endpoint_send.cc, endpoint_group.cc,
// endpoint_parity.cc, endpoint_timers.cc, endpoint_liveness.cc.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/time.h"
#include "leeway/status.h"
#include "protocol/departure.h"
#include "protocol/early_datagrams.h"
#include "protocol/failures.h"
#include "protocol/group_sender.h"
#include "protocol/link.h"
#include "protocol/outbox.h"
#include "protocol/round.h"
#include "protocol/round_table.h"
#include "protocol/timers.h"
#include "protocol/train_buffer.h"
#include "wire/packet.h"

namespace leeway::protocol {

struct EndpointConfig {
  Rank self = 0;
  int size = 1;
  std::uint32_t epoch = 1;
  std::uint64_t seed = 0;
  std::size_t datagram_bytes = 1472;
  bool multicast = false;  // the transport takes trains to kEveryRank; who hears them is found out
  // Checksums cover payloads; false only where the transport keeps bytes intact
  bool sum_payloads = true;
  // By rank: 1 where the link to it keeps bytes intact, though the transport does not promise it of
  // all. Empty: nowhere.
  std::vector<std::uint8_t> intact;
  // Whether the checksum of data to this rank covers the payload. Of kEveryRank: to any rank.
  bool sums_to(Rank peer) const {
    return sum_payloads && (peer >= intact.size() || intact[peer] == 0);
  }
  // Packets travel in permuted order; off only to measure what that is good for
  bool permute = true;
  // A congestion controller paces what this rank sends; collective::Node knows
  bool paced = false;
  // All ranks share a host, and all say so here: their barriers go through one of them (WIRE 2.9).
  // collective::plan_collective() heeds it
  bool one_host = false;
  std::vector<std::size_t> window_bytes;  // by peer: how much may be in flight to it
  // What peers may have in flight to this rank at least, which sets how often it reports; 0: as
  // much as it may have to them
  std::size_t peers_window_bytes = 0;
  Duration rtt_initial = std::chrono::milliseconds(10);
  // How long a peer may be silent that something is expected of; 0: for ever
  Duration peer_timeout{0};
  // By rank: how people know it, where this is a part of a communicator of theirs. Empty: by its
  // rank.
  std::vector<Rank> names;
};

struct EndpointCounters {
  std::array<std::uint64_t, wire::kRefusals> refused{};  // by wire::Refusal
  // well-formed, but not what the plan says (index, length, codec, size)
  std::uint64_t refused_plan = 0;
  std::uint64_t refused_report = 0;  // reports and answers that claim more than was sent
  // data and reports whose numbers of operations are too far ahead to be true
  std::uint64_t refused_progress = 0;
  std::uint64_t closed_round = 0;  // data of an operation that is over
  std::uint64_t future_round = 0;  // data of an operation too far ahead
  std::uint64_t early_kept = 0;
  std::uint64_t early_dropped = 0;  // no slot left
  std::uint64_t duplicate = 0;
  std::uint64_t late = 0;
  std::uint64_t data_received = 0;
  std::uint64_t data_sent = 0;
  std::uint64_t group_sent = 0;  // of these, once for several peers
  // Peers that fell behind such a pass and got the rest of it alone
  std::uint64_t group_left = 0;
  std::uint64_t repairs_sent = 0;
  std::uint64_t repair_requests = 0;  // of peers
  std::uint64_t requests_sent = 0;
  std::uint64_t ends_sent = 0;
  std::uint64_t reports_sent = 0;
  std::uint64_t probes_sent = 0;
  std::uint64_t rounds_opened = 0;
  std::uint64_t rounds_failed = 0;
  std::uint64_t deadline_cuts = 0;
  std::uint64_t peers_given_up = 0;
  std::uint64_t parity_sent = 0;      // of data_sent
  std::uint64_t parity_received = 0;  // of data_received
  std::uint64_t parity_unused = 0;  // of these, what was of no use: copies, and more than was lost
  std::uint64_t recovered = 0;      // packets computed from parity
};

class Endpoint {
 public:
  // Over paths of its own.
  explicit Endpoint(const EndpointConfig& config);
  // Over paths that it shares with other communicators of this process, by peer; that of `self` is
  // not used. They outlive it.
  Endpoint(const EndpointConfig& config, std::span<Path* const> paths);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Opens the next operation of its numbering (collectives: one for all; send/recv: per ordered
  // pair). Client and plan must stay valid, and the plan as it is, until on_closed(). Null when
  // limits::kOpenCollectivesMax collectives are open: try again later; messages always have room.
  // The caller stores the pointer, then calls start(): callbacks may come from there on.
  Round* open_round(Instant now, const RoundPlan& plan, RoundClient& client);
  void start(Instant now, Round& round);

  // Keys the packet from which all senders start when they send this rank's shard in collective
  // `number`.
  std::uint64_t rotation_key(std::uint32_t number, FlowKind kind, Rank owner) const;
  std::uint32_t next_collective() const { return rounds_.opened_below(); }
  std::uint32_t next_message(Rank peer, std::uint32_t tag, bool send) const {
    return rounds_.next_message(peer, tag, send);
  }
  // False: limits::kTagsPerPeerMax other tags were used with the peer.
  bool has_room_for(Rank peer, std::uint32_t tag) const {
    const PeerMessages* const messages = rounds_.messages(peer);
    return messages == nullptr || messages->streams() < limits::kTagsPerPeerMax ||
           messages->find(tag) != nullptr;
  }

  // Something that is no round of ours waits for all peers, or no longer does.
  void watch_all(Instant now, bool on);

  // Receives from any rank. While a tag is watched, what arrives of its messages is noted, and
  // peers that are silent for too long are found dead.
  void watch_tag(Instant now, std::uint32_t tag);
  void forget_tag(std::uint32_t tag) { std::erase(watched_tags_, tag); }
  // A rank of which a message of a watched tag was heard that no receive was posted for, in turn.
  std::optional<Rank> sender_of(std::uint32_t tag);
  // Whether any was heard since it was taken last.
  bool heard_message() const { return heard_message_; }
  bool take_heard() { return std::exchange(heard_message_, false); }

  // Packets of the phase `kind` may have become available: a reduction finished a chunk of it, or
  // somebody encoded one.
  void release_chunks(Round& round, FlowKind kind);
  // The operation cannot go on here. Peers hear of it. Not within a call of its client.
  void fail(Instant now, Round& round, const Status& status);
  // What the round stands in for is over. Not within a call of its client.
  void end_stand_in(Instant now, Round& round, const Status& status);

  void on_datagram(Instant now, Rank from, ByteSpan datagram);
  // One comes soon: fetches into the cache what it will touch. Of use where one thread plays many
  // ranks (simulator): of a thousand ranks' links and flows little is there.
  void expect(Rank from) const;
  void on_wake(Instant now);
  // Of data nothing is handed out with Poll::control.
  enum class Poll : std::uint8_t { all, control };
  bool poll_train(Instant now, TrainBuffer& out, Poll what = Poll::all);
  std::optional<Instant> next_wake() const;
  // The same; never: infinite future.
  Instant wake_at() const { return timers_.next(); }

  // Leaves the group so that nobody waits for this rank in vain (departure.h): serves peers until
  // they are quiet, then says good-bye. No round may be opened any more.
  void leave(Instant now);
  // At once: all open rounds fail, and every peer is told until it answers.
  void say_goodbye(Instant now);
  // All peers know, or have left themselves, or did not answer in time; some seconds after leave()
  // at the latest.
  bool left() const;
  // This process forwarded something between two of its peers (WIRE 9.8).
  void on_forwarded(Instant now) { departure_.on_forwarded(now); }
  bool has_forwarded() const { return departure_.has_forwarded(); }

  // The peer's process is dead, as another communicator found out: exact operations with it fail,
  // now and later, and lossy ones do without it.
  void bury(Instant now, Rank peer);
  // Why no operation can succeed here any more: most peers gave this rank up. Else ok.
  const Status& given_up() const { return given_up_; }
  // The first peer that was found dead; ok: none.
  const Status& first_death() const { return first_death_; }
  // The peer has said good-bye, or is dead.
  bool is_gone(Rank peer) const { return links_[peer].gone; }
  // At least one peer is.
  bool any_gone() const { return any_gone_; }
  // Every peer is.
  bool all_gone() const;
  // Of the peers that the oldest collective still sends to, the share that has opened it. While
  // some have not, the others' links are not to get their turns: all ranks would send to them at
  // once.
  double ready_share() const;
  // What this rank's flows with the peer wait for, for people who look.
  enum class Hold : std::uint8_t {
    nothing,  // no flow is open
    gate,     // data is there, and the peer has not opened the operation
    credit,   // data is there, and as much is under way as the peer has room for
    relay,    // data is there, and the relay on the way has no room for it yet
    turn,     // data is there and may leave
    answer,   // all has left, or none is there yet: for what the peer sends or says
  };
  Hold hold(Rank peer) const;
  // A path that other communicators had filled has credit again.
  void on_credit(Rank peer) {
    outbox_.queue_data(peer);
    queue_group();
  }

  // Fails every open round (communicator shut down).
  void cancel_all(Instant now, const Status& status);

  // Asks every peer for a report, which measures round trips and proves the path. See
  // peers_proven(), hears_multicast().
  void probe_all();
  void probe(Rank peer);
  // Whether the peer has reported any of our multicast.
  bool hears_multicast(Rank peer) const { return links_[peer].group.hears(); }
  // Of the links to peers that have not said good-bye; 0 where there is none.
  Duration slowest_timeout() const;
  // Whether datagrams pass both ways: one came of the peer, and it reported one of ours. A peer
  // that has left says no more, and had proved its own side before.
  bool proven(Rank peer) const {
    const Link& link = links_[peer];
    return link.heard && (link.answered || link.gone);
  }
  int peers_proven() const;
  bool heard(Rank peer) const { return links_[peer].heard; }

  bool idle() const { return rounds_.open_count() == 0; }
  int open_rounds() const { return static_cast<int>(rounds_.open_count()); }
  int open_collectives() const { return static_cast<int>(rounds_.collective_count()); }
  const EndpointCounters& counters() const { return counters_; }
  const Link& link(Rank peer) const { return links_[peer]; }
  const EndpointConfig& config() const { return config_; }

  // Datagrams are shorter from now on: no more than all ranks agreed that their paths carry. No
  // operation is open or was opened.
  void shorten_datagrams(std::size_t bytes);

  // The links to these ranks keep bytes intact (EndpointConfig::intact). No operation is open.
  void keep_intact(std::vector<std::uint8_t> by_rank);

 private:
  // endpoint.cc: rounds
  void start_towards(Round& round, Rank peer);
  void start_talking(Instant now, Round& message);
  void set_up_flows(Round& round, FlowKind kind);
  void set_up_send(Round& round, FlowKind kind, Rank peer);
  void set_up_receive(Round& round, FlowKind kind, Rank peer);
  // Keys the order inside of chunks.
  std::uint64_t inner_key(std::uint32_t number, FlowKind kind, Rank from, Rank to) const;
  schedule::PacketCursor make_cursor(const Round& round, FlowKind kind, Rank to,
                                     const schedule::PacketGrid& grid) const;
  void replay_early(Instant now, Round& round);
  bool gate_open(const Round& round, Rank peer) const;
  void settle_send(Round& round, FlowKind kind, Rank peer);
  void finish_receive(Instant now, Round& round, FlowKind kind, Rank peer);
  void settle_phase(Instant now, Round& round, FlowKind kind);
  void advance(Instant now, Round& round);
  // Peers are told of a failure, and whom it names.
  void finish(Instant now, Round& round, const Status& status, const Blame& blame = {});
  void tell_failure(const Round& round, StatusCode code, const Blame& blame);
  void end(Round& round);
  void doom(Instant now, Round& round, const Status& status, const Blame& blame);
  // Rounds that ended while an event was handled leave when it has been.
  void reap(Instant now) {
    if (rounds_.any_ended()) reap_ended(now);
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
  bool may_have_opened(Rank peer, std::uint32_t opened_below) const;
  void on_peer_progress(Instant now, Rank peer, std::uint32_t opened_below,
                        std::uint32_t settled_below);
  void dispute(Instant now, Round& round, Rank from);
  void refuse_plan(Rank from);

  // endpoint_parity.cc
  bool may_be_coded(const Round& round, FlowKind kind, std::uint32_t packets) const {
    return round.plan->phase(kind).coded && packets > limits::kEagerPackets;
  }
  bool may_be_copied(const Round& round, FlowKind kind, std::uint32_t packets) const;
  std::uint32_t copies_for(const Round& round, FlowKind kind, Rank peer) const;
  void begin_copy(Round& round, FlowKind kind, Rank peer);
  std::uint32_t parities_for(Instant now, const Round& round, FlowKind kind, Rank peer) const;
  void append_parity(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out);
  void accept_parity(Instant now, Round& round, Rank from, const wire::DataHeader& header,
                     ByteSpan payload);
  void take_parity(Round& round, Rank from, const wire::DataHeader& header, ByteSpan payload);
  void move_parity(Round& round, FlowKind kind, Rank from, PacketIndex index, ByteSpan payload);
  bool place_parity(Round& round, FlowKind kind, Rank from, wire::ParityPlace parity,
                    ByteSpan payload);
  bool recover(Round& round, FlowKind kind, Rank from, std::uint32_t code, ByteSpan last = {},
               PacketIndex last_in = {});

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
  void on_peer_left_round(Instant now, Round& round, Rank from);
  void compare_tags(Instant now, Round& round, Rank from, const wire::OperationTag& theirs);
  void repeat_end_soon(Instant now, Round& round, Rank peer);

  // endpoint_send.cc
  wire::Prefix prefix(wire::PacketType type, Rank to, Instant now);
  void queue_report(Rank peer);
  void tell_settled(Rank peer);
  int copies(Rank peer, std::uint32_t tries) const;
  void start_train(Rank to, TrainBuffer& out) const;
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
    PacketIndex ahead;          // as RoundClient::payload()
    std::uint16_t attempt = 0;  // request that it answers
  };
  void append_data(Instant now, Rank to, Round& round, FlowKind kind, Rank receiver,
                   const Place& place, TrainBuffer& out);
  wire::DataHeader header_in(const Round& round, FlowKind kind, const SendFlow& flow) const;
  void write_data(Instant now, Rank to, Round& round, const wire::DataHeader& header,
                  const Payload& payload, MutableByteSpan scratch, TrainBuffer& out);
  void note_sent(Round& round, FlowKind kind, Rank peer, std::uint32_t packets);
  void end_pass(Instant now, Rank peer, Round& round, FlowKind kind, TrainBuffer& out);

  // endpoint_group.cc
  void queue_group();
  bool fill_from_group(Instant now, TrainBuffer& out);
  bool fill_from_pass(Instant now, Round& round, FlowKind kind, TrainBuffer& out);
  void wake_group(Instant now, Round& round, FlowKind kind);
  void leave_group(Round& round, FlowKind kind, Rank peer);

  // endpoint_liveness.cc
  void watch(Instant now, Rank peer);
  bool expects(Rank peer) const;
  void wake_watch(Instant now, Rank peer);
  void lose_peer(Instant now, Round& round, Rank peer);
  void start_without(Instant now, Round& round);
  void end_abandoned(Instant now, Round& round, Rank peer);
  void on_given_up(Instant now, Rank from);
  void lose_group_member(Instant now, Rank from);
  void lose_in_all_rounds(Instant now, Rank peer);
  Status gave_up_by(Rank peer) const;
  Status loss_of(const Round& round, Rank peer) const;
  void answer_dead(Rank from, wire::PacketType type);

  // endpoint_timers.cc
  void wake_link(Instant now, Rank peer);
  void wake_flows(Instant now, Round& round, Rank peer);
  void expire_messages(Instant now, Rank peer);
  void wake_round(Instant now, Round& round);
  void wake_receive(Instant now, Round& round, FlowKind kind, Rank peer);
  void wake_send(Instant now, Round& round, FlowKind kind, Rank peer);
  void wake_leave(Instant now);
  void ask_gated(Instant now, Round& round, FlowKind kind, Rank peer);
  void ask_again(Instant now, Round& round, FlowKind kind, Rank peer);
  void arm_inquiry(Instant now, Round& round);
  void inquire(Instant now, Round& round);
  void cut_phase(Instant now, Round& round, FlowKind kind);
  void on_deadline(Instant now, Round& round);
  void on_abandoned(Instant now, Round& round, FlowKind kind, Rank peer);
  bool may_mean_another(const Round& round, FlowKind kind, Rank peer) const;
  void ask_what_they_mean(Instant now, Round& round, FlowKind kind, Rank peer);
  bool probe_present();
  void end_as_told(Instant now, Round& round);
  void give_message_up(const Round& round);
  void answer_receives(Rank from, const wire::Report& report);

  void note_heard(Rank from, std::uint32_t tag, std::uint32_t number);

  EndpointConfig config_;
  std::vector<Path> own_paths_;  // where none are shared
  std::vector<Link> links_;      // by peer
  RoundTable rounds_;
  Outbox outbox_;
  GroupSender group_;
  EarlyDatagrams early_;
  Timers timers_;
  Instant busy_since_{0};  // when the first of the rounds that are open, or were last, was opened
  Failures failures_;
  HeardFailures heard_failures_;
  std::vector<std::uint32_t> watched_tags_;
  bool watched_from_outside_ = false;
  bool heard_message_ = false;
  Rank latest_sender_ = 0;  // of those that sender_of() named
  Departure departure_;
  bool any_gone_ = false;  // a peer has left, or is dead
  Status first_death_;
  Status given_up_;
  int gave_us_up_ = 0;  // peers
  EndpointCounters counters_;
};

}  // namespace leeway::protocol
