// Who drives, and what a step is.
#include "driving/driver.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

namespace leeway::driving {
namespace {

// Polls before blocking. Yielding rather than pausing: ranks may outnumber cores, and the datagram
// that is waited for may need this very core to be sent.
constexpr Duration kSpin = std::chrono::microseconds(50);

constexpr Duration kBlockMax = std::chrono::seconds(1);

}  // namespace

Instant steady_now() {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(
              std::chrono::steady_clock::now().time_since_epoch())
              .count()};
}

Driver::Driver(TransportKind kind, const protocol::EndpointConfig& config,
               std::unique_ptr<DatagramTransport> transport,
               const transport::FaultTransport* faults)
    : kind_(kind),
      faults_(faults),
      engine_(config, this),
      transport_(std::move(transport)),
      received_(kReceiveBatch),
      role_(*transport_),
      background_([this] { drive_in_pauses(); }) {}

Driver::~Driver() {
  leave();
  role_.stop();
  background_.join();
}

bool Driver::run_until(const std::function<bool()>& done, Instant deadline) {
  role_.acquire();
  Instant last_progress = steady_now();
  bool finished = false;
  for (;;) {
    const Instant now = steady_now();
    const bool progress = step(now);
    finished = done();
    if (finished || now >= deadline) break;
    if (progress) last_progress = now;
    if (role_.wanted()) {
      role_.release();
      sched_yield();
      role_.acquire();
    } else if (!progress && now - last_progress < kSpin) {
      sched_yield();
    } else if (!progress) {
      block(now, deadline);
    }
  }
  role_.release();
  return finished;
}

bool Driver::step(Instant now) {
  if (const Status& status = transport_->status(); !status.ok()) fail(now, status);
  const bool received = receive(now);
  engine_.on_wake(now, /*may_start=*/!trains_.any_out());
  const bool sent = trains_.send(now, engine_, *transport_);
  if (!trains_.any_out()) publish();
  return received || sent;
}

// The transport is dead: whatever waits for it fails at once, with what the transport says.
void Driver::fail(Instant now, const Status& status) {
  engine_.cancel_all(now, status);
  trains_.drop_all();
}

bool Driver::receive(Instant now) {
  const std::size_t count = transport_->receive(received_);
  for (std::size_t i = 0; i < count; ++i)
    engine_.on_datagram(now, received_[i].from, received_[i].bytes);
  return count > 0;
}

void Driver::block(Instant now, Instant deadline) {
  Instant until = std::min(deadline, now + kBlockMax);
  if (const auto wake = engine_.next_wake()) until = std::min(until, *wake);
  if (until > now) transport_->wait(until - now);
}

// Serves the protocol while no caller does: stragglers' repair requests, probes, asynchronous
// operations.
void Driver::drive_in_pauses() {
  while (role_.acquire_in_pause()) {
    while (!role_.wanted()) {
      const Instant now = steady_now();
      if (!step(now)) block(now, Instant::infinite_future());
    }
    role_.release_to_callers();
  }
}

}  // namespace leeway::driving
