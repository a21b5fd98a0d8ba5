#include "interop/nccl/reachable.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "rendezvous/address.h"

namespace leeway::nccl {
namespace {

// Time for all addresses of an id together. The search needs a limit, because an unreachable
// address may give no answer at all.
constexpr int kProbeMs = 3000;

// Begins a connection. Returns its socket, or -1.
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

}  // namespace

std::optional<std::string> find_reachable(const std::vector<std::string>& places) {
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
  if (chosen == places.size()) return std::nullopt;
  return places[chosen];
}

std::string first_reachable(const std::vector<std::string>& places) {
  if (places.size() == 1) return places.front();
  return find_reachable(places).value_or(places.front());
}

}  // namespace leeway::nccl
