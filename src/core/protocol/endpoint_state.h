// State that the parts of an endpoint share: settings, links, operations, timers and queues, and
// counters. A part keeps any other state for itself (README.md).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "protocol/departure.h"
#include "protocol/group_sender.h"
#include "protocol/link.h"
#include "protocol/outbox.h"
#include "protocol/rank_range.h"
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
  // If true, the transport sends trains to kEveryRank. Only a trial shows which ranks hear them.
  bool multicast = false;
  // Checksums cover payloads. False only where the transport keeps bytes intact.
  bool sum_payloads = true;
  // By rank: 1 if the link to it keeps bytes intact although the transport does not promise that
  // for all links. An empty vector means no link.
  std::vector<std::uint8_t> intact;
  // Returns true if the checksum of data to `peer` covers the payload. kEveryRank stands for
  // multicast data.
  bool sums_to(Rank peer) const {
    return sum_payloads && (peer >= intact.size() || intact[peer] == 0);
  }
  // Packets travel in permuted order. False only to measure the benefit of that.
  bool permute = true;
  // A congestion controller paces the datagrams that this rank sends (collective::Node).
  bool paced = false;
  // If true, all ranks share a host, and all of them know this. Their barriers go through one rank
  // (WIRE 2.9; see collective::plan_collective()).
  bool one_host = false;
  std::vector<std::size_t> window_bytes;  // by peer: bytes that may be in flight to it
  // Smallest window, in bytes, that a peer has towards this rank. It sets how often this rank
  // reports. 0 means that it equals this rank's window towards the peer.
  std::size_t peers_window_bytes = 0;
  Duration rtt_initial = std::chrono::milliseconds(10);
  // Silence after which a peer is taken for dead if something is expected from it. 0: never.
  Duration peer_timeout{0};
  // By rank: the number of the rank in error texts. Set if this group is a part of the communicator
  // that the user knows. A rank beyond the end of the vector keeps its own number.
  std::vector<Rank> names;

  // Return the number of `rank`, or of this rank, in error texts.
  Rank known_as(Rank rank) const { return rank < names.size() ? names[rank] : rank; }
  Rank own_name() const { return known_as(self); }
};

struct EndpointCounters {
  std::array<std::uint64_t, wire::kRefusals> refused{};  // by wire::Refusal
  // Datagrams that are well-formed but do not fit the plan (index, length, codec, size).
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
  // Peers that held up a multicast pass and got the rest of it by unicast.
  std::uint64_t group_left = 0;
  std::uint64_t repairs_sent = 0;
  std::uint64_t repair_requests = 0;  // datagrams that came from peers
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

struct EndpointState {
  EndpointState(const EndpointConfig& settings, std::span<Path* const> paths);
  EndpointState(const EndpointState&) = delete;
  EndpointState& operator=(const EndpointState&) = delete;

  // All ranks but this one.
  auto others() const {
    return RankRange(config.size, [this](Rank peer) { return peer != config.self; });
  }
  // All other ranks that have neither left nor died.
  auto present() const {
    return RankRange(config.size,
                     [this](Rank peer) { return peer != config.self && !links[peer].gone; });
  }

  // Returns the prefix of the next datagram to a rank, and uses up a sequence number.
  wire::Prefix prefix(wire::PacketType type, Rank to, Instant now) {
    const std::uint32_t sequence =
        to == kEveryRank ? group.take_sequence() : links[to].path().take_sequence(now);
    return {type, config.epoch, config.self, to, sequence};
  }
  void start_train(Rank to, TrainBuffer& out) const {
    out.start(to, to == kEveryRank ? 1 : links[to].path().pieces(config.datagram_bytes));
  }

  void queue_report(Rank peer) {
    links[peer].report_due = true;
    outbox.queue_control(peer);
  }
  void queue_probe(Rank peer) {
    links[peer].probe_due = true;
    outbox.queue_control(peer);
  }
  // Probes all peers that are present. Returns false if there are none.
  bool probe_present();
  void queue_group() {
    if (group.on()) outbox.queue_data(kEveryRank);
  }

  // Arms the link's timer for the end of the quiet time. Overtaken packets of the peer's flow
  // should have come by then.
  void arm_quiet(Instant now, const Round& round, FlowKind kind, Rank peer) {
    timers.arm_link(peer, now + links[peer].quiet_time(round.plan->phase(kind).gives_up()));
  }

  // Returns true if the peer said that it opened the operation, so that more than eager packets may
  // leave.
  bool gate_open(const Round& round, Rank peer) const;
  // Takes the peer out of a multicast pass. The peer gets the rest of its flow by unicast.
  void leave_group(Round& round, FlowKind kind, Rank peer);
  // Increments refused_plan for a datagram that is authentic but contradicts the plan. Also queues
  // a report, from which the sender learns which operation this rank means.
  void refuse_plan(Rank from);
  // Notes that the peer has left or is dead. If this rank is serving, it then checks whether it may
  // leave itself.
  void lose(Instant now, Rank peer);
  // Longest time-out of the links to peers that are not gone; 0 if there is none.
  Duration slowest_timeout() const;

  EndpointConfig config;
  std::vector<Path> own_paths;  // used unless paths are shared
  std::vector<Link> links;      // by peer
  RoundTable rounds;
  Outbox outbox;
  GroupSender group;
  Timers timers;
  Departure departure;
  bool any_gone = false;  // a peer has left, or is dead
  EndpointCounters counters;
};

}  // namespace leeway::protocol
