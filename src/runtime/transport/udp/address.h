// UDP addresses, and what the host knows about the way to them.
#pragma once

#include <sys/socket.h>

#include <asio/ip/udp.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/network_address.h"
#include "leeway/status.h"

namespace leeway::transport {

using UdpAddress = asio::ip::udp::endpoint;

// Convert to and from NetworkAddress, which is the form for code without sockets. udp_address()
// returns nullopt if a socket of `protocol` cannot send to the address.
NetworkAddress network_address(const UdpAddress& address);
NetworkAddress network_address(const sockaddr_storage& address);
std::optional<UdpAddress> udp_address(const NetworkAddress& address, const asio::ip::udp& protocol);

// Returns the name of the interface that has this address, or says why none has it.
Result<std::string> interface_with(const asio::ip::address& local);
inline bool is_own_address(const asio::ip::address& address) {
  return interface_with(address).ok();
}

// Returns the bytes of IP and UDP headers in front of a payload, without options or extension
// headers.
std::size_t header_bytes(const asio::ip::address& address);

// Loopback is treated as a host's own memory, or as a network that somebody simulates on it.
enum class Loopback : std::uint8_t { memory, network };

// Returns the largest UDP payload that leaves `local` unfragmented: the MTU of the interface that
// has the address, at most a jumbo frame of 9,000 bytes, less headers. Loopback's MTU of 65,536
// counts as 9,000, too; as Loopback::memory it gives kNearDatagramBytes (README.md). The
// unspecified address has no interface, so Ethernet's 1,500 is assumed for it.
Result<std::size_t> path_datagram_bytes(const asio::ip::address& local, Loopback loopback);

// Returns the local address from which the kernel would send to `remote`. Nothing is sent.
Result<asio::ip::address> local_address_towards(const UdpAddress& remote);

// Returns the first address of an interface that is up and not loopback, IPv4 before IPv6; none on
// a host without a network. Link-local IPv6 addresses, which mean nothing without their interface,
// do not count.
std::optional<asio::ip::address> first_network_address();

}  // namespace leeway::transport
