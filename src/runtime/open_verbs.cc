#include "runtime/opened_transport.h"
#include "transport/verbs/verbs_transport.h"

namespace leeway::runtime {
namespace {

class OpenedVerbs final : public OpenedTransport {
 public:
  explicit OpenedVerbs(std::unique_ptr<transport::VerbsTransport> verbs)
      : verbs_(std::move(verbs)) {}

  Lane::Member place() const override {
    return {verbs_->local_address(), 0, verbs_->limits().receive_buffer_bytes};
  }
  const TransportLimits& limits() const override { return verbs_->limits(); }

  Status connect(const Lane& lane, Rank) override {
    std::vector<std::vector<std::byte>> addresses;
    for (const Lane::Member& member : lane.members) addresses.push_back(member.address);
    return verbs_->set_peers(addresses);
  }

  Status join_multicast(const asio::ip::address& group, std::uint16_t) override {
    return verbs_->join_multicast(group);
  }
  bool better_than_tcp(std::string&) const override { return true; }
  std::unique_ptr<DatagramTransport> take() override { return std::move(verbs_); }

 private:
  std::unique_ptr<transport::VerbsTransport> verbs_;
};

}  // namespace

Result<std::unique_ptr<OpenedTransport>> open_verbs(const Options& options,
                                                    const asio::ip::address& address) {
  transport::VerbsOptions verbs;
  verbs.bind_address = address;
  verbs.datagram_bytes = options.datagram_bytes;
  auto opened = transport::VerbsTransport::open(verbs);
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<OpenedTransport>(new OpenedVerbs(std::move(*opened)));
}

}  // namespace leeway::runtime
