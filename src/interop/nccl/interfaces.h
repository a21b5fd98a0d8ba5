// Choice of the addresses of this host that a unique id names, by NCCL_SOCKET_IFNAME and
// NCCL_SOCKET_FAMILY.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interop/nccl/settings.h"
#include "interop/nccl/unique_id.h"

namespace leeway::nccl {

// One address of one interface.
struct LocalAddress {
  std::string interface;
  UniqueId::Address address{};
  bool loopback = false;
};

// Matches an interface with NCCL_SOCKET_IFNAME: "eth,ib" are beginnings of names, "=eth0" whole
// names, and "^" in front means all others. Empty matches all.
bool interface_matches(std::string_view filter, std::string_view name);

// Returns all addresses of this host's interfaces that are up, without link-local ones of IPv6,
// which mean something on one link only.
std::vector<LocalAddress> addresses_of_host();

// Returns the addresses in `all` that the settings allow; `outward`, by which other networks are
// reached, comes first. Without NCCL_SOCKET_IFNAME, loopback and bridges of containers are a last
// resort.
std::vector<LocalAddress> choose(const std::vector<LocalAddress>& all,
                                 const UniqueId::Address& outward, const Settings& settings);
// Chooses among this host's addresses as choose() does. If there are none, returns 127.0.0.1,
// unless the settings name interfaces or IPv6.
std::vector<LocalAddress> choose_local(const Settings& settings);

// Returns the addresses of `chosen`, at most kAddressesMax of them.
std::vector<UniqueId::Address> addresses_of(const std::vector<LocalAddress>& chosen);

}  // namespace leeway::nccl
