#include "collective/pacing.h"

#include <utility>

#include "base/contracts.h"

namespace leeway::collective {
namespace {

// Interval at which the system is asked for its count of drops. Each question takes a microsecond.
constexpr Duration kHostDropsEvery = std::chrono::milliseconds(10);

}  // namespace

bool Pacing::begin(Instant now, const congestion::Settings& settings) {
  if (uplink_ != nullptr) return false;
  auto controller = congestion::make_controller(settings);
  if (controller == nullptr) return false;
  start(now, std::make_unique<congestion::Uplink>(std::move(controller)));
  return true;
}

bool Pacing::begin_with(Instant now, const Pacing& first) {
  if (uplink_ != nullptr || first.uplink_ == nullptr) return false;
  start(now, std::make_unique<congestion::Uplink>(first.uplink()));
  return true;
}

void Pacing::start(Instant now, std::unique_ptr<congestion::Uplink> uplink) {
  uplink_ = std::move(uplink);
  uplink_->wake_by(wake_);
  room_at_ = now;
  paths_.each([&](Rank slot, const protocol::Path& path) {
    if (path.window() == 0) return;
    add_path(slot);
    on_report(now, slot);  // a baseline: what left before is not counted later
  });
}

void Pacing::wake_by(std::function<void()> wake) {
  wake_ = std::move(wake);
  if (uplink_ != nullptr) uplink_->wake_by(wake_);
}

void Pacing::add_path(Rank slot) {
  protocol::Path& path = paths_[slot];
  if (uplink_ == nullptr || path.window() == 0) return;  // this process itself has no window
  uplink_->make_link(slot, path.remembered());
  path.ask();
}

void Pacing::on_train(Instant now, const protocol::TrainBuffer& train, double share) {
  LEEWAY_ASSERT(uplink_ != nullptr && !train.empty());
  if (train.to() == kEveryRank) return charge(now, train.total_bytes());
  protocol::Path& path = paths_[train.to()];
  if (path.window() == 0) return;  // no member of this process uses the path
  uplink_->on_sent(now, train.to(),
                   {.last = path.last_sequence(),
                    .datagrams = static_cast<std::uint32_t>(train.datagrams()),
                    .segment_bytes = train.segment_bytes(),
                    .total_bytes = train.total_bytes()},
                   share);
  if (path.take_asked()) uplink_->on_asked(now, train.to());
  if (uplink_->asks(now, train.to()) || path.nears_limit()) path.ask();
}

void Pacing::on_report(Instant now, Rank slot) {
  protocol::Path& path = paths_[slot];
  const protocol::PathReport& report = path.reported();
  uplink_->on_report(now, slot,
                     {.largest = report.largest_sequence,
                      .received = report.received,
                      .received_bytes = report.received_bytes,
                      .arrived_us = report.arrived_us,
                      .ect = report.ect,
                      .ce = report.ce,
                      .grant = report.grant,
                      .host_drops = report.host_drops,
                      .held_back = report.delay});
  path.limit(uplink_->datagrams_granted(slot));
  if (uplink_->asks(now, slot)) path.ask();
}

void Pacing::on_host_drops(Instant now, std::uint64_t drops, std::size_t socket_bytes) {
  room_at_ = now + kHostDropsEvery;
  arrived_.resize(paths_.slots());
  paths_.each([&](Rank slot, const protocol::Path& path) {
    arrived_[slot] = {.missing = path.largest_seen() - path.received(),
                      .bytes = path.received_bytes(),
                      .rtt = path.rtt.smoothed()};
  });
  receive_room_.look(now, drops, socket_bytes, arrived_);
  paths_.each([&](Rank slot, protocol::Path& path) {
    path.tell_host(receive_room_.grant(slot), receive_room_.drops(slot));
  });
}

}  // namespace leeway::collective
