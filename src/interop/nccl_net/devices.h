// Devices that NCCL takes for network cards: the interfaces that NCCL_SOCKET_IFNAME and
// NCCL_SOCKET_FAMILY allow, or the one that LEEWAY_BIND names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interop/nccl/interfaces.h"
#include "interop/nccl/settings.h"
#include "interop/nccl_net/abi.h"
#include "leeway/options.h"

namespace leeway::nccl_net {

inline constexpr int kHostMemory = 1;  // NCCL_PTR_HOST

struct Device {
  std::string name;  // interface
  // Path in /sys. Empty if the interface has no hardware of its own.
  std::string pci_path;
  std::vector<nccl::UniqueId::Address> addresses;  // 1 .. kAddressesMax
  int speed_mbps = 0;
};

// Devices of `addresses`: one for each interface, in their order. `sys` is "/sys", except in tests.
std::vector<Device> devices_of(const std::vector<nccl::LocalAddress>& addresses,
                               const Options& options, const std::string& sys);
// Devices of this host. Returns kUnavailable if no interface is allowed and up.
Result<std::vector<Device>> find_devices(const nccl::Settings& settings, const Options& options);

// Properties of device `number` for NCCL. Their pointers point into `device`, which must outlive
// them.
leeway_nccl_net_properties_v12 properties_of(const Device& device, int number);

}  // namespace leeway::nccl_net
