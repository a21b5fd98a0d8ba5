#include "base/network_address.h"
#include "rendezvous/candidate.h"
#include "transport/verbs/refusals.h"
#include "transport/verbs/verbs_devices.h"
#include "transport/verbs/verbs_transport.h"

namespace leeway::rendezvous {
namespace {

class VerbsCandidate final : public Candidate {
 public:
  explicit VerbsCandidate(std::unique_ptr<transport::VerbsTransport> verbs)
      : verbs_(std::move(verbs)) {}

  TransportKind kind() const override { return TransportKind::verbs; }
  GroupTransport::Member place() const override {
    return {verbs_->local_address(), 0, verbs_->limits().receive_buffer_bytes};
  }
  const TransportLimits& limits() const override { return verbs_->limits(); }

  Status connect(const GroupTransport& transport, Rank) override {
    return verbs_->set_peers(addresses_of(transport));
  }

  Status join_multicast(const asio::ip::address& group, std::uint16_t) override {
    return verbs_->join_multicast(group);
  }
  std::unique_ptr<DatagramTransport> take() override { return std::move(verbs_); }

 private:
  std::unique_ptr<transport::VerbsTransport> verbs_;
};

std::string facts_of(const transport::VerbsPort& port) {
  std::string facts = port.state;
  facts += port.link == transport::LinkLayer::infiniband
               ? ", InfiniBand, LID " + std::to_string(port.lid)
               : ", Ethernet";
  facts += ", MTU " + std::to_string(port.mtu_bytes) + " of " + std::to_string(port.mtu_bytes_max);
  for (const transport::VerbsGid& gid : port.gids) {
    facts += ", GID " + std::to_string(gid.index) + " " + std::string(to_string(gid.type)) + " " +
             ip_text(gid.gid);
  }
  return facts;
}

TransportDevice device_of(const transport::VerbsPort& port) {
  TransportDevice device;
  device.name =
      "RDMA " + port.device + (port.port == 0 ? "" : " port " + std::to_string(port.port));
  device.usable = port.error == 0 && port.active;
  if (port.error != 0) {
    device.facts = "cannot be opened";
    device.remedy = transport::refusal::device_closed(port.device, port.error).c_str();
    return device;
  }
  device.facts = facts_of(port);
  if (!port.active)
    device.remedy =
        "find its interface with `rdma link`, then: sudo ip link set dev <interface> up";
  return device;
}

}  // namespace

Result<std::unique_ptr<Candidate>> open_verbs(const Options& options,
                                              const asio::ip::address& address) {
  transport::VerbsOptions verbs;
  verbs.bind_address = address;
  verbs.datagram_bytes = options.datagram_bytes;
  auto opened = transport::VerbsTransport::open(verbs);
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<Candidate>(new VerbsCandidate(std::move(*opened)));
}

Devices list_verbs_devices() {
  std::vector<TransportDevice> devices;
  for (const transport::VerbsPort& port : transport::list_verbs_ports())
    devices.push_back(device_of(port));
  if (devices.empty()) return transport::refusal::no_device();
  return devices;
}

}  // namespace leeway::rendezvous
