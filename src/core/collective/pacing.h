// Pace of all that a process sends, and what its peers are told of this host's socket. Tells the
// uplink (congestion/uplink.h) what leaves on each path and what reports say of it.
//
// Nothing is paced before begin(). Until then `uplink()` is null, and a node compares that pointer
// and calls none of the functions that need it.
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

  // As Node::pace(), pace_with() and wake_by().
  bool begin(Instant now, const congestion::Settings& settings);
  bool begin_with(Instant now, const Pacing& first);
  void wake_by(std::function<void()> wake);

  congestion::Uplink* uplink() const { return uplink_.get(); }
  // Call it when a member begins to use the path.
  void add_path(Rank slot);
  // Charges bytes that no path counts, such as those of a train to many peers.
  void charge(Instant now, std::size_t bytes) {
    if (uplink_ != nullptr) uplink_->on_group_sent(now, bytes);
  }
  // Call it after begin(), when a train left. `share`: as for Uplink::on_sent().
  void on_train(Instant now, const protocol::TrainBuffer& train, double share = 1);
  // Call it after begin(), when the path has a new report.
  void on_report(Instant now, Rank slot);

  // The same as Node's functions.
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
