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
  // The transport takes trains to kEveryRank. The ranks that hear them are found out by trying.
  bool multicast = false;
  // Checksums cover payloads. False only where the transport keeps bytes intact.
  bool sum_payloads = true;
  // By rank: 1 if the link to it keeps bytes intact although the transport does not promise that
  // for all links. An empty vector means no link.
  std::vector<std::uint8_t> intact;
  // Returns true if the checksum of data to this rank covers the payload; for kEveryRank, of data
  // to any rank.
  bool sums_to(Rank peer) const {
    return sum_payloads && (peer >= intact.size() || intact[peer] == 0);
  }
  // Packets travel in permuted order. False only to measure the benefit of that.
  bool permute = true;
  // A congestion controller paces the datagrams that this rank sends (collective::Node).
  bool paced = false;
  // All ranks share a host, and all say so here. Their barriers go through one rank (WIRE 2.9; see
  // collective::plan_collective()).
  bool one_host = false;
  std::vector<std::size_t> window_bytes;  // by peer: bytes that may be in flight to it
  // Least number of bytes that peers may have in flight to this rank, which sets how often it
  // reports. With 0, it is the number that this rank may have in flight to them.
  std::size_t peers_window_bytes = 0;
  Duration rtt_initial = std::chrono::milliseconds(10);
  // Longest silence of a peer from which something is expected. 0 waits for ever.
  Duration peer_timeout{0};
  // By rank: name by which people know it, where this group is a part of their communicator. Ranks
  // beyond the end go by their number.
  std::vector<Rank> names;
};

struct EndpointCounters {
  std::array<std::uint64_t, wire::kRefusals> refused{};  // by wire::Refusal
  // Well-formed, but not as planned (index, length, codec, size).
  std::uint64_t refused_plan = 0;
  std::uint64_t refused_report = 0;  // reports and answers that claim more than was sent
  // Data and reports whose operation numbers are too far ahead to be true.
  std::uint64_t refused_progress = 0;
  std::uint64_t closed_round = 0;  // data of an operation that is over
  std::uint64_t future_round = 0;  // data of an operation too far ahead
  std::uint64_t early_kept = 0;
  std::uint64_t early_dropped = 0;  // no slot left
  std::uint64_t duplicate = 0;
  std::uint64_t late = 0;
  std::uint64_t data_received = 0;
  std::uint64_t data_sent = 0;
  std::uint64_t group_sent = 0;  // the share of data_sent that went to several peers at once
  // Peers that fell behind such a pass and got the rest of it alone.
  std::uint64_t group_left = 0;
  std::uint64_t repairs_sent = 0;
  std::uint64_t repair_requests = 0;  // by peers
  std::uint64_t requests_sent = 0;
  std::uint64_t ends_sent = 0;
  std::uint64_t reports_sent = 0;
  std::uint64_t probes_sent = 0;
  std::uint64_t rounds_opened = 0;
  std::uint64_t rounds_failed = 0;
  std::uint64_t deadline_cuts = 0;
  std::uint64_t peers_given_up = 0;
  std::uint64_t parity_sent = 0;      // part of data_sent
  std::uint64_t parity_received = 0;  // part of data_received
  std::uint64_t parity_unused = 0;  // part of parity_received: copies, and more parity than losses
  std::uint64_t recovered = 0;      // packets computed from parity
};

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
  std::uint64_t rotation_key(std::uint32_t number, FlowKind kind, Rank owner) const;
  std::uint32_t next_collective() const { return rounds_.opened_below(); }
  std::uint32_t next_message(Rank peer, std::uint32_t tag, bool send) const {
    return rounds_.next_message(peer, tag, send);
  }
  // Returns false if limits::kTagsPerPeerMax other tags were used with the peer.
  bool has_room_for(Rank peer, std::uint32_t tag) const {
    const PeerMessages* const messages = rounds_.messages(peer);
    return messages == nullptr || messages->streams() < limits::kTagsPerPeerMax ||
           messages->find(tag) != nullptr;
  }

  // Tells whether an activity outside of rounds waits for all peers.
  void watch_all(Instant now, bool on);

  // Receives from any rank. While a tag is watched, arrivals of its messages are noted, and peers
  // that are silent for too long are found dead.
  void watch_tag(Instant now, std::uint32_t tag);
  void forget_tag(std::uint32_t tag) { std::erase(watched_tags_, tag); }
  // Returns a rank that sent a message with this watched tag for which no receive is posted.
  // Rotates over ranks, so that none starves.
  std::optional<Rank> sender_of(std::uint32_t tag);
  // Returns true if any such message was heard since take_heard() was last called.
  bool heard_message() const { return heard_message_; }
  bool take_heard() { return std::exchange(heard_message_, false); }

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
  Instant wake_at() const { return timers_.next(); }

  // Leaves the group so that no peer is left waiting for this rank (departure.h). Serves peers
  // until they are quiet, then says good-bye. No round may be opened any more.
  void leave(Instant now);
  // Leaves at once: all open rounds fail, and every peer is told until it answers.
  void say_goodbye(Instant now);
  // Returns true once every peer has answered, has left itself, or did not answer in time. That is
  // some seconds after leave() at the latest.
  bool left() const;
  // This process forwarded a datagram between two of its peers (WIRE 9.8).
  void on_forwarded(Instant now) { departure_.on_forwarded(now); }
  bool has_forwarded() const { return departure_.has_forwarded(); }

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
  bool is_gone(Rank peer) const { return links_[peer].gone; }
  // Returns true if at least one peer is gone.
  bool any_gone() const { return any_gone_; }
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
  // Returns true if the peer has reported any of our multicast.
  bool hears_multicast(Rank peer) const { return links_[peer].group.hears(); }
  // Longest time-out of the links to peers that are not gone; 0 if there is none.
  Duration slowest_timeout() const;
  // Returns true if datagrams pass both ways: one came from the peer, and it reported one of ours.
  // A peer that has left reports no more, and had proved its own side before.
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
  // Key of the packet order inside chunks.
  std::uint64_t inner_key(std::uint32_t number, FlowKind kind, Rank from, Rank to) const;
  schedule::PacketCursor make_cursor(const Round& round, FlowKind kind, Rank to,
                                     const schedule::PacketGrid& grid) const;
  void replay_early(Instant now, Round& round);
  bool gate_open(const Round& round, Rank peer) const;
  void settle_send(Round& round, FlowKind kind, Rank peer);
  void finish_receive(Instant now, Round& round, FlowKind kind, Rank peer);
  void settle_phase(Instant now, Round& round, FlowKind kind);
  void advance(Instant now, Round& round);
  // Tells peers of a failure, and which rank it names.
  void finish(Instant now, Round& round, const Status& status, const Blame& blame = {});
  void tell_failure(const Round& round, StatusCode code, const Blame& blame);
  void end(Round& round);
  void doom(Instant now, Round& round, const Status& status, const Blame& blame);
  // Removes rounds that ended while an event was handled, once it has been handled.
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
  std::vector<Path> own_paths_;  // used unless paths are shared
  std::vector<Link> links_;      // by peer
  RoundTable rounds_;
  Outbox outbox_;
  GroupSender group_;
  EarlyDatagrams early_;
  Timers timers_;
  // When the first round of the current busy period was opened, or of the last one when idle.
  Instant busy_since_{0};
  Failures failures_;
  HeardFailures heard_failures_;
  std::vector<std::uint32_t> watched_tags_;
  bool watched_from_outside_ = false;
  bool heard_message_ = false;
  Rank latest_sender_ = 0;  // last rank that sender_of() named
  Departure departure_;
  bool any_gone_ = false;  // a peer has left, or is dead
  Status first_death_;
  Rank first_dead_ = kNoRank;
  Status given_up_;
  int gave_us_up_ = 0;  // peers that gave this rank up
  EndpointCounters counters_;
};

}  // namespace leeway::protocol
