#include "trace/packet_text.h"

#include <cinttypes>
#include <cstdio>

#include "trace/datagram_text.h"
#include "trace/trace_format.h"

namespace leeway::sim::trace {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;

std::string contents_text(const Packet& packet) {
  if (packet.traffic() == cross) return "cross traffic";
  if (packet.has_datagram()) {
    return datagram_text(std::as_bytes(std::span(packet.datagram())));
  }
  char word[48];
  std::snprintf(word, sizeof word, "%s, word %016" PRIx64,
                packet.traffic() == control ? "control" : "data", packet.word());
  return word;
}

std::string flags_text(std::uint32_t flags) {
  std::string text;
  const auto add = [&](std::uint32_t flag, const char* name) {
    if ((flags & flag) != 0) text += std::string(text.empty() ? "  " : ", ") + name;
  };
  add(kMarked, "marked");
  add(kTrimmed, "trimmed");
  add(kCorrupt, "corrupt");
  add(kDuplicate, "duplicate");
  return text;
}

}  // namespace

const char* step_text(Step step) {
  switch (step) {
    case sent:
      return "sent";
    case delivered:
      return "delivered";
    case duplicated:
      return "duplicated";
    case queue_full:
      return "queue full";
    case queue_early:
      return "queue early";
    case lost:
      return "lost";
    case blocked:
      return "blocked";
  }
  return "?";
}

std::string packet_text(const Packet& packet, const std::string& link_name) {
  const std::string ranks = std::to_string(packet.from()) + ">" + std::to_string(packet.to());
  char line[128];
  std::snprintf(line, sizeof line, "%8" PRIu64 ".%06" PRIu64 " ms  %-11s %9s %6u B  ",
                packet.time_ns() / kNsPerMs, packet.time_ns() % kNsPerMs, step_text(packet.step()),
                ranks.c_str(), packet.bytes());
  std::string text = line + contents_text(packet) + flags_text(packet.flags());
  if (!link_name.empty() && link_name != ranks) text += "  on " + link_name;
  return text;
}

}  // namespace leeway::sim::trace
