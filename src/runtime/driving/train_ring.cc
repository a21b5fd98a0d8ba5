#include "driving/train_ring.h"

#include <algorithm>

namespace leeway::driving {

bool TrainRing::send(Instant now, collective::Node& node, DatagramTransport& transport) {
  released_ = taken_ - transport.borrowed();
  // When no train is out, begins at slot 0 again, so that few slots are in use and their memory
  // stays in the cache.
  if (!any_out()) first_ = prepared_;
  prepare(now, node, transport);
  if (taken_ == prepared_) return false;
  const std::size_t first = slot_of(taken_);
  const std::size_t count = std::min<std::size_t>(prepared_ - taken_, kSlots - first);
  const std::size_t taken = transport.send(std::span(ready_).subspan(first, count));
  taken_ += taken;
  released_ = taken_ - transport.borrowed();
  return taken > 0;
}

void TrainRing::prepare(Instant now, collective::Node& node, DatagramTransport& transport) {
  while (prepared_ - taken_ < kPreparedMax && prepared_ - released_ < kSlots) {
    const std::size_t slot = slot_of(prepared_);
    if (trains_[slot] == nullptr) {
      trains_[slot] = std::make_unique<protocol::TrainBuffer>(transport.limits().train_bytes_max);
      (void)transport.register_memory(trains_[slot]->memory());  // else it copies
    }
    if (!node.poll_train(now, *trains_[slot])) return;
    ready_[slot] = trains_[slot]->train();
    ++prepared_;
  }
}

}  // namespace leeway::driving
