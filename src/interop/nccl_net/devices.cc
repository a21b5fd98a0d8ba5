#include "interop/nccl_net/devices.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <fstream>

#include "base/network_address.h"
#include "interop/nccl_net/connection.h"

namespace leeway::nccl_net {
namespace {

// Limit on the interfaces, and speed of an interface that reports none. Both are as in NCCL's own
// socket transport.
constexpr std::size_t kDevicesMax = 16;
constexpr int kSpeedUnknownMbps = 10'000;

// Time that Leeway adds to a message of 8 bytes, one way, on loopback (tests/perf/nccl_net_bench).
// The network's own latency is not known before there is a connection.
constexpr float kLatencyUs = 15.0F;

constexpr int kCommsMax = 65'536;
// NCCL_NET_ID_UNDEF of NCCL's header.
constexpr std::int16_t kUndefined = -1;

int speed_of(const std::string& folder, const Options& options) {
  int speed = 0;
  std::ifstream(folder + "/speed") >> speed;  // virtual interfaces say -1, or nothing
  if (speed <= 0) speed = kSpeedUnknownMbps;
  if (options.congestion != CongestionControl::fixed) return speed;
  const std::uint64_t rate = options.rate_bits_per_second / 1'000'000;
  return rate < static_cast<std::uint64_t>(speed) ? std::max(1, static_cast<int>(rate)) : speed;
}

std::string pci_path_of(const std::string& folder) {
  char* const real = ::realpath((folder + "/device").c_str(), nullptr);
  std::string path(real == nullptr ? "" : real);
  std::free(real);
  return path;
}

}  // namespace

std::vector<Device> devices_of(const std::vector<nccl::LocalAddress>& addresses,
                               const Options& options, const std::string& sys) {
  std::vector<Device> devices;
  for (const nccl::LocalAddress& local : addresses) {
    auto device = std::ranges::find(devices, local.interface, &Device::name);
    if (device == devices.end()) {
      if (devices.size() == kDevicesMax) continue;
      const std::string folder = sys + "/class/net/" + local.interface;
      devices.push_back({local.interface, pci_path_of(folder), {}, speed_of(folder, options)});
      device = devices.end() - 1;
    }
    if (device->addresses.size() < nccl::UniqueId::kAddressesMax)
      device->addresses.push_back(local.address);
  }
  return devices;
}

Result<std::vector<Device>> find_devices(const nccl::Settings& settings, const Options& options) {
  auto addresses = nccl::choose_local(settings);
  const std::string& bound = options.bind_address;
  if (!bound.empty()) {
    addresses = nccl::addresses_of_host();
    std::erase_if(addresses, [&](const auto& one) { return ip_text(one.address) != bound; });
  }
  auto devices = devices_of(addresses, options, "/sys");
  if (!devices.empty()) return devices;
  return Status::error(StatusCode::kUnavailable,
                       "no interface of this host is up and allowed by LEEWAY_BIND=\"%.60s\", "
                       "NCCL_SOCKET_IFNAME=\"%.60s\" (`ip address` lists them)",
                       bound.c_str(), settings.interfaces.c_str());
}

leeway_nccl_net_properties_v12 properties_of(const Device& device, int number) {
  leeway_nccl_net_properties_v12 out{};
  // NCCL's declaration has no const, and NCCL writes to neither.
  out.name = const_cast<char*>(device.name.c_str());
  out.pci_path = device.pci_path.empty() ? nullptr : const_cast<char*>(device.pci_path.c_str());
  out.guid = static_cast<std::uint64_t>(number);
  out.pointer_kinds = kHostMemory;
  out.speed = device.speed_mbps;
  out.latency = kLatencyUs;
  out.comms_max = kCommsMax;
  out.receives_max = 1;
  out.parts.count = 1;
  out.parts.devices[0] = number;
  out.message_bytes_max = kMessageBytesMax;
  out.collective_bytes_max = kMessageBytesMax;
  out.multi_request_max = 1;
  out.rail = kUndefined;
  out.plane = kUndefined;
  return out;
}

}  // namespace leeway::nccl_net
