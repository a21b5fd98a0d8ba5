#include "transport/udp/address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/descriptors.h"
#include "base/limits.h"
#include "transport/near_datagram.h"

namespace leeway::transport {
namespace {

constexpr std::size_t kEthernetMtu = 1500;
constexpr std::size_t kJumboMtu = 9000;

using InterfaceList = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

InterfaceList list_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) first = nullptr;
  return {first, &freeifaddrs};
}

bool carries(const ifaddrs& interface, const asio::ip::address& address) {
  if (interface.ifa_addr == nullptr) return false;
  if (address.is_v4() && interface.ifa_addr->sa_family == AF_INET) {
    const auto& found = reinterpret_cast<const sockaddr_in&>(*interface.ifa_addr);
    return ntohl(found.sin_addr.s_addr) == address.to_v4().to_uint();
  }
  if (address.is_v6() && interface.ifa_addr->sa_family == AF_INET6) {
    const auto& found = reinterpret_cast<const sockaddr_in6&>(*interface.ifa_addr);
    return std::memcmp(&found.sin6_addr, address.to_v6().to_bytes().data(), 16) == 0;
  }
  return false;
}

// Returns the form in which the interface lists the address: 127.0.0.1 for all of 127.0.0.0/8.
asio::ip::address listed_form(const asio::ip::address& address) {
  if (address.is_v4() && address.is_loopback()) return asio::ip::address_v4::loopback();
  return address;
}

Result<std::size_t> mtu_of(const std::string& interface) {
  asio::io_context context;
  asio::ip::udp::socket socket(context);
  std::error_code error;
  socket.open(asio::ip::udp::v4(), error);
  if (error) socket.open(asio::ip::udp::v6(), error);
  if (error) {
    return Status::error(code_without(error.value(), StatusCode::kUnavailable),
                         "no socket to ask for an MTU: %s%s", error.message().c_str(),
                         descriptor_hint(error.value()));
  }
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(socket.native_handle(), SIOCGIFMTU, &request) != 0) {
    return Status::error(StatusCode::kUnavailable, "MTU of interface %s: %s", interface.c_str(),
                         std::strerror(errno));
  }
  return static_cast<std::size_t>(request.ifr_mtu);
}

std::size_t payload_of(std::size_t mtu, const asio::ip::address& address, Loopback loopback) {
  if (loopback == Loopback::memory && address.is_loopback() &&
      mtu >= kNearDatagramBytes + header_bytes(address))
    return kNearDatagramBytes;
  const std::size_t usable = std::min(mtu, kJumboMtu);
  return std::max(usable, limits::kDatagramBytesMin + header_bytes(address)) -
         header_bytes(address);
}

}  // namespace

NetworkAddress network_address(const UdpAddress& address) {
  NetworkAddress out;
  out.port = address.port();
  out.ip =
      address.address().is_v6()
          ? address.address().to_v6().to_bytes()
          : asio::ip::make_address_v6(asio::ip::v4_mapped, address.address().to_v4()).to_bytes();
  return out;
}

NetworkAddress network_address(const sockaddr_storage& address) {
  NetworkAddress out;
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    out.ip[10] = out.ip[11] = 0xFF;
    std::memcpy(out.ip.data() + 12, &v4.sin_addr, 4);
    out.port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    std::memcpy(out.ip.data(), &v6.sin6_addr, out.ip.size());
    out.port = ntohs(v6.sin6_port);
  }
  return out;
}

std::optional<UdpAddress> udp_address(const NetworkAddress& address,
                                      const asio::ip::udp& protocol) {
  const asio::ip::address_v6 v6(address.ip);
  if (v6.is_v4_mapped() != (protocol == asio::ip::udp::v4())) return std::nullopt;
  if (!v6.is_v4_mapped()) return UdpAddress(v6, address.port);
  return UdpAddress(asio::ip::make_address_v4(asio::ip::v4_mapped, v6), address.port);
}

Result<std::string> interface_with(const asio::ip::address& local) {
  const asio::ip::address wanted = listed_form(local);
  const InterfaceList interfaces = list_interfaces();
  if (interfaces == nullptr) {
    return Status::error(StatusCode::kResourceExhausted,
                         "the interfaces of this host cannot be listed: %s%s", std::strerror(errno),
                         descriptor_hint(errno));
  }
  for (const ifaddrs* at = interfaces.get(); at != nullptr; at = at->ifa_next) {
    if (carries(*at, wanted)) return std::string(at->ifa_name);
  }
  return Status::error(StatusCode::kInvalidArgument, "no interface of this host has the address %s",
                       local.to_string().c_str());
}

std::size_t header_bytes(const asio::ip::address& address) {
  return address.is_v4() ? 20 + 8 : 40 + 8;
}

Result<std::size_t> path_datagram_bytes(const asio::ip::address& local, Loopback loopback) {
  if (local.is_unspecified()) return payload_of(kEthernetMtu, local, loopback);
  const auto interface = interface_with(local);
  if (!interface.ok()) return interface.status();
  const auto mtu = mtu_of(*interface);
  if (!mtu.ok()) return mtu.status();
  return payload_of(*mtu, local, loopback);
}

std::optional<asio::ip::address> first_network_address() {
  const InterfaceList interfaces = list_interfaces();
  std::optional<asio::ip::address> v6;
  for (const ifaddrs* one = interfaces.get(); one != nullptr; one = one->ifa_next) {
    const bool counts = one->ifa_addr != nullptr && (one->ifa_flags & IFF_UP) != 0 &&
                        (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!counts) continue;
    if (one->ifa_addr->sa_family == AF_INET) {
      const auto& found = reinterpret_cast<const sockaddr_in&>(*one->ifa_addr);
      return asio::ip::address_v4(ntohl(found.sin_addr.s_addr));
    }
    if (one->ifa_addr->sa_family != AF_INET6 || v6) continue;
    asio::ip::address_v6::bytes_type bytes{};
    const auto& found = reinterpret_cast<const sockaddr_in6&>(*one->ifa_addr);
    std::memcpy(bytes.data(), &found.sin6_addr, bytes.size());
    const asio::ip::address_v6 address(bytes);
    if (!address.is_link_local()) v6 = address;
  }
  return v6;
}

Result<asio::ip::address> local_address_towards(const UdpAddress& remote) {
  asio::io_context context;
  asio::ip::udp::socket socket(context);
  std::error_code error;
  socket.open(remote.protocol(), error);
  if (!error) socket.connect(remote, error);
  UdpAddress local;
  if (!error) local = socket.local_endpoint(error);
  if (lacks_descriptors(error.value())) {
    return Status::error(StatusCode::kResourceExhausted, "no socket: %s%s", error.message().c_str(),
                         descriptor_hint(error.value()));
  }
  if (error) {
    return Status::error(StatusCode::kUnavailable, "no route to %s: %s",
                         remote.address().to_string().c_str(), error.message().c_str());
  }
  return local.address();
}

}  // namespace leeway::transport
