#include "wan.h"

#include <algorithm>
#include <array>
#include <utility>

namespace leeway::lab {

Result<std::unique_ptr<Wan>> Wan::make(const sim::scenario::Scenario& scenario,
                                       const WanOptions& options, PacketSink& sink) {
  auto topology = sim::Topology::make(scenario);
  if (!topology.ok()) return topology.status();
  std::unique_ptr<Wan> wan(new Wan(*std::move(topology), options, sink));
  auto network = sim::Network::make(wan->topology_, options.seed, wan->events_, kPacketBytesMax);
  if (!network.ok()) return network.status();
  wan->network_ = std::move(*network);
  wan->network_->attach(sim::Traffic::data, *wan);
  return wan;
}

Wan::Wan(sim::Topology topology, const WanOptions& options, PacketSink& sink)
    : topology_(std::move(topology)), options_(options), sink_(&sink), marked_(kPacketBytesMax) {}

void Wan::take(Instant now, std::uint32_t rank, ByteSpan packet) {
  ++counters_.taken;
  counters_.taken_bytes += packet.size();
  const Ipv4View view(packet);
  const std::uint32_t to = view.valid() ? view.destination() - options_.first_address : ranks();
  if (to >= ranks() || to == rank) {
    ++counters_.not_carried;
    return;
  }
  const std::uint32_t mtu = path_mtu(now, rank, to);
  if (packet.size() > mtu) return refuse_too_long(now, rank, packet, mtu);
  sim::Packet sent;
  sent.from = rank;
  sent.to = to;
  sent.bytes = static_cast<std::uint32_t>(packet.size());
  sent.payload = network_->payloads().put(packet);
  sent.ecn_capable = view.ecn_capable();
  network_->send(now, sent);
}

void Wan::run_until(Instant now) {
  for (sim::Event event; events_.pop_until(now, event);) network_->on_event(event);
}

void Wan::on_packet(Instant now, const sim::Packet& packet, ByteSpan payload) {
  ++counters_.delivered;
  counters_.delivered_bytes += payload.size();
  if (packet.marked && !packet.corrupt) [[unlikely]] {
    std::ranges::copy(payload, marked_.begin());
    const std::span<std::byte> copy(marked_.data(), payload.size());
    mark_congestion(copy);
    payload = copy;
  }
  sink_->deliver(now, packet.to, payload, packet.corrupt);
}

std::uint32_t Wan::path_mtu(Instant now, std::uint32_t from, std::uint32_t to) const {
  std::uint32_t bytes = kPacketBytesMax;
  for (const PathMtu& mtu : options_.path_mtus) {
    if (mtu.rank && *mtu.rank != from && *mtu.rank != to) continue;
    if (now.ns >= mtu.from_ns) bytes = mtu.bytes;
  }
  return bytes;
}

void Wan::refuse_too_long(Instant now, std::uint32_t rank, ByteSpan packet, std::uint32_t mtu) {
  ++counters_.too_long;
  if (!options_.tell_path_mtu) return;
  std::array<std::byte, kIcmpBytesMax> answer{};
  sink_->deliver(now, rank, ByteSpan(answer).first(write_too_big(packet, mtu, answer)), false);
}

std::vector<LinkReport> Wan::links() const {
  std::vector<LinkReport> links;
  for (sim::LinkId id = 0; id < topology_.links(); ++id) {
    const sim::LinkCounters& counters = network_->link_counters(id);
    if (counters.offered[0] == 0) continue;
    links.push_back({topology_.name(id), sim::line_rate_bps(topology_.properties(id)), counters});
  }
  return links;
}

}  // namespace leeway::lab
