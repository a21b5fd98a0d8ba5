// UCX transports of one process that know each other.
#pragma once

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "transport/ucx/ucx_transport.h"
#include "unit/transport/datagrams.h"

namespace leeway::transport {

using UcxGroup = std::vector<std::unique_ptr<UcxTransport>>;

// `devices` is the value of UCX_TLS.
inline UcxGroup make_ucx_group(int size, const char* devices = "self,posix",
                               const UcxOptions& options = {}) {
  setenv("UCX_TLS", devices, 1);
  UcxGroup group;
  std::vector<std::vector<std::byte>> addresses;
  for (int i = 0; i < size; ++i) {
    group.push_back(UcxTransport::open(options).value());
    addresses.push_back(group.back()->local_address());
  }
  for (int i = 0; i < size; ++i) {
    const Status status = group[i]->set_peers(addresses, static_cast<Rank>(i));
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.c_str());
      std::abort();
    }
  }
  return group;
}

// Lets a transport that receives nothing make progress.
inline void turn(UcxTransport& transport) {
  std::array<Received, 1> nothing;
  transport.receive(nothing);
}

// Receives at `to` until `count` datagrams are here or none came for two seconds. One thread drives
// all transports meanwhile.
inline std::vector<Bytes> collect(UcxGroup& group, Rank to, std::size_t count,
                                  std::size_t room = 32) {
  std::vector<Bytes> all;
  std::vector<Received> out(room);
  const auto start = std::chrono::steady_clock::now();
  auto last = start;
  while (all.size() < count && std::chrono::steady_clock::now() - last < std::chrono::seconds(2)) {
    for (auto& transport : group) {
      if (transport && transport != group[to]) turn(*transport);
    }
    const std::size_t filled = group[to]->receive(out);
    for (std::size_t i = 0; i < filled; ++i) all.push_back(bytes_of(out[i].bytes));
    if (filled > 0) last = std::chrono::steady_clock::now();
  }
  return all;
}

}  // namespace leeway::transport
