#include "checker/conservation.h"

#include <cinttypes>

namespace leeway::sim {
namespace {

constexpr const char* kNames[kTrafficKinds] = {"data", "control", "cross"};

double to_ms(Instant now) {
  return static_cast<double>(now.ns) / 1e6;
}

}  // namespace

void Conservation::check(Instant now, const NetworkCounters& counters, const Counts& under_way) {
  for (std::size_t kind = 0; kind < kTrafficKinds; ++kind) {
    const std::uint64_t in = counters.sent[kind] + counters.copied[kind];
    const std::uint64_t out = counters.delivered[kind] + counters.lost[kind] + under_way[kind];
    check_.expect(in == out, [&] {
      return format_text("at %.6f ms: %s packets: %" PRIu64 " sent + %" PRIu64
                         " copied, but %" PRIu64 " delivered + %" PRIu64 " lost + %" PRIu64
                         " under way",
                         to_ms(now), kNames[kind], counters.sent[kind], counters.copied[kind],
                         counters.delivered[kind], counters.lost[kind], under_way[kind]);
    });
    const auto told = [&](PacketStep step) { return steps_[kind][static_cast<std::size_t>(step)]; };
    std::uint64_t lost = 0;
    for (int step = 0; step < kPacketSteps; ++step) {
      if (is_loss(static_cast<PacketStep>(step))) lost += steps_[kind][step];
    }
    const bool agree = told(PacketStep::sent) == counters.sent[kind] &&
                       told(PacketStep::duplicated) == counters.copied[kind] &&
                       told(PacketStep::delivered) == counters.delivered[kind] &&
                       lost == counters.lost[kind];
    check_.expect(agree, [&] {
      return format_text("at %.6f ms: %s packets: counted %" PRIu64 " sent, %" PRIu64
                         " copied, %" PRIu64 " delivered, %" PRIu64 " lost; observed %" PRIu64
                         ", %" PRIu64 ", %" PRIu64 ", %" PRIu64,
                         to_ms(now), kNames[kind], counters.sent[kind], counters.copied[kind],
                         counters.delivered[kind], counters.lost[kind], told(PacketStep::sent),
                         told(PacketStep::duplicated), told(PacketStep::delivered), lost);
    });
  }
}

void Conservation::check_links(Instant now, std::span<const LinkCounters> links,
                               const Counts& under_way) {
  for (std::size_t kind = 0; kind < kTrafficKinds; ++kind) {
    std::uint64_t waiting = 0;
    for (std::size_t link = 0; link < links.size(); ++link) {
      const LinkCounters& counters = links[link];
      const std::uint64_t in = counters.offered[kind] + counters.copied[kind];
      const std::uint64_t out = counters.passed[kind] + counters.lost[kind];
      check_.expect(in >= out, [&] {
        return format_text("at %.6f ms: link %zu: %" PRIu64 " %s packets came to it and %" PRIu64
                           " were copied, but %" PRIu64 " passed and %" PRIu64 " were lost",
                           to_ms(now), link, counters.offered[kind], kNames[kind],
                           counters.copied[kind], counters.passed[kind], counters.lost[kind]);
      });
      waiting += in - out;
    }
    check_.expect(waiting == under_way[kind], [&] {
      return format_text("at %.6f ms: %" PRIu64
                         " %s packets have come to a link and neither passed "
                         "nor were lost, but %" PRIu64 " are under way",
                         to_ms(now), waiting, kNames[kind], under_way[kind]);
    });
  }
}

}  // namespace leeway::sim
