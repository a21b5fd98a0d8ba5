#include "farewell.h"

#include <unistd.h>

#include <chrono>
#include <utility>

namespace leeway::tools {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(20);

// Time in which a rank must notice that its communicator was aborted. The rank may be computing,
// and notices only at its next call.
constexpr auto kPatience = std::chrono::seconds(5);

}  // namespace

Farewell::Farewell() : watcher_([this](const std::stop_token& stop) { watch(stop); }) {}

Result<std::shared_ptr<Communicator>> Farewell::create(const Options& options) {
  {
    const std::lock_guard lock(mutex_);
    joining_ = Communicator::create_async(options);
    if (exit_code() != 0) joining_.abort();
  }
  auto made = joining_.wait();
  const std::lock_guard lock(mutex_);
  joining_ = PendingCommunicator();
  if (!made.ok()) return made.status();
  std::shared_ptr<Communicator> communicator = std::move(*made);
  communicator_ = communicator;
  if (exit_code() != 0) communicator->abort();
  return communicator;
}

void Farewell::watch(const std::stop_token& stop) {
  while (!interrupt_.flag() && !stop.stop_requested()) std::this_thread::sleep_for(kLookEvery);
  if (!interrupt_.flag()) return;
  abort();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!stop.stop_requested()) {
    if (std::chrono::steady_clock::now() >= end) ::_exit(exit_code());
    std::this_thread::sleep_for(kLookEvery);
  }
}

void Farewell::abort() {
  std::shared_ptr<Communicator> communicator;
  {
    const std::lock_guard lock(mutex_);
    joining_.abort();
    communicator = communicator_.lock();
  }
  if (communicator != nullptr) communicator->abort();
}

}  // namespace leeway::tools
