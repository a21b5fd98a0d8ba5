// The RDMA ports of this machine, and which of a port's GIDs belongs to an IP address. No transport
// need be open for it: `leeway doctor` shows what is found here.
#pragma once

#include <infiniband/verbs.h>

#include <asio/ip/address.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/verbs/address.h"

namespace leeway::transport {

enum class GidType : std::uint8_t { infiniband, roce_v1, roce_v2 };
std::string_view to_string(GidType type);  // "IB", "RoCE v1", "RoCE v2"

struct VerbsGid {
  std::uint32_t index = 0;  // in the port's table
  GidType type = GidType::infiniband;
  Gid gid{};
  std::uint32_t interface = 0;  // index of the network interface; 0 if there is none
};

struct VerbsPort {
  std::string device;     // "mlx5_0"
  std::uint8_t port = 0;  // number from 1; 0 if the device could not be opened
  int error = 0;  // the errno if something could not be opened or queried; the rest is then empty
  LinkLayer link = LinkLayer::ethernet;
  bool active = false;
  std::string state;              // "PORT_ACTIVE", "PORT_DOWN", ...
  std::size_t mtu_bytes = 0;      // payload of the largest datagram now: 256 to 4,096
  std::size_t mtu_bytes_max = 0;  // the hardware's largest MTU
  std::uint16_t lid = 0;
  std::size_t queue_entries_max = 0;  // most requests of one queue, and their completions
  std::size_t pieces_max = 0;         // most pieces that one datagram may be gathered from
  std::vector<VerbsGid> gids;
};

// Returns one row for every port, ordered by device and port. There are no rows without an RDMA
// device.
std::vector<VerbsPort> list_verbs_ports();

// Returns the port `number` of an open device.
VerbsPort describe_port(ibv_context* context, std::uint8_t number);

// Returns the GID with which the port sends as `address`: on Ethernet the first RoCE v2 entry that
// is the address; on InfiniBand, where an IP address belongs to IPoIB, the port's own (the first
// entry). Returns nullptr if there is none.
const VerbsGid* choose_gid(const VerbsPort& port, const asio::ip::address& address);

}  // namespace leeway::transport
