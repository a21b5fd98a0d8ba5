// A network namespace for each rank, with one TUN device in it: what a rank sends comes out of the
// device's descriptor, and what is written to the descriptor arrives at the rank.
//
// Nothing has a name and nothing outlives its users: the kernel deletes a namespace when the last
// process in it and the last descriptor of it are gone, and a device with its descriptor. So there
// is nothing to clean up, however the laboratory ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ip_packet.h"
#include "leeway/status.h"

namespace leeway::lab {

inline constexpr Address kFirstAddress = 0x0a580001;  // 10.88.0.1
inline constexpr const char* kDevice = "wan0";

// "10.88.0.3" of rank 2.
std::string address_text(std::uint32_t rank);

struct RankNetwork {
  int namespace_fd = -1;
  int device_fd = -1;  // one packet or train a read or write (train.h); without blocking
};

struct DeviceOptions {
  std::vector<std::uint32_t> mtus;  // one for all, or one a rank
  std::string congestion_control;   // of TCP; empty: the kernel's default
};

// Makes the namespaces, and returns to the caller's own. Returns kUnavailable, with the reason, if
// this machine does not permit it. Without root it makes a user namespace first, where that is
// allowed.
Result<std::vector<RankNetwork>> make_namespaces(std::uint32_t ranks, const DeviceOptions& options);

// Moves the calling thread into the namespace.
Status enter_namespace(int namespace_fd);

// Returns how many packets the devices lost because nobody took them in time. Leaves the caller in
// one of the namespaces.
std::uint64_t device_drops(const std::vector<RankNetwork>& networks);

}  // namespace leeway::lab
