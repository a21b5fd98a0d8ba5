#include "transport/verbs/refusals.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/limits.h"

namespace leeway::transport::refusal {
namespace {

// A text names at most this many ports before it says "and N more".
constexpr std::size_t kPortsNamed = 4;

bool means_permission(int error) {
  return error == EACCES || error == EPERM;
}

std::string name_of(const VerbsPort& port) {
  return port.device + (port.port == 0 ? "" : " port " + std::to_string(port.port));
}

// Returns a text such as "rxe1 port 1 (10.0.0.1)".
std::string describe(const VerbsPort& port) {
  if (port.error != 0) return name_of(port) + " (" + std::strerror(port.error) + ")";
  for (const VerbsGid& gid : port.gids) {
    const bool link_local = gid.gid[0] == 0xFE && (gid.gid[1] & 0xC0) == 0x80;
    if (gid.type == GidType::roce_v2 && !link_local) {
      return name_of(port) + " (" + ip_text(gid.gid) + ")";
    }
  }
  return name_of(port) + (port.link == LinkLayer::infiniband ? " (InfiniBand)" : " (no address)");
}

}  // namespace

int reason_of(const std::string& file, int error) {
  const std::string path = "/dev/infiniband/" + file;
  return access(path.c_str(), R_OK | W_OK) != 0 && errno == EACCES ? EACCES : error;
}

Status no_device() {
  return Status::error(
      StatusCode::kUnavailable,
      "no RDMA device on this machine: install its driver (`rdma link` shows devices), make one in "
      "software with `rdma link add rxe0 type rxe netdev <interface>`, or use "
      "LEEWAY_TRANSPORT=udp");
}

Status no_connection_manager(int error) {
  if (means_permission(error)) {
    return Status::error(
        StatusCode::kUnavailable,
        "no permission for /dev/infiniband/rdma_cm: let this user read and write it "
        "(a container needs --device=/dev/infiniband)");
  }
  return Status::error(StatusCode::kUnavailable,
                       "RDMA connection manager: %s; load it with `modprobe rdma_ucm` (a container "
                       "needs --device=/dev/infiniband/rdma_cm)",
                       std::strerror(error));
}

Status device_closed(const std::string& device, int error) {
  if (means_permission(error)) {
    return Status::error(StatusCode::kUnavailable,
                         "no permission for RDMA device %s: let this user read and write "
                         "/dev/infiniband/uverbs* (a container needs --device=/dev/infiniband)",
                         device.c_str());
  }
  return Status::error(StatusCode::kUnavailable,
                       "RDMA device %s cannot be opened: %s; `ibv_devinfo -d %s` tells more",
                       device.c_str(), std::strerror(error), device.c_str());
}

Status no_port(const asio::ip::address& address, std::span<const VerbsPort> ports) {
  const auto closed = [](const VerbsPort& port) { return port.error != 0; };
  if (!ports.empty() && std::ranges::all_of(ports, closed)) {
    return device_closed(ports[0].device, ports[0].error);
  }
  for (const VerbsPort& port : ports) {
    if (port.link != LinkLayer::ethernet || choose_gid(port, address) == nullptr) continue;
    const std::optional<Status> refused = unusable(port, address);
    if (refused) return *refused;
  }
  std::string found;
  for (std::size_t i = 0; i < std::min(ports.size(), kPortsNamed); ++i) {
    found += (i == 0 ? "" : ", ") + describe(ports[i]);
  }
  if (ports.size() > kPortsNamed) {
    found += " and " + std::to_string(ports.size() - kPortsNamed) + " more";
  }
  return Status::error(
      StatusCode::kUnavailable,
      "no RDMA port has the address %s: bind to one that has (LEEWAY_BIND), or use "
      "LEEWAY_TRANSPORT=udp; there are %s",
      address.to_string().c_str(), found.c_str());
}

std::optional<Status> unusable(const VerbsPort& port, const asio::ip::address& address) {
  const std::string name = name_of(port);
  if (port.error != 0) return device_closed(port.device, port.error);
  if (!port.active) {
    return Status::error(
        StatusCode::kUnavailable, "RDMA %s is not active (%s): %s", name.c_str(),
        port.state.c_str(),
        port.link == LinkLayer::ethernet
            ? "set its interface up (`ip link set <interface> up`) and look for a carrier"
            : "look at the cable and whether a subnet manager runs");
  }
  if (choose_gid(port, address) == nullptr) {
    return Status::error(
        StatusCode::kUnavailable,
        "RDMA %s has no RoCE v2 GID for %s: `rdma link` and `ibv_devinfo -v -d %s` show "
        "those it has; the address must be on the port's own interface",
        name.c_str(), address.to_string().c_str(), port.device.c_str());
  }
  if (port.mtu_bytes < limits::kDatagramBytesMin) {
    return Status::error(
        StatusCode::kUnavailable,
        "RDMA %s carries datagrams of %zu bytes; %zu are needed: raise the interface's MTU "
        "(`ip link set <interface> mtu 1500` gives 1,024, 4,200 gives 4,096)",
        name.c_str(), port.mtu_bytes, limits::kDatagramBytesMin);
  }
  return std::nullopt;
}

Status no_memory(const VerbsPort& port, const char* what, std::size_t bytes, int error,
                 std::optional<std::size_t> limit_bytes) {
  if (error == ENOMEM && limit_bytes) {
    return Status::error(
        StatusCode::kResourceExhausted,
        "RDMA %s: %s of %zu KiB exceeds what this process may lock (%zu KiB): raise it with "
        "`ulimit -l unlimited`, LimitMEMLOCK= or /etc/security/limits.conf",
        name_of(port).c_str(), what, bytes >> 10, *limit_bytes >> 10);
  }
  return Status::error(StatusCode::kResourceExhausted, "RDMA %s: %s of %zu KiB: %s",
                       name_of(port).c_str(), what, bytes >> 10, std::strerror(error));
}

Status no_route(const VerbsPort& port, std::size_t rank, const std::string& peer, int error) {
  return Status::error(
      StatusCode::kUnavailable,
      "RDMA %s: no way to rank %zu at %s: %s; both must be on one RDMA network (`ping` "
      "and `rping` between the addresses tell)",
      name_of(port).c_str(), rank, peer.c_str(), std::strerror(error));
}

Status no_multicast(const VerbsPort& port, const asio::ip::address& group, int error) {
  return Status::error(
      StatusCode::kUnavailable,
      "RDMA %s: multicast group %s cannot be joined: %s; the switch or subnet manager must "
      "allow it, or leave LEEWAY_MULTICAST off",
      name_of(port).c_str(), group.to_string().c_str(), std::strerror(error));
}

Status failed(const VerbsPort& port, const char* what, int error) {
  return Status::error(StatusCode::kUnavailable, "RDMA %s: %s: %s", name_of(port).c_str(), what,
                       std::strerror(error));
}

Status device_gone(const VerbsPort& port, const char* why) {
  return Status::error(
      StatusCode::kUnavailable,
      "RDMA %s cannot be used any more: %s; make a new communicator when it is back, or "
      "one with LEEWAY_TRANSPORT=udp",
      name_of(port).c_str(), why);
}

std::optional<std::size_t> locked_memory_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace leeway::transport::refusal
