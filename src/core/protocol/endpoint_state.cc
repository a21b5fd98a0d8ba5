#include "protocol/endpoint_state.h"

#include <algorithm>

#include "base/contracts.h"

namespace leeway::protocol {

EndpointState::EndpointState(const EndpointConfig& settings, std::span<Path* const> paths)
    : config(settings),
      own_paths(paths.empty() ? config.size : 0),
      links(config.size),
      rounds(config.size),
      outbox(config.size),
      group(config.multicast, links),
      timers(config.size) {
  LEEWAY_ASSERT(config.size >= 1 && config.size <= limits::kPeersMax && config.self < config.size);
  LEEWAY_ASSERT(config.datagram_bytes >= limits::kDatagramBytesMin);
  LEEWAY_ASSERT(config.datagram_bytes <= limits::kDatagramBytesMax);
  LEEWAY_ASSERT(static_cast<int>(config.window_bytes.size()) == config.size);
  for (Rank peer = 0; peer < config.size; ++peer) {
    Path& path = paths.empty() ? own_paths[peer] : *paths[peer];
    const std::size_t window = config.window_bytes[peer] / config.datagram_bytes;
    const std::size_t peers_window = config.peers_window_bytes / config.datagram_bytes;
    const std::size_t window_most =
        config.window_bytes[peer] / std::min(config.datagram_bytes, path.size.base());
    path.configure(static_cast<std::uint32_t>(window), config.rtt_initial,
                   static_cast<std::uint32_t>(peers_window),
                   static_cast<std::uint32_t>(window_most));
    links[peer].attach(path);
    if (peer == config.self || !path.dead()) continue;
    links[peer].gone = links[peer].dead = any_gone = true;
  }
}

bool EndpointState::gate_open(const Round& round, Rank peer) const {
  if (round.plan->message_tag != 0) return after(round.stream->peer_opened_below, round.number);
  return links[peer].has_opened(round.number, round.plan->point_to_point());
}

bool EndpointState::probe_present() {
  bool any = false;
  for (const Rank peer : present()) {
    queue_probe(peer);
    any = true;
  }
  return any;
}

void EndpointState::leave_group(Round& round, FlowKind kind, Rank peer) {
  GroupSender::leave(round.phase(kind), peer);
  outbox.queue_data(peer);
}

void EndpointState::refuse_plan(Rank from) {
  ++counters.refused_plan;
  queue_report(from);
}

void EndpointState::lose(Instant now, Rank peer) {
  LEEWAY_ASSERT(peer != config.self);
  links[peer].gone = any_gone = true;
  if (departure.serving()) timers.arm_leave(now);
}

Duration EndpointState::slowest_timeout() const {
  Duration slowest{0};
  for (const Rank peer : present()) slowest = std::max(slowest, links[peer].rtt().timeout());
  return slowest;
}

}  // namespace leeway::protocol
