// Paces all that a process sends: tells the uplink (congestion/uplink.h) what leaves on each path
// and what reports say of it. Also tells peers how many datagrams this host's socket dropped.
//
// Pacing starts with begin(). Until then uplink() is null, so a node only compares a pointer.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "collective/paths.h"
#include "congestion/controller.h"
#include "congestion/receive_room.h"
#include "congestion/uplink.h"
#include "protocol/train_buffer.h"

namespace leeway::collective {

class Pacing {
 public:
  explicit Pacing(Paths& paths) : paths_(paths) {}

  // See the functions of the same names in Node.
  bool begin(Instant now, const congestion::Settings& settings);
  bool begin_with(Instant now, const Pacing& first);
  void wake_by(std::function<void()> wake);

  congestion::Uplink* uplink() const { return uplink_.get(); }
  // Call it when a member begins to use the path.
  void add_path(Rank slot);
  // Charges bytes that are sent outside any path's counts, such as a train to many peers.
  void charge(Instant now, std::size_t bytes) {
    if (uplink_ != nullptr) uplink_->on_group_sent(now, bytes);
  }
  // Call it after begin(), when a train left. `share`: as in Uplink::on_sent().
  void on_train(Instant now, const protocol::TrainBuffer& train, double share = 1);
  // Call it after begin(), when the path has a new report.
  void on_report(Instant now, Rank slot);

  // See the functions of the same names in Node.
  bool wants_host_drops(Instant now) const { return now >= room_at_; }
  void on_host_drops(Instant now, std::uint64_t drops, std::size_t socket_bytes);

 private:
  void start(Instant now, std::unique_ptr<congestion::Uplink> uplink);

  Paths& paths_;
  std::unique_ptr<congestion::Uplink> uplink_;
  std::function<void()> wake_;
  congestion::ReceiveRoom receive_room_;  // its peers are slots
  std::vector<congestion::ReceiveRoom::Arrived> arrived_;
  Instant room_at_ = Instant::infinite_future();  // the next look at the host's drops
};

}  // namespace leeway::collective
