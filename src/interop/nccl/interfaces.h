// Which addresses of this host a unique id names, as NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY say.
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

// NCCL_SOCKET_IFNAME: "eth,ib" are beginnings of names, "=eth0" whole names, and "^" in front means
// all others. Empty matches all.
bool interface_matches(std::string_view filter, std::string_view name);

// All addresses of this host's interfaces that are up, but those that mean something on one link
// only.
std::vector<LocalAddress> addresses_of_host();

// Of the host's addresses, those that the settings allow, `outward` first. Where nothing is asked
// for, loopback and containers' bridges are last resorts.
std::vector<LocalAddress> choose(const std::vector<LocalAddress>& all,
                                 const UniqueId::Address& outward, const Settings& settings);
// The same of this host; one of loopback where nothing else is.
std::vector<LocalAddress> choose_local(const Settings& settings);

// Of the host's addresses, at most kAddressesMax of what choose() gives.
std::vector<UniqueId::Address> choose_addresses(const std::vector<LocalAddress>& all,
                                                const UniqueId::Address& outward,
                                                const Settings& settings);

// The same of this host; one of loopback where nothing else is.
std::vector<UniqueId::Address> local_addresses(const Settings& settings);

}  // namespace leeway::nccl
