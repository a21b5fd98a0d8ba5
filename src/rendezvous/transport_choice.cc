#include "rendezvous/transport_choice.h"

#include <algorithm>
#include <array>

#include "rendezvous/address.h"
#include "transport/udp/address.h"

namespace leeway::rendezvous {
namespace {

struct Opener {
  TransportKind kind;
  Result<std::unique_ptr<OpenedTransport>> (*open)(const Options& options,
                                                   const asio::ip::address& address);
};
constexpr std::array<Opener, 2> kOpeners = {
    {{TransportKind::verbs, open_verbs}, {TransportKind::ucx, open_ucx}}};

bool is_candidate(TransportKind kind, const Options& options) {
  if (options.transport != TransportKind::automatic) return options.transport == kind;
  return options.world_size.value_or(1) > 1 && !options.faults.any();
}

TransportOffer offer_of(const TransportChoice::Candidate& candidate) {
  TransportOffer offer;
  offer.kind = candidate.kind;
  if (candidate.opened == nullptr) {
    offer.obstacle = candidate.obstacle.c_str();
    return offer;
  }
  const Lane::Member place = candidate.opened->place();
  offer.address = place.address;
  offer.datagram_bytes = static_cast<std::uint32_t>(candidate.opened->limits().datagram_bytes_max);
  offer.receive_buffer_bytes = place.receive_buffer_bytes;
  return offer;
}

}  // namespace

Result<asio::ip::address> data_address(const Options& options) {
  if (!options.bind_address.empty()) {
    std::error_code error;
    const auto address = asio::ip::make_address(options.bind_address, error);
    if (error) {
      return Status::error(StatusCode::kInvalidArgument,
                           "create: bind_address \"%s\" is not an IP address",
                           options.bind_address.c_str());
    }
    return address;
  }
  if (options.world_size.value_or(1) == 1)
    return asio::ip::address(asio::ip::address_v4::loopback());
  const auto where = parse_host_port(options.rendezvous);
  if (!where.ok()) return where.status();
  asio::io_context io;
  const auto resolved = resolve(io, *where);
  if (!resolved.ok()) return resolved.status();
  const auto& rendezvous = resolved->endpoints.front();
  return transport::local_address_towards({rendezvous.address(), rendezvous.port()});
}

Result<TransportChoice> TransportChoice::open(const Options& options) {
  const auto address = data_address(options);
  if (!address.ok()) return address.status();
  auto udp = open_udp(options, *address);
  if (!udp.ok()) return udp.status();
  TransportChoice choice;
  choice.udp_ = std::move(*udp);
  for (const auto& [kind, open_it] : kOpeners) {
    if (!is_candidate(kind, options)) continue;
    auto opened = open_it(options, *address);
    Candidate candidate{kind, nullptr, opened.ok() ? Status() : opened.status()};
    if (opened.ok()) candidate.opened = std::move(*opened);
    choice.candidates_.push_back(std::move(candidate));
  }
  return choice;
}

LocalConfiguration local_configuration(const Options& options) {
  LocalConfiguration local;
  local.rank = static_cast<Rank>(options.rank.value_or(0));
  local.size = options.world_size.value_or(1);
  local.rendezvous = options.rendezvous;
  local.name = options.communicator_name;
  local.window_bytes = static_cast<std::uint32_t>(options.window_bytes);
  local.seed = options.seed;
  local.transport = options.transport;
  local.multicast = options.multicast;
  local.join_timeout = options.join_timeout;
  return local;
}

LocalConfiguration TransportChoice::local_configuration(const Options& options) const {
  const Lane::Member place = udp_->place();
  LocalConfiguration local = rendezvous::local_configuration(options);
  local.datagram_bytes = static_cast<std::uint32_t>(udp_->limits().datagram_bytes_max);
  local.receive_buffer_bytes = place.receive_buffer_bytes;
  local.data_address = place.address;
  local.data_port = place.port;
  for (const Candidate& candidate : candidates_) local.offers.push_back(offer_of(candidate));
  return local;
}

Result<std::unique_ptr<OpenedTransport>> TransportChoice::connect(const Lane& lane, Rank self) {
  const auto found =
      std::find_if(candidates_.begin(), candidates_.end(),
                   [&](const Candidate& candidate) { return candidate.kind == lane.kind; });
  auto& opened = found == candidates_.end() ? udp_ : found->opened;
  if (opened == nullptr)
    return Status::error(StatusCode::kInternal,
                         "create: rank 0 chose a transport that is not here");
  if (Status status = opened->connect(lane, self); !status.ok()) return status;
  return std::move(opened);
}

}  // namespace leeway::rendezvous
