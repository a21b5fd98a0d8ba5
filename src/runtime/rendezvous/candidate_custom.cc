// Candidate of a transport of the caller's own. It is connected already, and its name is its
// address.
#include <algorithm>

#include "base/limits.h"
#include "rendezvous/candidate.h"
#include "rendezvous/printable.h"

namespace leeway::rendezvous {
namespace {

class CustomCandidate final : public Candidate {
 public:
  explicit CustomCandidate(std::unique_ptr<DatagramTransport> transport)
      : transport_(std::move(transport)) {}

  TransportKind kind() const override { return TransportKind::custom; }
  GroupTransport::Member place() const override {
    const ByteSpan name = std::as_bytes(std::span(transport_->name()));
    return {{name.begin(), name.end()}, 0, transport_->limits().receive_buffer_bytes};
  }
  const TransportLimits& limits() const override { return transport_->limits(); }

  Status connect(const GroupTransport& transport, Rank) override {
    const std::string own(transport_->name());
    for (std::size_t rank = 0; rank < transport.members.size(); ++rank) {
      const std::vector<std::byte>& bytes = transport.members[rank].address;
      const std::string theirs(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (theirs == own) continue;
      return Status::error(StatusCode::kMismatch,
                           "create: rank %zu brings transport \"%s\", this rank \"%s\"", rank,
                           printable(theirs, 64).c_str(), own.c_str());
    }
    return Status();
  }

  // Does nothing: limits().multicast already says whether the transport has multicast.
  Status join_multicast(const asio::ip::address&, std::uint16_t) override { return Status(); }
  std::unique_ptr<DatagramTransport> take() override { return std::move(transport_); }

 private:
  std::unique_ptr<DatagramTransport> transport_;
};

}  // namespace

Candidates candidates_over(std::unique_ptr<DatagramTransport> transport, const Options& options) {
  const std::size_t wanted =
      options.datagram_bytes != 0 ? options.datagram_bytes : limits::kDatagramBytesMax;
  const std::size_t datagram_bytes = std::min(wanted, transport->limits().datagram_bytes_max);
  auto candidate = std::make_unique<CustomCandidate>(std::move(transport));
  Candidates candidates{{}, local_configuration(options)};
  LocalConfiguration& local = candidates.local;
  local.transport = TransportKind::custom;
  local.datagram_bytes =
      static_cast<std::uint32_t>(std::min(datagram_bytes, limits::kFrameBytesMax));
  local.offers = {offer_of(*candidate)};
  local.offers[0].datagram_bytes =
      static_cast<std::uint32_t>(std::min(datagram_bytes, limits::kDatagramBytesMax));
  candidates.open.push_back(std::move(candidate));
  return candidates;
}

}  // namespace leeway::rendezvous
