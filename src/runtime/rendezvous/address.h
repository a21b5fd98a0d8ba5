// Addresses as people write them, as Asio holds them and as the wire carries them.
#pragma once

#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::rendezvous {

struct HostPort {
  std::string host;  // without brackets
  std::uint16_t port = 0;
};

// Parses "host:port" or "[v6]:port"; the port must be 1 .. 65535.
Result<HostPort> parse_host_port(std::string_view text);

// Parses an address that a server listens on. The host may also be empty (all addresses), the port
// 0 (the system chooses).
Result<HostPort> parse_listen_address(std::string_view text);
// Returns true if `host` stands for all addresses of this machine: "", "0.0.0.0" or "::".
bool is_any_host(std::string_view host);

// Returns the address by which this host reaches other networks. If there is none, returns the
// first address of an interface that is not loopback, else loopback. Sends nothing.
asio::ip::address outward_address();

// Returns this host's address towards the other ranks: the one by which the system would reach
// `rendezvous`. Returns outward_address() if `rendezvous` is empty, names no host, or is this
// machine's own name, which Debian's /etc/hosts maps to 127.0.1.1.
Result<asio::ip::address> address_towards(std::string_view rendezvous);

struct ResolvedHost {
  std::vector<asio::ip::tcp::endpoint> endpoints;  // never empty
  bool literal = false;                            // the host was an address, not a name
};

// Blocks for as long as the system's resolver does. Returns kInvalidArgument if the name does not
// exist, kUnavailable if the resolver gave no answer but may do so later.
Result<ResolvedHost> resolve(asio::io_context& io, const HostPort& where);

// Returns an IPv4 address inside IPv6 (::ffff:a.b.c.d) as plain IPv4, any other address as it is.
asio::ip::address unmapped(const asio::ip::address& address);

// Returns true for addresses that the internet does not route: loopback, link-local, RFC 1918, RFC
// 4193, CGNAT (100.64/10), those for documentation and benchmarks, and the unspecified one.
bool is_private(const asio::ip::address& address);

// Returns a number for the network of an address: its first 24 bits (IPv4) or 48 (IPv6). Returns 0
// for loopback.
std::uint64_t network_of(const asio::ip::address& address);

// Returns 4 or 16 bytes in network order.
std::vector<std::byte> to_bytes(const asio::ip::address& address);
std::optional<asio::ip::address> address_from_bytes(ByteSpan bytes);
// Like address_from_bytes(), but returns IPv4 inside IPv6 as plain IPv4.
std::optional<asio::ip::address> plain_address(ByteSpan bytes);

// The inverse of parse_host_port(). Puts brackets around a host with colons.
std::string to_text(const HostPort& where);

// Returns "10.0.0.1:80" or "[::1]:80".
std::string to_text(const asio::ip::tcp::endpoint& endpoint);

}  // namespace leeway::rendezvous
