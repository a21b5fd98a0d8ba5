#include "interop/nccl_net/process.h"

#include <cstdlib>
#include <span>
#include <utility>

#include "base/per_process.h"
#include "interop/nccl/listeners.h"
#include "interop/nccl_net/background.h"
#include "keys/derive.h"
#include "rendezvous/address.h"

namespace leeway::nccl_net {
namespace {

using Clock = std::chrono::steady_clock;

// Longest wait of finalize(): NCCL's communicator is being destroyed, or aborted.
constexpr auto kFinalizeTime = std::chrono::seconds(2);

}  // namespace

Process& Process::get() {
  static auto* const processes = new PerProcess<Process>;  // never destroyed
  return processes->get();
}

Status Process::init() {
  const std::lock_guard lock(mutex_);
  if (!read_) {
    if (Status status = read_environment(); !status.ok()) return status;
    read_ = true;
  }
  ++users_;
  return Status();
}

Status Process::read_environment() {
  auto settings = nccl::Settings::read([](const char* name) { return std::getenv(name); });
  if (!settings.ok()) return settings.status();
  const auto options = Options::from_environment(Options::Membership::from_caller);
  if (!options.ok()) return options.status();
  auto devices = find_devices(*settings, *options);
  if (!devices.ok()) return devices.status();
  settings_ = std::move(*settings);
  devices_ = std::move(*devices);
  return Status();
}

void Process::finalize() {
  {
    const std::lock_guard lock(mutex_);
    if (users_ == 0 || --users_ != 0) return;
    for (auto& [name, pending] : pending_) drop_in_background(std::move(pending.connecting));
    pending_.clear();
  }
  wait_for_background(Clock::now() + kFinalizeTime);
}

Result<std::unique_ptr<Listener>> Process::listen(int device) {
  if (Status status = keys::check_random(); !status.ok()) return status;
  auto listener = std::make_unique<Listener>();
  const std::lock_guard lock(mutex_);
  listener->server = server_.lock();
  if (listener->server == nullptr) {
    keys::fill_randomly(std::as_writable_bytes(std::span(secret_)));
    TcpRendezvous::Security security;
    listener->id.secret = secret_;
    security.secret = listener->id.secret_text();
    auto server = TcpRendezvous::serve(":0", security);
    if (!server.ok()) return server.status();
    server_ = listener->server = std::move(*server);
  }
  const auto where = rendezvous::parse_host_port(listener->server->address());
  if (!where.ok()) return where.status();
  nccl::UniqueId& id = listener->id;
  id.port = where->port;
  id.secret = secret_;
  id.addresses = devices_[static_cast<std::size_t>(device)].addresses;
  keys::fill_randomly(std::as_writable_bytes(std::span(id.nonce)));
  return listener;
}

Result<std::unique_ptr<Connection>> Process::connect(const nccl::UniqueId& id) {
  const std::string name = id.name();
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  auto found = pending_.find(name);
  if (found == pending_.end()) {
    drop_abandoned(now);
    auto begun = Connecting::connect(id, settings_);
    if (!begun.ok()) return begun.status();
    found = pending_.emplace(name, Pending{std::move(*begun), now}).first;
  }
  found->second.asked = now;
  auto made = found->second.connecting->poll();
  if (made.ok() && *made == nullptr) return made;
  if (!made.ok()) drop_in_background(std::move(found->second.connecting));
  pending_.erase(found);
  return made;
}

// Drops connections that NCCL has not asked about for kMeetingTime, because it gave them up.
void Process::drop_abandoned(Clock::time_point now) {
  for (auto& [name, pending] : pending_) {
    if (now - pending.asked > nccl::kMeetingTime) drop_in_background(std::move(pending.connecting));
  }
  std::erase_if(pending_, [](const auto& entry) { return entry.second.connecting == nullptr; });
}

}  // namespace leeway::nccl_net
