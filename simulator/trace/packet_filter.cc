#include "trace/packet_filter.h"

#include "trace/trace_format.h"

namespace leeway::sim::trace {

bool PacketFilter::admits(const Packet& packet, const std::string& link_name) const {
  const auto time_ns = static_cast<std::int64_t>(packet.time_ns());
  return (!from || packet.from() == *from) && (!to || packet.to() == *to) &&
         (!step || packet.step() == *step) &&
         (!losses || is_loss(static_cast<PacketStep>(packet.step()))) &&
         (link.empty() || link == link_name) && time_ns >= after_ns && time_ns < before_ns;
}

Status set_step(PacketFilter& filter, const std::string& name) {
  Step step;
  if (name == "loss") {
    filter.losses = true;
    return {};
  }
  if (Step_Parse(name, &step)) {
    filter.step = step;
    return {};
  }
  return Status::error(StatusCode::kInvalidArgument,
                       "--step %s: is not one of sent, delivered, duplicated, queue_full, "
                       "queue_early, lost, blocked and loss (any of the last four)",
                       name.substr(0, 60).c_str());
}

}  // namespace leeway::sim::trace
