#include "driving/driver.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

namespace leeway::driving {
namespace {

// How long the background thread lets callers come back before it takes over: a tick. Back-to-back
// blocking calls then never have to fetch the role from it.
constexpr auto kGrace = std::chrono::nanoseconds(limits::kTickNs);

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

Driver::Driver(const protocol::EndpointConfig& config, std::unique_ptr<DatagramTransport> transport,
               std::function<void()> after_step)
    : trains_(kTrainsOut),
      ready_(kTrainsOut),
      engine_(config, this),
      transport_(std::move(transport)),
      after_step_(std::move(after_step)),
      received_(kReceiveBatch) {
  background_ = std::thread([this] { background(); });
}

Driver::~Driver() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    ++requests_;  // makes a driving background thread let go
  }
  transport_->wake();
  background_wake_.notify_all();
  background_.join();
}

Driver::Session::Session(Driver& driver) : driver_(driver) {
  driver_.acquire();
}
Driver::Session::~Session() {
  driver_.release();
}

void Driver::Session::flush() {
  const Instant until = steady_now() + Duration(limits::kTickNs);
  while (driver_.send(steady_now()) || driver_.trains_out()) {
    if (steady_now() >= until) return;
  }
}

void Driver::acquire() {
  std::unique_lock lock(mutex_);
  activity_.fetch_add(1, std::memory_order_relaxed);
  if (driving_) {
    ++requests_;
    transport_->wake();
    role_free_.wait(lock, [this] { return !driving_; });
    --requests_;
  }
  driving_ = true;
}

void Driver::release() {
  bool wanted;
  {
    std::lock_guard lock(mutex_);
    driving_ = false;
    wanted = requests_.load(std::memory_order_relaxed) > 0;
  }
  // The background thread looks for itself every grace: waking it with each call made a 4 KiB
  // all-reduce take 44 us instead of 10 to 23 (2 ranks), 178 instead of 72 (4 ranks).
  if (wanted) role_free_.notify_all();
}

void Driver::nudge() {
  {
    std::lock_guard lock(mutex_);
    nudged_ = true;
  }
  background_wake_.notify_all();
}

bool Driver::run_until(const std::function<bool()>& done, Instant deadline) {
  acquire();
  Instant last_progress = steady_now();
  bool finished = false;
  for (;;) {
    const Instant now = steady_now();
    const bool progress = step(now);
    finished = done();
    if (finished || now >= deadline) break;
    if (progress) last_progress = now;
    if (requests_.load(std::memory_order_relaxed) > 0) {  // another thread wants in
      release();
      sched_yield();
      acquire();
    } else if (!progress && now - last_progress < kSpin) {
      sched_yield();
    } else if (!progress) {
      block(now, deadline);
    }
  }
  release();
  return finished;
}

bool Driver::step(Instant now) {
  if (const Status& status = transport_->status(); !status.ok()) fail(now, status);
  const bool received = receive(now);
  engine_.on_wake(now, /*may_start=*/!trains_out());
  const bool sent = send(now);
  if (!trains_out()) after_step_();
  return received || sent;
}

// The transport is dead: whatever waits for it fails at once, with what the transport says.
void Driver::fail(Instant now, const Status& status) {
  engine_.cancel_all(now, status);
  prepared_ = taken_ = released_ = 0;
}

bool Driver::receive(Instant now) {
  const std::size_t count = transport_->receive(received_);
  for (std::size_t i = 0; i < count; ++i)
    engine_.on_datagram(now, received_[i].from, received_[i].bytes);
  return count > 0;
}

bool Driver::send(Instant now) {
  released_ = taken_ - transport_->borrowed();
  // Begin with memory that is still in the cache
  if (!trains_out()) prepared_ = taken_ = released_ = 0;
  prepare(now);
  if (taken_ == prepared_) return false;
  const std::size_t first = taken_ % kTrainsOut;
  const std::size_t count = std::min(prepared_ - taken_, kTrainsOut - first);
  const std::size_t taken = transport_->send(std::span(ready_).subspan(first, count));
  taken_ += taken;
  released_ = taken_ - transport_->borrowed();
  return taken > 0;
}

void Driver::prepare(Instant now) {
  while (prepared_ - taken_ < kTrains && prepared_ - released_ < kTrainsOut) {
    const std::size_t slot = prepared_ % kTrainsOut;
    if (trains_[slot] == nullptr) {
      trains_[slot] = std::make_unique<protocol::TrainBuffer>();
      (void)transport_->register_memory(trains_[slot]->memory());  // else it copies
    }
    if (!engine_.poll_train(now, *trains_[slot])) return;
    ready_[slot] = trains_[slot]->train();
    ++prepared_;
  }
}

void Driver::block(Instant now, Instant deadline) {
  Instant until = std::min(deadline, now + kBlockMax);
  if (const auto wake = engine_.next_wake()) until = std::min(until, *wake);
  if (until > now) transport_->wait(until - now);
}

// Serves the protocol while no caller does: stragglers' repair requests, probes, asynchronous
// operations.
void Driver::background() {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const std::uint64_t activity = activity_.load(std::memory_order_relaxed);
    const auto taken = [this] { return driving_ || requests_.load(std::memory_order_relaxed) > 0; };
    if (taken() || (activity != seen && !nudged_)) {
      seen = activity;
      // The same condition as above: were it weaker, this would spin without ever giving up the
      // lock.
      background_wake_.wait_for(lock, kGrace, [&] { return stop_ || (nudged_ && !taken()); });
      continue;
    }
    nudged_ = false;
    driving_ = true;
    lock.unlock();
    while (requests_.load(std::memory_order_relaxed) == 0) {
      const Instant now = steady_now();
      if (!step(now)) block(now, Instant::infinite_future());
    }
    lock.lock();
    driving_ = false;
    role_free_.notify_all();
    seen = activity_.load(std::memory_order_relaxed);
  }
}

}  // namespace leeway::driving
