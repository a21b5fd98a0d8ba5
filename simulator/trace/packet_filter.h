// Chooses packets of a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "leeway/status.h"
#include "trace.pb.h"

namespace leeway::sim::trace {

// A packet passes if it fulfils every condition that is set.
struct PacketFilter {
  std::optional<std::uint32_t> from;
  std::optional<std::uint32_t> to;
  std::optional<Step> step;
  bool losses = false;  // any step that loses
  std::string link;     // name
  std::int64_t after_ns = 0;
  std::int64_t before_ns = INT64_MAX;

  bool admits(const Packet& packet, const std::string& link_name) const;
};

// Sets the step by name: "sent", "queue_full", ..., or "loss" for all losses. An error lists the
// names.
Status set_step(PacketFilter& filter, const std::string& name);

}  // namespace leeway::sim::trace
