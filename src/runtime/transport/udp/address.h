// UDP addresses, and what the local host knows about the way to them.
#pragma once

#include <sys/socket.h>

#include <asio/ip/udp.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/network_address.h"
#include "leeway/status.h"

namespace leeway::transport {

using UdpAddress = asio::ip::udp::endpoint;

// Convert an address for rooms without sockets, and back. udp_address() returns nullopt if a socket
// of that protocol cannot send there.
NetworkAddress network_address(const UdpAddress& address);
NetworkAddress network_address(const sockaddr_storage& address);
std::optional<UdpAddress> udp_address(const NetworkAddress& address, const asio::ip::udp& protocol);

// Bytes of IP and UDP headers in front of a payload, without options or extension headers.
std::size_t header_bytes(const asio::ip::address& address);

// How loopback is treated: as a host's own memory, or as a network that somebody simulates on it.
enum class Loopback : std::uint8_t { memory, network };

// Largest UDP payload that leaves `local` unfragmented: the MTU of the interface that carries the
// address, less headers, but no more than a jumbo frame of 9,000 bytes. Loopback's 65,536 become
// that, too, or as memory kNearDatagramBytes (README.md, "Datagram size"). The unspecified address
// has no interface; Ethernet's 1,500 is assumed for it.
Result<std::size_t> path_datagram_bytes(const asio::ip::address& local, Loopback loopback);

// Returns the local address from which the kernel would send to `remote`. Nothing is sent.
Result<asio::ip::address> local_address_towards(const UdpAddress& remote);

// Returns the first address of an interface that is up and not loopback, IPv4 before IPv6; none on
// a host without a network. Link-local IPv6 addresses, which mean nothing without their interface,
// do not count.
std::optional<asio::ip::address> first_network_address();

}  // namespace leeway::transport
