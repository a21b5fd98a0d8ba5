// Handles of operations in flight.
#include "driving/driver.h"
#include "leeway/communicator.h"

namespace leeway {

bool Work::done() const {
  return state_ != nullptr && state_->over();
}

Result<CollectiveReport> Work::wait() {
  if (state_ == nullptr)
    return Status::error(StatusCode::kInvalidArgument,
                         "Work::wait: no operation behind this handle");
  return driving::Driver::wait(*state_);
}

bool Work::wait_for(Duration patience) {
  return state_ != nullptr && driving::Driver::wait_for(*state_, patience);
}

bool Work::test() {
  if (state_ != nullptr && !done()) driving::Driver::help(*state_);
  return done();
}

void Work::on_done(std::function<void()> callback) {
  if (state_ != nullptr && callback) state_->call_when_done(std::move(callback));
}

Status Work::wait_all(std::span<Work> works) {
  Status first;
  for (Work& work : works) {
    if (!work.valid()) continue;
    const auto outcome = work.wait();
    if (!outcome.ok() && first.ok()) first = outcome.status();
  }
  return first;
}

std::size_t Work::wait_any(std::span<Work> works) {
  std::vector<internal::WorkState*> states;
  for (const Work& work : works) states.push_back(work.state_.get());
  return driving::Driver::wait_any(states);
}

}  // namespace leeway
