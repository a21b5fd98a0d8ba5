#include <algorithm>
#include <vector>

#include "base/marks.h"
#include "rendezvous/address.h"
#include "rendezvous/candidate.h"
#include "transport/udp/udp_transport.h"

namespace leeway::rendezvous {
namespace {

class UdpCandidate final : public Candidate {
 public:
  explicit UdpCandidate(std::unique_ptr<transport::UdpTransport> udp) : udp_(std::move(udp)) {}

  TransportKind kind() const override { return TransportKind::udp; }
  GroupTransport::Member place() const override {
    const transport::UdpAddress& local = udp_->local_address();
    return {to_bytes(local.address()), local.port(), udp_->limits().receive_buffer_bytes};
  }
  const TransportLimits& limits() const override { return udp_->limits(); }

  Status connect(const GroupTransport& transport, Rank self) override {
    self_ = self;
    std::vector<transport::UdpAddress> addresses;
    for (const GroupTransport::Member& member : transport.members) {
      const auto address = address_from_bytes(member.address);
      if (!address)
        return Status::error(StatusCode::kInternal, "create: rendezvous gave a malformed address");
      addresses.emplace_back(*address, member.port);
    }
    return udp_->set_peers(addresses);
  }

  Status join_multicast(const asio::ip::address& group, std::uint16_t port) override {
    return udp_->join_multicast({group, port}, self_);
  }
  void allow_marks() override { udp_->allow_marks(); }
  std::unique_ptr<DatagramTransport> take() override { return std::move(udp_); }

 private:
  std::unique_ptr<transport::UdpTransport> udp_;
  Rank self_ = kNoRank;
};

}  // namespace

Result<std::unique_ptr<Candidate>> open_udp(const Options& options,
                                            const asio::ip::address& address) {
  transport::UdpOptions udp;
  udp.bind_address = address;
  udp.port = options.port;
  udp.datagram_bytes = options.datagram_bytes;
  if (options.socket_buffer_bytes != 0) udp.socket_buffer_bytes = options.socket_buffer_bytes;
  auto opened = transport::UdpTransport::open(udp);
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<Candidate>(new UdpCandidate(std::move(*opened)));
}

}  // namespace leeway::rendezvous
