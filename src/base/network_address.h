// Address of a process in an IP network, for rooms without sockets.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace leeway {

// An IP address and a UDP port. IPv4 is kept v4-mapped (::ffff:a.b.c.d).
struct NetworkAddress {
  std::array<std::uint8_t, 16> ip{};
  std::uint16_t port = 0;  // 0 if there is no address

  bool known() const { return port != 0; }
  friend bool operator==(const NetworkAddress&, const NetworkAddress&) = default;
};

// Returns true if the address is IPv4 inside IPv6.
bool is_mapped(const std::array<std::uint8_t, 16>& ip);
// Returns a text such as "10.0.0.1" or "fe80::1".
std::string ip_text(const std::array<std::uint8_t, 16>& ip);
// Returns a text such as "10.0.0.1:80" or "[fe80::1]:80".
std::string to_text(const NetworkAddress& address);

}  // namespace leeway
