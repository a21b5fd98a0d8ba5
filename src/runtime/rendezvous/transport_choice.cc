#include "rendezvous/transport_choice.h"

#include <algorithm>

#include "rendezvous/control_message.h"
#include "rendezvous/printable.h"

namespace leeway::rendezvous {
namespace {

// 10,000 ports that neither systems choose by themselves (32768 and up on Linux) nor well-known
// services use.
constexpr std::uint32_t kMulticastPortFirst = 20'000;
constexpr std::uint32_t kMulticastPorts = 10'000;

std::string name_of(TransportKind kind) {
  return std::string(to_string(kind));
}

const TransportOffer* find_offer(const std::vector<TransportOffer>& offers, TransportKind kind) {
  const auto found = std::find_if(offers.begin(), offers.end(),
                                  [kind](const TransportOffer& one) { return one.kind == kind; });
  return found == offers.end() ? nullptr : &*found;
}

Status cannot_use(std::size_t rank, TransportKind kind, const TransportOffer* offer) {
  const bool explained = offer != nullptr && !offer->obstacle.empty();
  return Status::error(StatusCode::kUnsupported, "rank %zu cannot use %s: %s", rank,
                       name_of(kind).c_str(),
                       explained ? offer->obstacle.c_str() : "it does not say why");
}

// Returns the group's transport of this kind, if every rank has it.
Result<GroupTransport> transport_over(TransportKind kind,
                                      const std::vector<std::vector<TransportOffer>>& offers) {
  GroupTransport transport{kind, static_cast<std::uint32_t>(limits::kDatagramBytesMax), {}};
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const TransportOffer* const offer = find_offer(offers[rank], kind);
    if (offer == nullptr || offer->address.empty()) return cannot_use(rank, kind, offer);
    transport.datagram_bytes = std::min(transport.datagram_bytes, offer->datagram_bytes);
    transport.members.push_back({offer->address, 0, offer->receive_buffer_bytes});
  }
  return transport;
}

}  // namespace

// WIRE 7.4
Status check_wishes(const control::Hello& hello, const LocalConfiguration& root) {
  const control::Configuration& theirs = hello.configuration();
  const auto wanted = static_cast<TransportKind>(theirs.transport());
  if (wanted != root.transport) {
    return Status::error(
        StatusCode::kMismatch,
        "rank %u asks for transport %s, rank 0 for %s; LEEWAY_TRANSPORT must be equal on all ranks",
        hello.rank(), name_of(wanted).c_str(), name_of(root.transport).c_str());
  }
  if (theirs.multicast() != root.multicast) {
    const auto text = [](bool on) { return on ? "on" : "off"; };
    return Status::error(
        StatusCode::kMismatch,
        "rank %u has multicast %s, rank 0 %s; LEEWAY_MULTICAST must be equal on all ranks",
        hello.rank(), text(theirs.multicast()), text(root.multicast));
  }
  return {};
}

// WIRE 7.10
Result<GroupTransport> choose_transport(TransportKind wanted, const GroupTransport& udp,
                                        const std::vector<std::vector<TransportOffer>>& offers) {
  if (is_over_udp(wanted)) return udp;
  if (wanted != TransportKind::automatic) return transport_over(wanted, offers);
  auto verbs = transport_over(TransportKind::verbs, offers);
  return verbs.ok() ? std::move(verbs) : Result<GroupTransport>(udp);
}

// WIRE 7.12
Group::Multicast multicast_of(std::uint32_t epoch, bool v4) {
  const auto byte = [epoch](int shift) { return static_cast<std::byte>(epoch >> shift); };
  Group::Multicast group;
  group.port = static_cast<std::uint16_t>(kMulticastPortFirst + (epoch >> 16) % kMulticastPorts);
  if (v4) {
    group.address = {std::byte{239}, std::byte{192}, byte(8), byte(0)};
    return group;
  }
  group.address = std::vector<std::byte>(16);
  group.address[0] = std::byte{0xFF};
  group.address[1] = std::byte{0x05};
  for (int i = 0; i < 4; ++i) group.address[15 - i] = byte(8 * i);
  return group;
}

void put_offers(const std::vector<TransportOffer>& offers, control::Hello& hello) {
  for (const TransportOffer& offer : offers) {
    control::TransportOffer& row = *hello.add_offers();
    row.set_kind(static_cast<std::uint32_t>(offer.kind));
    row.set_address(offer.address.data(), offer.address.size());
    row.set_datagram_bytes(offer.datagram_bytes);
    row.set_receive_buffer_bytes(offer.receive_buffer_bytes);
    row.set_obstacle(offer.obstacle);
  }
}

std::vector<TransportOffer> offers_of(const control::Hello& hello) {
  std::vector<TransportOffer> offers;
  for (const control::TransportOffer& row : hello.offers()) {
    const ByteSpan address = std::as_bytes(std::span(row.address()));
    offers.push_back({static_cast<TransportKind>(row.kind()),
                      {address.begin(), address.end()},
                      row.datagram_bytes(),
                      row.receive_buffer_bytes(),
                      printable(row.obstacle(), Status::kTextMax)});
  }
  return offers;
}

}  // namespace leeway::rendezvous
