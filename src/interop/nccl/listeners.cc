#include "interop/nccl/listeners.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "interop/nccl/interfaces.h"
#include "keys/derive.h"
#include "rendezvous/address.h"

namespace leeway::nccl {
namespace {

// For all of an id's addresses together. One that cannot be reached is often never answered.
constexpr int kProbeMs = 3000;

TcpRendezvous::Security security_of(const UniqueId& id) {
  TcpRendezvous::Security security;
  if (id.has_secret()) security.secret = id.secret_text();
  return security;
}

// A connection that has begun, or -1.
int begin_connecting(const std::string& place) {
  const auto where = rendezvous::parse_host_port(place);
  if (!where.ok()) return -1;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (::getaddrinfo(where->host.c_str(), std::to_string(where->port).c_str(), &hints, &found) != 0)
    return -1;
  const int file =
      ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (file >= 0 && ::connect(file, found->ai_addr, found->ai_addrlen) != 0 &&
      errno != EINPROGRESS) {
    ::close(file);
    ::freeaddrinfo(found);
    return -1;
  }
  ::freeaddrinfo(found);
  return file;
}

bool is_connected(int file) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

// Of several places that may be one, the first that answers; the first of all where none does.
std::string first_reachable(const std::vector<std::string>& places) {
  if (places.size() == 1) return places.front();
  std::vector<pollfd> files;
  files.reserve(places.size());
  for (const std::string& place : places) files.push_back({begin_connecting(place), POLLOUT, 0});
  std::size_t chosen = places.size();
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kProbeMs);
  const auto waiting = [](const pollfd& one) { return one.fd >= 0; };
  while (chosen == places.size() && std::any_of(files.begin(), files.end(), waiting)) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0 ||
        ::poll(files.data(), files.size(), static_cast<int>(left.count())) <= 0)
      break;
    for (std::size_t i = 0; i < files.size() && chosen == places.size(); ++i) {
      if (files[i].fd < 0 || files[i].revents == 0) continue;
      if (is_connected(files[i].fd)) chosen = i;
      ::close(files[i].fd);
      files[i].fd = -1;
    }
  }
  for (const pollfd& file : files) {
    if (file.fd >= 0) ::close(file.fd);
  }
  return places[chosen == places.size() ? 0 : chosen];
}

}  // namespace

Result<UniqueId> Listeners::open(const Settings& settings) {
  UniqueId id;
  keys::fill_randomly(std::as_writable_bytes(std::span(id.nonce)));
  keys::fill_randomly(std::as_writable_bytes(std::span(id.secret)));
  id.addresses = local_addresses(settings);
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
  here.open[id.name()] = {std::move(*server), std::chrono::steady_clock::now() + kMeetingTime};
  if (!here.watched) std::thread([&here] { expire(here); }).detach();
  here.watched = true;
  return id;
}

void Listeners::expire(State& state) {
  std::unique_lock lock(state.mutex);
  while (!state.open.empty()) {
    auto end = std::chrono::steady_clock::time_point::max();
    for (const auto& [name, listener] : state.open) end = std::min(end, listener.end);
    state.changed.wait_until(lock, end);
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
  ended = std::move(found->second);  // its server ends after the lock
  state.open.erase(found);
  state.changed.notify_all();
}

Result<std::shared_ptr<Place>> Listeners::reach(const UniqueId& id, bool rank_0) {
  const std::string name = id.name();
  if (!id.has_secret() && rank_0) {
    auto server =
        TcpRendezvous::serve(std::string(":").append(std::to_string(id.port)), security_of(id));
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
  auto client = TcpRendezvous::connect(place, security_of(id));
  if (!client.ok()) return client.status();
  return std::make_shared<Place>(std::move(*client), place, nullptr);
}

}  // namespace leeway::nccl
