// What callers ask for: operations, and memory to be known. And the end of both.
#include "driving/driver.h"

namespace leeway::driving {
namespace {

// A driver that is destroyed under its callers' operations lets them end for so many time-outs of
// the slowest link.
constexpr int kPatienceTimeouts = 64;

}  // namespace

std::shared_ptr<WorkState> Driver::submit(const collective::OperationSpec& spec) {
  auto work = std::make_shared<WorkState>();
  work->request.spec = spec;
  work->driver = this;
  Session session(*this);
  active_.push_back(work);
  // It waits while trains of finished operations are still being read.
  engine_.submit(steady_now(), work->request, /*may_start=*/!trains_.any_out());
  session.pump();
  return work;
}

Result<CollectiveReport> Driver::wait(WorkState& work) {
  if (!work.done.load(std::memory_order_acquire)) {
    // Operations end by their own deadlines; there is no other.
    run_until([&] { return work.done.load(std::memory_order_relaxed); },
              Instant::infinite_future());
  }
  return work.outcome();
}

void Driver::publish() {
  std::erase_if(active_, [](const std::shared_ptr<WorkState>& work) {
    if (!work->request.done) return false;
    work->done.store(true, std::memory_order_release);
    return true;
  });
}

Status Driver::register_memory(ByteSpan memory) {
  Session session(*this);
  return transport_->register_memory(memory);
}

void Driver::forget_memory(ByteSpan memory) {
  Session session(*this);
  transport_->forget_memory(memory);
}

void Driver::leave() {
  protocol::Endpoint& endpoint = engine_.endpoint();
  Instant end = steady_now();
  {
    Session session(*this);
    end += kPatienceTimeouts * endpoint.slowest_timeout();
  }
  const bool finished = run_until([this] { return active_.empty(); }, end);
  {
    Session session(*this);
    const Instant now = steady_now();
    if (!finished) {
      engine_.cancel_all(now, Status::error(StatusCode::kCancelled, "rank %u: communicator closed",
                                            config().self));
    }
    endpoint.leave(now);
  }
  const auto left = [&] { return endpoint.left() || !transport_->status().ok(); };
  run_until(left, Instant::infinite_future());
  Session session(*this);
  flush();
  publish();
}

// Sends what is ready, waiting for the transport at most a tick.
void Driver::flush() {
  const Instant until = steady_now() + Duration(limits::kTickNs);
  while (trains_.send(steady_now(), engine_, *transport_) || trains_.any_out()) {
    if (steady_now() >= until) return;
  }
}

}  // namespace leeway::driving
