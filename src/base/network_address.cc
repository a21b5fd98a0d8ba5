#include "base/network_address.h"

#include <arpa/inet.h>

#include <algorithm>

namespace leeway {

std::string to_text(const NetworkAddress& address) {
  static constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0,    0,
                                                           0, 0, 0, 0, 0xFF, 0xFF};
  const bool v4 = std::equal(kMapped.begin(), kMapped.end(), address.ip.begin());
  std::array<char, INET6_ADDRSTRLEN> ip{};
  ::inet_ntop(v4 ? AF_INET : AF_INET6, address.ip.data() + (v4 ? kMapped.size() : 0), ip.data(),
              static_cast<socklen_t>(ip.size()));
  std::string text(v4 ? "" : "[");
  text += ip.data();
  text += v4 ? ":" : "]:";
  return text += std::to_string(address.port);
}

}  // namespace leeway
