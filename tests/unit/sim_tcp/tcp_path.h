// TCP flows over one path with a queue, losses and delay, without the simulator's room `network`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/event_queue.h"
#include "link/delay_model.h"
#include "link/loss_model.h"
#include "link/queue.h"
#include "tcp/tcp_flow.h"

namespace leeway::sim {

struct PathOptions {
  std::uint64_t bits_per_second = 0;  // on the way to the receiver, unlimited if 0
  std::uint64_t queue_bytes = 1'000'000;
  std::uint64_t mark_bytes = 0;
  std::int64_t one_way_ns = 5'000'000;
  std::int64_t jitter_ns = 0;  // data only
  std::vector<LossOptions> losses;
  std::vector<LossOptions> ack_losses;
  std::uint64_t seed = 1;
};

class TcpPath final : public TcpHost {
 public:
  explicit TcpPath(const PathOptions& options);

  TcpFlow& add(const TcpOptions& options);
  TcpFlow& flow(std::uint32_t number) { return *flows_[number]; }
  std::uint64_t delivered(std::uint32_t flow) const { return delivered_[flow]; }

  // Runs until time `ns`, or until no event is left.
  void run_until(std::int64_t ns);
  bool run_until_delivered(std::uint32_t flow, std::uint64_t bytes, std::int64_t limit_ns);
  void at(std::int64_t ns, std::function<void(Instant)> what);
  Instant now() const { return queue_.now(); }

  // Sees every packet that is sent. Returns true to lose it.
  std::function<bool(Instant, const Packet&)> filter;

  void send_packet(Instant now, const Packet& packet) override;
  void wake_at(Instant at, std::uint32_t flow, TcpEnd end) override;
  void on_delivered(Instant now, std::uint32_t flow, std::uint64_t bytes) override;

 private:
  enum Kind : std::uint32_t { kArrival, kWake, kCall };

  void dispatch(const Event& event);
  std::uint32_t keep(const Packet& packet);

  EventQueue queue_;
  std::vector<std::unique_ptr<TcpFlow>> flows_;
  std::vector<std::uint64_t> delivered_;
  std::vector<std::function<void(Instant)>> calls_;
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_;
  std::optional<Queue> line_;
  LossModel loss_;
  LossModel ack_loss_;
  DelayModel delay_;
  std::int64_t one_way_ns_;
};

}  // namespace leeway::sim
