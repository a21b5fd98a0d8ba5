// Passes the events of one network on to several observers.
#pragma once

#include <vector>

#include "network/network.h"

namespace leeway::sim {

class Watchers final : private PacketObserver {
 public:
  // Adds a watcher; null is ignored.
  void add(PacketObserver* watcher) {
    if (watcher != nullptr) watchers_.push_back(watcher);
  }

  // Returns the argument for Network::observe(): null without watchers, the watcher itself if there
  // is one, else this object. So events take the way through this object only if they must.
  PacketObserver* observer() {
    if (watchers_.empty()) return nullptr;
    return watchers_.size() == 1 ? watchers_[0] : this;
  }

 private:
  void on_packet(Instant now, PacketStep step, LinkId link, const Packet& packet,
                 ByteSpan payload) override {
    for (PacketObserver* watcher : watchers_) watcher->on_packet(now, step, link, packet, payload);
  }

  std::vector<PacketObserver*> watchers_;
};

}  // namespace leeway::sim
