#include "communicator/pending.h"

#include <new>
#include <utility>

#include "driving/callback.h"
#include "driving/driver.h"

namespace leeway {
namespace internal {

void PendingState::run(std::function<Outcome(std::stop_token)> make) {
  auto thread = Thread::start(
      "join a group in the background",
      [self = shared_from_this(), make = std::move(make)](const std::stop_token& stop) {
        try {
          self->finish(make(stop));
        } catch (const std::bad_alloc&) {
          self->finish(Status::error(StatusCode::kResourceExhausted, "create: out of memory"));
        }
      });
  if (!thread.ok()) return finish(thread.status());
  thread_ = std::move(*thread);
}

void PendingState::finish(Outcome outcome) {
  std::vector<Callback> callbacks;
  std::unique_lock lock(mutex_);
  if (done()) {
    lock.unlock();
    // Called without the lock, because abort() may run callbacks of other operations.
    if (outcome.ok() && *outcome != nullptr) (*outcome)->abort();
    return;
  }
  outcome_ = std::move(outcome);
  callbacks.swap(callbacks_);
  done_.store(true, std::memory_order_release);
  lock.unlock();
  changed_.notify_all();
  driving::call(callbacks);
}

void PendingState::on_done(Callback callback) {
  if (!forked()) {  // the parent's thread may have held the lock
    const std::lock_guard lock(mutex_);
    if (!done()) return callbacks_.push_back(std::move(callback));
  }
  driving::call({&callback, 1});
}

PendingState::Outcome PendingState::wait() {
  if (forked()) return driving::forked();
  if (!done() && driving::in_callback()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "PendingCommunicator::wait: a callback must not wait");
  }
  if (!done() && work != nullptr) (void)driving::Driver::wait(*work);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done(); });
  if (!outcome_) {
    return Status::error(StatusCode::kInvalidArgument,
                         "PendingCommunicator::wait: the communicator was handed over before");
  }
  Outcome outcome = std::move(*outcome_);
  outcome_.reset();
  return outcome;
}

void PendingState::abort() {
  if (forked()) return;
  thread_.request_stop();
  finish(Status::error(StatusCode::kCancelled, "the communicator was aborted before it was made"));
}

void PendingState::drop(std::shared_ptr<PendingState> state) {
  if (state == nullptr) return;
  if (state->forked()) {
    // In a forked child the thread does not exist, and it may have held the lock during the fork.
    // So the child destroys neither the thread's handle nor the lock.
    (void)new (std::nothrow) std::shared_ptr<PendingState>(std::move(state));
    return;  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): on purpose
  }
  if (!state->done()) state->abort();
  state->thread_.join();
}

}  // namespace internal

PendingCommunicator& PendingCommunicator::operator=(PendingCommunicator&& other) noexcept {
  if (this == &other) return *this;
  internal::PendingState::drop(std::exchange(state_, std::move(other.state_)));
  return *this;
}

PendingCommunicator::~PendingCommunicator() {
  internal::PendingState::drop(std::move(state_));
}

bool PendingCommunicator::done() const {
  return state_ != nullptr && state_->done();
}

void PendingCommunicator::on_done(std::function<void()> callback) {
  if (state_ != nullptr && callback) state_->on_done(std::move(callback));
}

Result<std::unique_ptr<Communicator>> PendingCommunicator::wait() {
  if (state_ == nullptr) {
    return Status::error(StatusCode::kInvalidArgument,
                         "PendingCommunicator::wait: no call behind this handle");
  }
  return state_->wait();
}

void PendingCommunicator::abort() {
  if (state_ != nullptr) state_->abort();
}

PendingCommunicator Communicator::create_async(const Options& options) {
  auto pending = std::make_shared<internal::PendingState>();
  pending->run([options](std::stop_token stop) { return create(options, std::move(stop)); });
  return PendingCommunicator(std::move(pending));
}

}  // namespace leeway
