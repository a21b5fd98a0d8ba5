#include "interop/nccl/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <asio/ip/address.hpp>
#include <cstring>
#include <optional>

#include "base/network_address.h"
#include "rendezvous/address.h"

namespace leeway::nccl {
namespace {

constexpr std::size_t kMappedBytes = 12;

UniqueId::Address mapped(const void* v4) {
  UniqueId::Address address{};
  address[10] = address[11] = 0xFF;
  std::memcpy(address.data() + kMappedBytes, v4, sizeof(in_addr));
  return address;
}

// Link-local addresses mean something only together with the number of their link.
bool is_link_local(const in6_addr& address) {
  return IN6_IS_ADDR_LINKLOCAL(&address) != 0;
}

std::optional<UniqueId::Address> address_of(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return mapped(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  if (address->sa_family != AF_INET6) return std::nullopt;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (is_link_local(v6)) return std::nullopt;
  UniqueId::Address out;
  std::memcpy(out.data(), &v6, out.size());
  return out;
}

bool is_last_resort(const LocalAddress& local) {
  return local.loopback || local.interface.starts_with("docker") ||
         local.interface.starts_with("virbr");
}

UniqueId::Address outward() {
  const asio::ip::address address = rendezvous::outward_address();
  if (address.is_v4()) return mapped(address.to_v4().to_bytes().data());
  UniqueId::Address out;
  const auto bytes = address.to_v6().to_bytes();
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

}  // namespace

std::vector<LocalAddress> addresses_of_host() {
  std::vector<LocalAddress> all;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return all;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const auto address = address_of(entry->ifa_addr);
    if (address) all.push_back({entry->ifa_name, *address, (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  ::freeifaddrs(list);
  return all;
}

bool interface_matches(std::string_view filter, std::string_view name) {
  if (filter.empty()) return true;
  const bool others = filter.starts_with('^');
  if (others) filter.remove_prefix(1);
  const bool whole = filter.starts_with('=');
  if (whole) filter.remove_prefix(1);
  while (true) {
    const std::size_t end = std::min(filter.find(','), filter.size());
    const std::string_view word = filter.substr(0, end);
    if (!word.empty() && (whole ? name == word : name.starts_with(word))) return !others;
    if (end == filter.size()) return others;
    filter.remove_prefix(end + 1);
  }
}

std::vector<LocalAddress> choose(const std::vector<LocalAddress>& all,
                                 const UniqueId::Address& outward, const Settings& settings) {
  std::vector<LocalAddress> allowed;
  for (const LocalAddress& local : all) {
    if (settings.family == Settings::Family::v4 && !is_mapped(local.address)) continue;
    if (settings.family == Settings::Family::v6 && is_mapped(local.address)) continue;
    if (interface_matches(settings.interfaces, local.interface)) allowed.push_back(local);
  }
  const bool choice =
      settings.interfaces.empty() && !std::all_of(allowed.begin(), allowed.end(), is_last_resort);
  if (choice) std::erase_if(allowed, is_last_resort);
  std::stable_partition(allowed.begin(), allowed.end(),
                        [&](const LocalAddress& local) { return local.address == outward; });
  return allowed;
}

std::vector<LocalAddress> choose_local(const Settings& settings) {
  auto chosen = choose(addresses_of_host(), outward(), settings);
  const std::array<std::uint8_t, 4> loopback{127, 0, 0, 1};
  if (chosen.empty() && settings.interfaces.empty() && settings.family != Settings::Family::v6)
    chosen.push_back({"lo", mapped(loopback.data()), true});
  return chosen;
}

std::vector<UniqueId::Address> addresses_of(const std::vector<LocalAddress>& chosen) {
  std::vector<UniqueId::Address> out;
  for (const LocalAddress& local : chosen) {
    if (out.size() < UniqueId::kAddressesMax) out.push_back(local.address);
  }
  return out;
}

}  // namespace leeway::nccl
