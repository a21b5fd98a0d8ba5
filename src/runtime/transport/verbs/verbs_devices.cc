#include "transport/verbs/verbs_devices.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>

#include "transport/verbs/handles.h"
#include "transport/verbs/refusals.h"

namespace leeway::transport {
namespace {

// Limit on the GIDs that are read for all ports of a device together. A port has up to 256 entries,
// but only the filled ones are returned.
constexpr std::size_t kGidsMax = 1024;

// Returns the bytes of a code of ibv_mtu: the codes are 1 for 256 up to 5 for 4,096.
std::size_t bytes_of(ibv_mtu mtu) {
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? std::size_t{128} << static_cast<int>(mtu) : 0;
}

GidType type_of(std::uint32_t raw) {
  if (raw == IBV_GID_TYPE_ROCE_V2) return GidType::roce_v2;
  return raw == IBV_GID_TYPE_ROCE_V1 ? GidType::roce_v1 : GidType::infiniband;
}

std::vector<VerbsGid> gids_of(ibv_context* context, std::uint8_t port) {
  std::vector<ibv_gid_entry> entries(kGidsMax);
  const ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  std::vector<VerbsGid> gids;
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = entries[static_cast<std::size_t>(i)];
    if (entry.port_num != port) continue;
    VerbsGid gid{entry.gid_index, type_of(entry.gid_type), {}, entry.ndev_ifindex};
    std::memcpy(gid.gid.data(), entry.gid.raw, gid.gid.size());
    gids.push_back(gid);
  }
  return gids;
}

void list_device(ibv_device* device, std::vector<VerbsPort>& ports) {
  const ContextHandle context(ibv_open_device(device));
  ibv_device_attr attributes{};
  const int error = context == nullptr ? errno : ibv_query_device(context.get(), &attributes);
  if (error != 0) {
    VerbsPort row;
    row.device = ibv_get_device_name(device);
    row.error = refusal::reason_of(device->dev_name, error);
    ports.push_back(row);
    return;
  }
  for (std::uint8_t port = 1; port <= attributes.phys_port_cnt; ++port) {
    ports.push_back(describe_port(context.get(), port));
  }
}

}  // namespace

std::string_view to_string(GidType type) {
  switch (type) {
    case GidType::infiniband:
      return "IB";
    case GidType::roce_v1:
      return "RoCE v1";
    case GidType::roce_v2:
      return "RoCE v2";
  }
  return "?";
}

VerbsPort describe_port(ibv_context* context, std::uint8_t number) {
  VerbsPort row;
  row.device = ibv_get_device_name(context->device);
  row.port = number;
  ibv_device_attr device{};
  ibv_port_attr port{};
  row.error = ibv_query_device(context, &device);
  if (row.error == 0) row.error = ibv_query_port(context, number, &port);
  if (row.error != 0) return row;
  row.link =
      port.link_layer == IBV_LINK_LAYER_ETHERNET ? LinkLayer::ethernet : LinkLayer::infiniband;
  row.active = port.state == IBV_PORT_ACTIVE;
  row.state = ibv_port_state_str(port.state);
  row.mtu_bytes = bytes_of(port.active_mtu);
  row.mtu_bytes_max = bytes_of(port.max_mtu);
  row.lid = port.lid;
  row.queue_entries_max =
      static_cast<std::size_t>(std::max(std::min(device.max_qp_wr, device.max_cqe), 0));
  row.pieces_max = static_cast<std::size_t>(std::max(device.max_sge, 0));
  row.gids = gids_of(context, number);
  return row;
}

std::vector<VerbsPort> list_verbs_ports() {
  std::vector<VerbsPort> ports;
  int count = 0;
  const Handle<ibv_device*, ibv_free_device_list> devices(ibv_get_device_list(&count));
  for (int i = 0; devices != nullptr && i < count; ++i) list_device(devices.get()[i], ports);
  std::sort(ports.begin(), ports.end(), [](const VerbsPort& a, const VerbsPort& b) {
    return std::tie(a.device, a.port) < std::tie(b.device, b.port);
  });
  return ports;
}

const VerbsGid* choose_gid(const VerbsPort& port, const asio::ip::address& address) {
  if (port.link == LinkLayer::infiniband) return port.gids.empty() ? nullptr : &port.gids.front();
  const Gid wanted = gid_of(address);
  for (const VerbsGid& gid : port.gids) {
    if (gid.type == GidType::roce_v2 && gid.gid == wanted) return &gid;
  }
  return nullptr;
}

}  // namespace leeway::transport
