#include "unit/sim_tcp_ring/ring_world.h"

#include "base/contracts.h"
#include "scenario/parse.h"

namespace leeway::sim {

RingWorld::RingWorld(const std::string& text, std::uint64_t seed) {
  const auto scenario = scenario::parse_text(text, "test").value();
  topology_ = std::make_unique<Topology>(Topology::make(scenario).value());
  network_ = std::move(Network::make(*topology_, seed, queue_, 0).value());
  ring_ = std::move(TcpRing::make(scenario, *topology_, queue_, *network_).value());
  live_.resize(topology_->ranks(), true);
}

std::vector<CallResult> RingWorld::call(CallKind kind, std::uint64_t bytes) {
  const std::size_t before = done.size();
  std::size_t live = 0;
  for (std::uint32_t rank = 0; rank < live_.size(); ++rank) {
    if (!live_[rank]) continue;
    ++live;
    submit(rank, kind, bytes);
  }
  ++round_;
  run_until_done(before + live);
  std::vector<CallResult> results(live_.size());
  for (std::size_t i = before; i < done.size(); ++i) results[done[i].rank] = done[i].result;
  return results;
}

void RingWorld::submit(std::uint32_t rank, CallKind kind, std::uint64_t bytes) {
  ring_->submit(queue_.now(), rank, {.kind = kind, .round = round_, .bytes = bytes}, *this);
}

bool RingWorld::step() {
  Event event;
  if (!queue_.pop(event)) return false;
  if (event.kind == static_cast<std::uint32_t>(EventKind::network)) {
    network_->on_event(event);
  } else if (event.kind == static_cast<std::uint32_t>(EventKind::endpoint)) {
    ring_->on_event(event);
  } else {
    return false;
  }
  return true;
}

void RingWorld::run_until(std::int64_t ns) {
  queue_.push({ns}, 0, static_cast<std::uint32_t>(EventKind::rank), 0);
  while (step()) {
  }
}

void RingWorld::run_until_done(std::size_t results) {
  while (done.size() < results && step()) {
  }
  LEEWAY_ASSERT(done.size() >= results);
}

void RingWorld::kill(std::uint32_t rank) {
  live_[rank] = false;
  ring_->kill(queue_.now(), rank);
}

void RingWorld::on_done(Instant, std::uint32_t rank, const CallResult& result) {
  done.push_back({rank, std::string(result.status.text()), result});
}

}  // namespace leeway::sim
