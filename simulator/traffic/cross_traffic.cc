#include "traffic/cross_traffic.h"

#include <algorithm>
#include <string>

#include "engine/random_stream.h"
#include "scenario/units.h"

namespace leeway::sim {

namespace {

// Flows begin at random times within this span, a wide-area round trip, so that their slow starts
// do not coincide.
constexpr std::uint64_t kFlowsBeginWithinNs = 100'000'000;

// Rate limit on the cross traffic that all sources of one rank's host send together: 100 Gb/s.
constexpr std::int64_t kLineBitsPerNanosecond = 100;

}  // namespace

Result<std::unique_ptr<CrossTraffic>> CrossTraffic::make(const scenario::Scenario& scenario,
                                                         std::uint64_t seed, EventQueue& queue,
                                                         Network& network) {
  auto traffic = std::unique_ptr<CrossTraffic>(new CrossTraffic(queue, network));
  for (const scenario::CrossTraffic& options : scenario.cross_traffic()) {
    const auto entry = static_cast<std::uint32_t>(traffic->entries_.size());
    Entry& added = traffic->entries_.emplace_back();
    added.from = options.from();
    added.to = options.to();
    added.first = static_cast<std::uint32_t>(traffic->sources_.size());
    if (options.has_on_off()) {
      traffic->add_on_off(options, seed, entry);
    } else {
      traffic->add_flows(options, seed, entry);
    }
  }
  traffic->line_free_at_.resize(scenario.ranks(), Instant{0});
  network.attach(Traffic::cross, *traffic);
  return traffic;
}

void CrossTraffic::add_flows(const scenario::CrossTraffic& options, std::uint64_t seed,
                             std::uint32_t entry) {
  RandomStream random(seed, entry, Purpose::traffic);
  TcpHost& host = *this;
  for (std::uint32_t i = 0; i < options.cubic().flows(); ++i) {
    const auto number = static_cast<std::uint32_t>(sources_.size());
    const TcpFlow::Place place{.flow = number,
                               .from = options.from(),
                               .to = options.to(),
                               .data = Traffic::cross,
                               .acks = Traffic::cross};
    sources_.push_back({entry, std::make_unique<TcpFlow>(place, TcpOptions{}, host), nullptr});
    entries_[entry].offsets_ns.push_back(
        static_cast<std::int64_t>(random.below(kFlowsBeginWithinNs)));
  }
}

void CrossTraffic::add_on_off(const scenario::CrossTraffic& options, std::uint64_t seed,
                              std::uint32_t entry) {
  const scenario::CrossTraffic::OnOff& on_off = options.on_off();
  const std::uint64_t bits_per_second = bps_of_mbps(on_off.rate_mbps());
  const std::int64_t on_ns = std::max<std::int64_t>(ns_of_ms(on_off.on_ms()), 1);
  const std::int64_t off_ns = ns_of_ms(on_off.off_ms());
  sources_.push_back(
      {entry, nullptr,
       std::make_unique<OnOffSource>(std::max<std::uint64_t>(bits_per_second, 1), on_ns, off_ns)});
  RandomStream random(seed, entry, Purpose::traffic);
  entries_[entry].offsets_ns.push_back(
      static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(on_ns + off_ns))));
}

void CrossTraffic::push(Instant at, std::uint32_t number, Step step) {
  queue_.push(at, number, static_cast<std::uint32_t>(EventKind::traffic),
              static_cast<std::uint64_t>(step));
}

void CrossTraffic::start(Instant now) {
  started_ = now;
  for (const Entry& entry : entries_) {
    std::uint32_t number = entry.first;
    for (const std::int64_t offset_ns : entry.offsets_ns) {
      push(now + Duration(offset_ns), number++, Step::begin);
    }
  }
}

void CrossTraffic::on_event(const Event& event) {
  const Instant now{event.time_ns};
  Source& source = sources_[event.target];
  switch (static_cast<Step>(event.argument)) {
    case Step::begin:
      return begin(now, event.target);
    case Step::wake_sender:
      return source.flow->on_wake(now, TcpEnd::sender);
    case Step::wake_receiver:
      return source.flow->on_wake(now, TcpEnd::receiver);
    case Step::emit:
      return emit(now, event.target);
  }
}

void CrossTraffic::begin(Instant now, std::uint32_t number) {
  Source& source = sources_[number];
  if (source.flow) {
    source.flow->send(now, TcpFlow::kEndless);
  } else {
    source.on_off->begin(now.ns);
    emit(now, number);
  }
}

void CrossTraffic::emit(Instant now, std::uint32_t number) {
  Source& source = sources_[number];
  const Entry& entry = entries_[source.entry];
  Packet packet;
  packet.from = entry.from;
  packet.to = entry.to;
  packet.bytes = OnOffSource::kPacketBytes;
  packet.word = TcpFlow::flow_word(number);
  packet.traffic = Traffic::cross;
  network_.send(now, packet);
  push({source.on_off->next_ns()}, number, Step::emit);
}

void CrossTraffic::on_packet(Instant now, const Packet& packet, ByteSpan) {
  const std::uint32_t number = TcpFlow::flow_of(packet);
  Source& source = sources_[number];
  if (source.flow) {
    source.flow->on_packet(now, packet);
  } else if (!packet.corrupt && !packet.trimmed) {
    entries_[source.entry].delivered_bytes += packet.bytes - kHeaderBytes;
  }
}

void CrossTraffic::send_packet(Instant now, const Packet& packet) {
  Instant& free_at = line_free_at_[packet.from];
  const std::int64_t bits = std::int64_t{packet.bytes} * 8;
  free_at = std::max(free_at, now) + Duration(bits / kLineBitsPerNanosecond + 1);
  network_.send(now, packet);
}

Instant CrossTraffic::line_free_at(Instant now, std::uint32_t rank) {
  return std::max(line_free_at_[rank], now);
}

void CrossTraffic::wake_at(Instant at, std::uint32_t flow, TcpEnd end) {
  push(at, flow, end == TcpEnd::sender ? Step::wake_sender : Step::wake_receiver);
}

void CrossTraffic::on_delivered(Instant, std::uint32_t flow, std::uint64_t bytes) {
  entries_[sources_[flow].entry].delivered_bytes += bytes;
}

std::vector<Measure> CrossTraffic::measures(Instant now) const {
  std::vector<Measure> measures;
  const std::int64_t ns = (now - started_).count();
  if (ns == 0) return measures;
  for (std::size_t entry = 0; entry < entries_.size(); ++entry) {
    const double bits = static_cast<double>(entries_[entry].delivered_bytes) * 8;
    measures.push_back({"cross[" + std::to_string(entry) + "].goodput_mbps",
                        bits * 1e3 / static_cast<double>(ns)});
  }
  return measures;
}

}  // namespace leeway::sim
