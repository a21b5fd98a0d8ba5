#include "base/network_address.h"

#include <arpa/inet.h>

#include <algorithm>

namespace leeway {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

}  // namespace

bool is_mapped(const std::array<std::uint8_t, 16>& ip) {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), ip.begin());
}

std::string ip_text(const std::array<std::uint8_t, 16>& ip) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v4 = is_mapped(ip);
  ::inet_ntop(v4 ? AF_INET : AF_INET6, ip.data() + (v4 ? kMappedPrefix.size() : 0), text.data(),
              static_cast<socklen_t>(text.size()));
  return text.data();
}

std::string to_text(const NetworkAddress& address) {
  const std::string ip = ip_text(address.ip);
  return (is_mapped(address.ip) ? ip : "[" + ip + "]") + ":" + std::to_string(address.port);
}

}  // namespace leeway
