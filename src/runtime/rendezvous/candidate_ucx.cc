#include <string>

#include "rendezvous/candidate.h"
#include "transport/ucx/report.h"
#include "transport/ucx/ucx_transport.h"

namespace leeway::rendezvous {
namespace {

class UcxCandidate final : public Candidate {
 public:
  explicit UcxCandidate(std::unique_ptr<transport::UcxTransport> ucx) : ucx_(std::move(ucx)) {}

  TransportKind kind() const override { return TransportKind::ucx; }
  GroupTransport::Member place() const override {
    return {ucx_->local_address(), 0, ucx_->limits().receive_buffer_bytes};
  }
  const TransportLimits& limits() const override { return ucx_->limits(); }

  Status connect(const GroupTransport& transport, Rank self) override {
    return ucx_->set_peers(addresses_of(transport), self);
  }

  Status join_multicast(const asio::ip::address&, std::uint16_t) override {
    return Status::error(StatusCode::kUnsupported, "UCX has no multicast");
  }

  std::unique_ptr<DatagramTransport> take() override { return std::move(ucx_); }

 private:
  std::unique_ptr<transport::UcxTransport> ucx_;
};

}  // namespace

Result<std::unique_ptr<Candidate>> open_ucx(const Options& options, const asio::ip::address&) {
  transport::UcxOptions ucx;
  ucx.datagram_bytes = options.datagram_bytes;
  auto opened = transport::UcxTransport::open(ucx);
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<Candidate>(new UcxCandidate(std::move(*opened)));
}

Devices list_ucx_devices() {
  const auto resources = transport::list_ucx_transports();
  if (!resources.ok()) return resources.status();
  std::vector<TransportDevice> devices;
  for (const transport::UcxResource& resource : *resources) {
    const std::string name =
        std::string("UCX ") + ucp_get_version_string() + " " + resource.transport;
    if (devices.empty() || devices.back().name != name) devices.push_back({.name = name});
    std::string& facts = devices.back().facts;
    facts += (facts.empty() ? "" : " ") + resource.device;
  }
  return devices;
}

}  // namespace leeway::rendezvous
