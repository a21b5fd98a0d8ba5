// A network namespace for each rank, with one TUN device: packets that the rank sends are read from
// the device's descriptor, and packets written to it arrive at the rank.
//
// Namespaces and devices have no names outside, and the kernel deletes them with their last process
// or descriptor. So nothing remains, however the laboratory ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ip_packet.h"
#include "leeway/status.h"

namespace leeway::lab {

inline constexpr Address kFirstAddress = 0x0a580001;  // 10.88.0.1
inline constexpr const char* kDevice = "wan0";

// Returns a rank's address: "10.88.0.3" for rank 2.
std::string address_text(std::uint32_t rank);

struct RankNetwork {
  int namespace_fd = -1;
  int device_fd = -1;  // a read or write moves one packet or train (train.h); non-blocking
};

struct DeviceOptions {
  std::vector<std::uint32_t> mtus;  // one for all, or one a rank
  std::string congestion_control;   // TCP's; if empty, the kernel's default
};

// Makes the namespaces, and returns to the caller's own. Without root, first enters a user
// namespace, where that is allowed. Returns kUnavailable, with the reason, if this machine does not
// permit it.
Result<std::vector<RankNetwork>> make_namespaces(std::uint32_t ranks, const DeviceOptions& options);

Status enter_namespace(int namespace_fd);

// Returns how many packets the devices dropped because nobody read them in time. Leaves the caller
// in one of the namespaces.
std::uint64_t device_drops(const std::vector<RankNetwork>& networks);

}  // namespace leeway::lab
