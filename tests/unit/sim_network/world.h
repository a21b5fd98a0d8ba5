// A network made from a scenario's text. It runs event by event, and records all that happens.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "network/network.h"
#include "scenario/parse.h"

namespace leeway::sim {

struct Seen {
  std::int64_t now_ns = 0;
  PacketStep step = PacketStep::sent;
  LinkId link = kArrived;
  Packet packet;
  std::vector<std::byte> payload;
};

class World : public PacketObserver, public PacketReceiver {
 public:
  explicit World(const std::string& scenario, std::uint64_t seed = 1)
      : topology(Topology::make(scenario::parse_text(scenario, "test").value()).value()),
        network(Network::make(topology, seed, queue, kPayloadMax).value()) {
    for (const Traffic traffic : {Traffic::data, Traffic::control, Traffic::cross}) {
      network->attach(traffic, *this);
    }
    network->observe(this);
  }

  static constexpr std::size_t kPayloadMax = 256;

  Packet packet(std::uint32_t from, std::uint32_t to, std::uint32_t bytes = 1000) const {
    Packet packet;
    packet.from = from;
    packet.to = to;
    packet.bytes = bytes;
    return packet;
  }

  void send(std::int64_t now_ns, const Packet& packet) { network->send({now_ns}, packet); }

  // Handles one event. Returns false if none is left.
  bool step() {
    Event event;
    if (!queue.pop(event)) return false;
    EXPECT_EQ(event.kind, static_cast<std::uint32_t>(EventKind::network));
    if (looks_ahead) network->look_ahead();
    network->on_event(event);
    return true;
  }
  void run() {
    while (step()) {
    }
  }

  void on_packet(Instant now, PacketStep step, LinkId link, const Packet& packet,
                 ByteSpan payload) override {
    seen.push_back({now.ns, step, link, packet, {payload.begin(), payload.end()}});
  }
  void on_packet(Instant now, const Packet& packet, ByteSpan payload) override {
    received.push_back(
        {now.ns, PacketStep::delivered, kArrived, packet, {payload.begin(), payload.end()}});
  }

  void expect(const Packet&) const override { ++expected; }

  std::size_t count(PacketStep step) const {
    std::size_t count = 0;
    for (const Seen& one : seen) count += one.step == step;
    return count;
  }

  // Returns arrival times in the order of arrival.
  std::vector<std::int64_t> times() const {
    std::vector<std::int64_t> times;
    for (const Seen& one : received) times.push_back(one.now_ns);
    return times;
  }
  std::vector<std::uint64_t> words() const {
    std::vector<std::uint64_t> words;
    for (const Seen& one : received) words.push_back(one.packet.word);
    return words;
  }

  bool looks_ahead = false;
  mutable std::size_t expected = 0;  // packets announced
  EventQueue queue;
  Topology topology;
  std::unique_ptr<Network> network;
  std::vector<Seen> seen;      // as the observer
  std::vector<Seen> received;  // as the receiver
};

inline constexpr auto kData = static_cast<std::size_t>(Traffic::data);

// At this rate a byte takes a nanosecond.
inline constexpr const char* kByteEachNs = "rate_mbps: 8000 ";

inline std::string mesh(const std::string& link) {
  return "ranks: 3 link { " + link + " }";
}

inline Packet numbered(Packet packet, std::uint64_t word) {
  packet.word = word;
  return packet;
}

}  // namespace leeway::sim
