// What arrives. After src/protocol/endpoint_receive.cc.
#include <algorithm>

#include "base/contracts.h"
#include "endpoint/abstract_endpoints.h"

namespace leeway::sim {
namespace {

// As in core_endpoints.cc: what the socket of a paused process holds.
constexpr std::uint64_t kSocketBytes = std::uint64_t{8} << 20;

// Calls ahead of the own one of which early packets are kept.
constexpr std::uint32_t kCallsAheadMax = limits::kOpenRoundsMax - 1;

}  // namespace

void AbstractEndpoints::on_packet(Instant now, const Packet& packet, ByteSpan) {
  AbstractRank& node = ranks_[packet.to];
  // Cut or damaged, it fails its checksum: nothing of it is believed.
  if (node.dead || packet.trimmed || packet.corrupt) return;
  if (node.paused) {
    if (node.socket_bytes + packet.bytes > kSocketBytes) {
      ++counters_.socket_losses;
      return;
    }
    node.socket_bytes += packet.bytes;
    node.socket.push_back(packet);
    return;
  }
  handle(now, packet);
  follow_up(now, packet.to);
}

void AbstractEndpoints::expect(const Packet& packet) const {
  prefetch(packet.to, packet.from);
  const AbstractWord word(packet.word);
  const AbstractRank& node = ranks_[packet.to];
  if (word.type() != AbstractType::data || node.plan == nullptr) return;
  const std::size_t at = node.plan->ledger_at(word.half(), packet.from, packet.to);
  __builtin_prefetch(node.ledger.data() + at + word.index() / 64, 1);
}

void AbstractEndpoints::handle(Instant now, const Packet& packet) {
  const AbstractWord word(packet.word);
  AbstractLink& from = link(packet.to, packet.from);
  from.on_arrival(now, word.sequence());
  switch (word.type()) {
    case AbstractType::data:
      on_data(now, packet.to, packet.from, word);
      break;
    case AbstractType::report:
      on_report(now, packet.to, packet.from, word);
      break;
    case AbstractType::end:
      on_end(now, packet.to, packet.from, word);
      break;
    case AbstractType::repair:
      on_repair(packet.to, packet.from, word);
      break;
    case AbstractType::probe:
      queue_report(packet.to, packet.from);
      break;
  }
  if (from.unreported >= report_every_) queue_report(packet.to, packet.from);
}

void AbstractEndpoints::on_data(Instant now, std::uint32_t rank, std::uint32_t from,
                                AbstractWord word) {
  const std::uint32_t ours = ranks_[rank].opened;
  const std::uint32_t theirs = nearest_count(word.opened(), ours, kOpenedBits);
  on_peer_opened(rank, from, theirs);
  confirm_below(rank, from, word.settled() ? theirs + 1 : theirs);
  if (theirs == ours) return accept(now, rank, from, word);
  if (later(theirs, ours)) return keep_early(rank, from, word);
  queue_report(rank, from);  // the sender does not know yet that we need nothing more
}

void AbstractEndpoints::keep_early(std::uint32_t rank, std::uint32_t from, AbstractWord word) {
  AbstractRank& node = ranks_[rank];
  AbstractLink& link_from = link(rank, from);
  const std::uint32_t ahead = nearest_count(word.opened(), node.opened, kOpenedBits) - node.opened;
  if (ahead > kCallsAheadMax || link_from.early == limits::kEarlySlotsPerPeer) {
    ++counters_.early_dropped;
    return;
  }
  ++link_from.early;
  node.early.push_back({from, word.bits()});
}

void AbstractEndpoints::accept(Instant now, std::uint32_t rank, std::uint32_t from,
                               AbstractWord word) {
  AbstractRank& node = ranks_[rank];
  const int half = word.half();
  const std::uint32_t index = word.index();
  AbstractLink& sender = link(rank, from);
  AbstractReceiveFlow& flow = sender.receive[half];
  std::uint64_t& seen = node.ledger[node.plan->ledger_at(half, from, rank) + index / 64];
  const std::uint64_t bit = std::uint64_t{1} << index % 64;
  if ((seen & bit) != 0) {
    ++counters_.duplicate;
    return;
  }
  if (flow.finished || node.phases[half].settled ||
      (half == kReduceHalf && node.shard.passed(index))) {
    ++counters_.late;
    return;
  }
  seen |= bit;
  ++flow.arrived;
  ++node.arrived;
  const bool first_pass = word.attempt() == 0;
  node.repaired += !first_pass;
  flow.last_ns = now.ns;
  flow.tries = 0;
  if (half == kReduceHalf) node.release_due |= node.shard.accept(index, first_pass, sender.passed);
  flow.ended |= first_pass && word.last();  // the last position is an END
  if (flow.arrived == node.plan->flow_packets(half, from, rank)) {
    finish_receive(now, rank, from, half);
  } else if (flow.ended) {
    arm(now, rank, from, now + Duration(quiet_ns(sender, node.plan->halves[half])));
  }
}

void AbstractEndpoints::on_peer_opened(std::uint32_t rank, std::uint32_t peer,
                                       std::uint32_t opened) {
  AbstractLink& to = link(rank, peer);
  if (!later(opened, to.peer_opened)) return;
  to.peer_opened = opened;
  queue_data(rank, peer);  // a gate may have opened
}

// The peer wants nothing more of the calls below this number.
void AbstractEndpoints::confirm_below(std::uint32_t rank, std::uint32_t peer,
                                      std::uint32_t opened) {
  if (later(opened, ranks_[rank].opened)) {
    settle_send(rank, peer, kReduceHalf);
    settle_send(rank, peer, kSpreadHalf);
  }
  if (link(rank, peer).lingering == 0) return;
  for (AbstractLingering& entry : lingering_to(rank, peer)) {
    if (later(opened, entry.opened)) confirm_lingering(rank, entry);
  }
}

std::span<AbstractLingering> AbstractEndpoints::lingering_to(std::uint32_t rank,
                                                             std::uint32_t peer) {
  auto& all = ranks_[rank].lingering;
  const auto first =
      std::lower_bound(all.begin(), all.end(), peer,
                       [](const AbstractLingering& a, std::uint32_t p) { return a.peer < p; });
  auto last = first;
  while (last != all.end() && last->peer == peer) ++last;
  return {first, last};
}

void AbstractEndpoints::confirm_lingering(std::uint32_t rank, AbstractLingering& entry) {
  if (entry.flow.settled) return;
  entry.flow.settled = true;
  --link(rank, entry.peer).lingering;
}

void AbstractEndpoints::on_report(Instant now, std::uint32_t rank, std::uint32_t from,
                                  AbstractWord word) {
  AbstractRank& node = ranks_[rank];
  AbstractLink& to = link(rank, from);
  const AbstractWord::Report report = word.report();
  const std::uint32_t theirs = nearest_count(word.opened(), node.opened, kOpenedBits);
  to.on_report(now, report, window_);
  on_peer_opened(rank, from, theirs);
  if (to.lingering > 0) {
    for (AbstractLingering& entry : lingering_to(rank, from)) {
      const bool current = entry.opened == theirs;
      if (later(theirs, entry.opened) || (current && report.half_settled[entry.half]))
        confirm_lingering(rank, entry);
    }
  }
  if (node.plan != nullptr && theirs == node.opened) {
    for (const int half : {kReduceHalf, kSpreadHalf}) {
      if (report.half_settled[half]) settle_send(rank, from, half);
    }
    if (report.closed) on_peer_left(now, rank, from);
  } else if (node.plan != nullptr && later(theirs, node.opened)) {
    confirm_below(rank, from, theirs);
    if (!report.lingers) on_peer_left(now, rank, from);
  }
  queue_data(rank, from);  // credit may have come back
}

// The peer has closed this call: it wants nothing more of us and will send nothing more to us.
void AbstractEndpoints::on_peer_left(Instant now, std::uint32_t rank, std::uint32_t peer) {
  AbstractLink& from = link(rank, peer);
  for (const int half : {kReduceHalf, kSpreadHalf}) {
    settle_send(rank, peer, half);
    AbstractReceiveFlow& flow = from.receive[half];
    if (flow.finished || flow.abandoned) continue;
    flow.abandoned = true;
    arm(now, rank, peer, now + Duration(quiet_ns(from, ranks_[rank].plan->halves[half])));
  }
}

void AbstractEndpoints::on_end(Instant now, std::uint32_t rank, std::uint32_t from,
                               AbstractWord word) {
  const std::uint32_t ours = ranks_[rank].opened;
  const std::uint32_t theirs = nearest_count(word.opened(), ours, kOpenedBits);
  if (later(theirs, ours)) return;  // not opened here yet: the sender repeats it
  AbstractLink& sender = link(rank, from);
  AbstractReceiveFlow& flow = sender.receive[word.half()];
  if (theirs != ours || flow.finished) return queue_report(rank, from);
  if (!flow.ended_at_least(word.attempt())) flow.ended_pass = word.attempt();
  flow.ended = true;
  arm(now, rank, from, now + Duration(quiet_ns(sender, ranks_[rank].plan->halves[word.half()])));
}

void AbstractEndpoints::on_repair(std::uint32_t rank, std::uint32_t from, AbstractWord word) {
  AbstractRank& node = ranks_[rank];
  const int half = word.half();
  const std::uint32_t theirs = nearest_count(word.opened(), node.opened, kOpenedBits);
  const bool current = theirs == node.opened && node.plan != nullptr;
  AbstractSendFlow* flow = current ? &link(rank, from).send[half] : nullptr;
  const AbstractPlan* plan = node.plan;
  if (!current) {
    for (AbstractLingering& entry : lingering_to(rank, from)) {
      if (entry.opened != theirs || entry.half != half) continue;
      flow = &entry.flow;
      plan = entry.plan;
    }
  }
  if (flow == nullptr || flow->settled || !plan->halves[half].repairable) return;
  const bool handed_out =
      !flow->first_pass() || flow->position == plan->flow_packets(half, rank, from);
  const bool newer = static_cast<std::int8_t>(word.attempt() - flow->pass) > 0;
  if (!handed_out || !newer) return;  // a copy of a request that was taken, or one before it
  flow->pass = word.attempt();
  flow->position = 0;
  if (current && flow->pass_over) ++node.phases[half].passes_open;
  flow->pass_over = false;
  flow->end_due = false;
  flow->end_tries = 0;
  queue_data(rank, from);
}

}  // namespace leeway::sim
