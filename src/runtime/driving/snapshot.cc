#include "driving/snapshot.h"

#include <algorithm>

#include "driving/channel.h"

namespace leeway::driving {
namespace {

// Adds to `total` how much a counter has grown since the last call. `now` is its value; it has 32
// bits and wraps.
void advance(std::uint64_t& total, std::uint32_t now) {
  total += static_cast<std::uint32_t>(now - static_cast<std::uint32_t>(total));
}

// Silence after which a peer is suspect. A peer that computes longer than others is silent, too,
// but it answers as soon as it is asked.
constexpr Duration kSuspectAfter = std::chrono::milliseconds(250);

PeerState state_of(Instant now, const protocol::Link& link) {
  if (link.dead) return PeerState::dead;
  if (link.gone) return PeerState::gone;
  const Duration patience = std::max(kSuspectAfter, 2 * link.rtt().timeout());
  if (link.watch.unanswered(now) > patience) return PeerState::suspect;
  return link.heard ? PeerState::alive : PeerState::joining;
}

Limit limit_of(protocol::Sender::Hold hold) {
  switch (hold) {
    case protocol::Sender::Hold::nothing:
      return Limit::application;
    case protocol::Sender::Hold::credit:
      return Limit::grant;
    case protocol::Sender::Hold::turn:
      return Limit::uplink;
    case protocol::Sender::Hold::relay:
      return Limit::relay;
    case protocol::Sender::Hold::gate:
    case protocol::Sender::Hold::answer:
      break;
  }
  return Limit::peer;
}

}  // namespace

const char* to_string(PeerState state) {
  constexpr std::array<const char*, kPeerStates> kNames = {"joining", "alive", "suspect", "dead",
                                                           "gone"};
  return kNames[static_cast<std::size_t>(state)];
}

const char* to_string(Limit limit) {
  constexpr std::array<const char*, kLimits> kNames = {"application", "uplink",   "grant",
                                                       "peer",        "deadline", "relay"};
  return kNames[static_cast<std::size_t>(limit)];
}

void Driver::observe(std::shared_ptr<Observer> observer) {
  const Session session(*this);
  observer_ = std::move(observer);
  snapshot_.at = steady_now();
  look_at_ = observer_ == nullptr ? Instant::infinite_future() : snapshot_.at;
}

bool Driver::observed() {
  const Session session(*this);
  return observer_ != nullptr;
}

void Driver::look(Instant now) {
  const Duration since = now - snapshot_.at;
  look_at_ = now + kSnapshotEvery;
  unseen_ = false;
  snapshot_.at = now;
  snapshot_.kind = kind_;
  snapshot_.sealed = layers_.sealed != nullptr;
  snapshot_.wire = transport_->counters();
  if (layers_.where != nullptr && snapshot_.wire.send_errors > 0)
    snapshot_.refused_sends = layers_.where->last_refusals();
  if (layers_.sealed != nullptr) {
    snapshot_.seal = layers_.sealed->seal_counters();
    snapshot_.forwarded = layers_.sealed->forwarded();
    look_at_relays();
  }
  snapshot_.refused = node_.refused();
  if (const congestion::Uplink* const uplink = node_.uplink(); uplink != nullptr) {
    const congestion::Pace pace = uplink->pace();
    snapshot_.uplink = {.paced = true,
                        .bits_per_second = pace.bits_per_second,
                        .in_flight_bytes = uplink->in_flight_bytes(),
                        .in_flight_bytes_max = pace.in_flight_bytes,
                        .noise = uplink->noise()};
  }
  snapshot_.channels.resize(channels_.size());
  for (std::size_t i = 0; i < channels_.size(); ++i)
    channels_[i]->look(since, snapshot_.channels[i]);
  observer_->on_snapshot(snapshot_);
}

void Driver::look_at_relays() {
  snapshot_.relays.clear();
  const auto& shares = layers_.sealed->shares().shares();
  for (Rank slot = 0; slot < shares.size(); ++slot) {
    if (shares[slot].bytes_per_second == 0) continue;
    snapshot_.relays.push_back({slot, layers_.sealed->address_of(slot), shares[slot]});
  }
}

void Channel::look(Duration since, ChannelView& view) {
  const protocol::Endpoint& endpoint = this->endpoint();
  view.name = name_;
  view.epoch = config_.epoch;
  view.self = config_.self;
  view.size = config_.size;
  view.datagram_bytes = config_.datagram_bytes;
  view.rounds_open = static_cast<int>(endpoint.rounds().open_count());
  const bool cut = endpoint.counters().deadline_cuts > deadline_cuts_seen_;
  deadline_cuts_seen_ = endpoint.counters().deadline_cuts;
  view.counters = endpoint.counters();
  views_.resize(static_cast<std::size_t>(config_.size) - 1);
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const Rank peer = static_cast<Rank>(i) + (i >= config_.self ? 1 : 0);
    views_[i].rank = peer;
    look_at_peer(since, cut, views_[i]);
  }
  view.peers = views_;
}

void Channel::look_at_peer(Duration since, bool cut, PeerView& view) {
  const protocol::Link& link = endpoint().link(view.rank);
  const protocol::Path& path = link.path();
  view.process = slots_[view.rank];
  view.state = state_of(driver_->snapshot_.at, link);
  const Rank relay = driver_->layers_.sealed == nullptr
                         ? kNoRank
                         : driver_->layers_.sealed->relay_of(slots_[view.rank]);
  view.relayed = relay != kNoRank;
  view.relay = view.relayed ? member_->rank_in(relay) : kNoRank;
  view.rtt_measured = path.rtt.measured();
  view.rtt = path.rtt.smoothed();
  view.loss = std::max(0.0, 1 - path.delivered_fraction());
  view.bytes_sent = path.sent_bytes();
  advance(view.bytes_delivered, path.reported().received_bytes);
  advance(view.bytes_received, path.received_bytes());
  advance(view.datagrams_sent, path.last_sequence());
  advance(view.datagrams_received, path.received());
  view.datagrams_in_flight = path.in_flight();
  view.window_datagrams = path.window();
  // A datagram that was overtaken counts as lost until it arrives.
  const auto missing =
      static_cast<std::int32_t>(path.reported().largest_sequence - path.reported().received);
  view.datagrams_lost = std::max<std::uint64_t>(view.datagrams_lost, std::max(missing, 0));
  if (const congestion::Uplink* const uplink = driver_->node_.uplink(); uplink != nullptr) {
    const congestion::LinkDelay delay = uplink->delay(slots_[view.rank]);
    view.rtt_min = delay.rtt_min;
    view.queueing = delay.queueing;
  }
  // The link's present state counts for the time since the last look, but for two intervals at
  // most. Any time before that counts as Limit::application, because no snapshots are taken while
  // nothing happens.
  Limit limit = limit_of(endpoint().sender().hold(view.rank));
  if (cut && view.state <= PeerState::suspect) limit = Limit::deadline;
  const Duration seen = std::min(since, 2 * kSnapshotEvery);
  view.limited[static_cast<std::size_t>(limit)] += seen;
  view.limited[static_cast<std::size_t>(Limit::application)] += since - seen;
}

}  // namespace leeway::driving
