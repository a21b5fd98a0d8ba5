#include "interop/nccl/listeners.h"

#include <algorithm>

#include "base/thread.h"
#include "interop/nccl/interfaces.h"
#include "interop/nccl/reachable.h"
#include "keys/derive.h"
#include "rendezvous/address.h"

namespace leeway::nccl {
namespace {

TcpRendezvous::Security security_of(const UniqueId& id) {
  TcpRendezvous::Security security;
  security.secret = id.secret_text();
  return security;
}

TcpRendezvous::Security security_of(const UniqueId& id, const Options& options) {
  if (id.has_secret()) return security_of(id);
  return {.secret_file = options.secret_file,
          .insecure = options.insecure,
          .tls_ca = options.tls_ca,
          .tls_certificate = options.tls_certificate,
          .tls_key = options.tls_key};
}

}  // namespace

Result<UniqueId> Listeners::open(const Settings& settings) {
  if (Status status = keys::check_random(); !status.ok()) return status;
  UniqueId id;
  keys::fill_randomly(std::as_writable_bytes(std::span(id.nonce)));
  keys::fill_randomly(std::as_writable_bytes(std::span(id.secret)));
  id.addresses = addresses_of(choose_local(settings));
  if (id.addresses.empty()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "no interface matches NCCL_SOCKET_IFNAME=\"%.60s\" (`ip address` lists "
                         "them)",
                         settings.interfaces.c_str());
  }
  auto server = TcpRendezvous::serve(":0", security_of(id));
  if (!server.ok()) return server.status();
  const auto where = rendezvous::parse_host_port((*server)->address());
  if (!where.ok()) return where.status();
  id.port = where->port;
  State& here = state_.get();
  const std::lock_guard lock(here.mutex);
  if (!here.watched) {
    auto thread = Thread::start("close listeners of unique ids",
                                [&here](const std::stop_token& stop) { expire(here, stop); });
    if (!thread.ok()) return thread.status();
    thread->detach();
  }
  here.open[id.name()] = {std::move(*server), std::chrono::steady_clock::now() + kMeetingTime};
  here.watched = true;
  return id;
}

void Listeners::expire(State& state, const std::stop_token& stop) {
  std::unique_lock lock(state.mutex);
  while (!state.open.empty() && !stop.stop_requested()) {
    auto end = std::chrono::steady_clock::time_point::max();
    for (const auto& [name, listener] : state.open) end = std::min(end, listener.end);
    state.changed.wait_until(lock, stop, end, [&state, known = state.open.size()] {
      return state.open.size() != known;
    });
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(state.open, [now](const auto& entry) { return entry.second.end <= now; });
  }
  state.watched = false;
}

void Listeners::close(State& state, const std::string& name) {
  Listener ended;
  const std::lock_guard lock(state.mutex);
  const auto found = state.open.find(name);
  if (found == state.open.end()) return;
  ended = std::move(found->second);  // destroyed after the lock is released, which ends its server
  state.open.erase(found);
  state.changed.notify_all();
}

Result<std::shared_ptr<Place>> Listeners::reach(const UniqueId& id, const Options& options,
                                                bool rank_0) {
  const std::string name = id.name();
  if (!id.has_secret() && rank_0) {
    auto server = TcpRendezvous::serve(std::string(":").append(std::to_string(id.port)),
                                       security_of(id, options));
    if (!server.ok()) return server.status();
    return std::make_shared<Place>(std::move(*server), id.places().front(), nullptr);
  }
  State& here = state_.get();
  {
    const std::lock_guard lock(here.mutex);
    const auto own = here.open.find(name);
    if (own != here.open.end()) {
      return std::make_shared<Place>(own->second.server, id.places().front(),
                                     [&here, name] { close(here, name); });
    }
  }
  const std::string place = first_reachable(id.places());
  auto client = TcpRendezvous::connect(place, security_of(id, options));
  if (!client.ok()) return client.status();
  return std::make_shared<Place>(std::move(*client), place, nullptr);
}

}  // namespace leeway::nccl
