#include "rendezvous/control_message.h"

#include <algorithm>
#include <asio/read.hpp>
#include <cassert>
#include <utility>

#include "leeway/options.h"
#include "rendezvous/printable.h"
#include "wire/packet.h"

namespace leeway::rendezvous {
namespace {

std::uint32_t load_big_endian(const std::array<unsigned char, kLengthPrefixBytes>& bytes) {
  std::uint32_t value = 0;
  for (const unsigned char byte : bytes) value = value << 8 | byte;
  return value;
}

bool is_address(const std::string& bytes) {
  return bytes.size() == 4 || bytes.size() == 16;
}
bool is_port(std::uint32_t port) {
  return port >= 1 && port <= 65535;
}

bool is_datagram_size(std::uint32_t bytes) {
  return bytes >= limits::kDatagramBytesMin && bytes <= limits::kDatagramBytesMax;
}
bool is_kind(std::uint32_t kind) {
  return kind <= static_cast<std::uint32_t>(TransportKind::custom);
}
// Of a transport that has addresses of its own.
bool is_offered_kind(std::uint32_t kind) {
  return kind == static_cast<std::uint32_t>(TransportKind::verbs) ||
         kind == static_cast<std::uint32_t>(TransportKind::ucx) ||
         kind == static_cast<std::uint32_t>(TransportKind::custom);
}

// WIRE 7.9. An offer without an address cannot be used, and its numbers mean nothing.
bool is_usable(const control::TransportOffer& offer) {
  return is_offered_kind(offer.kind()) &&
         offer.address().size() <= limits::kTransportAddressBytesMax &&
         (offer.address().empty() || is_datagram_size(offer.datagram_bytes()));
}

// WIRE 7.11
bool is_usable(const control::Member& member, bool udp) {
  if (udp) return is_address(member.address()) && is_port(member.port());
  return !member.address().empty() && member.address().size() <= limits::kTransportAddressBytesMax;
}

bool is_usable(const control::Lane& lane, int size) {
  const bool udp = lane.transport() == static_cast<std::uint32_t>(TransportKind::udp);
  if (!udp && !is_offered_kind(lane.transport())) return false;
  return lane.members_size() == size && is_datagram_size(lane.datagram_bytes()) &&
         std::all_of(lane.members().begin(), lane.members().end(),
                     [udp](const control::Member& member) { return is_usable(member, udp); });
}

bool is_multicast(const control::Endpoint& group) {
  if (!is_address(group.address()) || !is_port(group.port())) return false;
  const auto first = static_cast<unsigned char>(group.address()[0]);
  return group.address().size() == 4 ? first >> 4 == 0xE : first == 0xFF;
}

bool is_usable(const control::Group& group, int size) {
  return group.epoch() != 0 && is_usable(group.datagrams(), size) &&
         (!group.has_exact() || is_usable(group.exact(), size)) &&
         (!group.has_multicast() || is_multicast(group.multicast()));
}

}  // namespace

std::string frame_of(const google::protobuf::MessageLite& message) {
  const std::string body = message.SerializeAsString();
  assert(body.size() <= limits::kWelcomeBytesMax);
  std::string frame;
  frame.reserve(kLengthPrefixBytes + body.size());
  for (int shift = 24; shift >= 0; shift -= 8)
    frame.push_back(static_cast<char>(body.size() >> shift));
  return frame + body;
}

void async_read_frame(asio::ip::tcp::socket& socket, IncomingFrame& frame, std::size_t bytes_max,
                      const std::function<void(FrameOutcome)>& done) {
  const auto on_body = [done](std::error_code error, std::size_t) {
    done(error ? FrameOutcome::closed : FrameOutcome::complete);
  };
  asio::async_read(socket, asio::buffer(frame.prefix),
                   [&, bytes_max, done, on_body](std::error_code error, std::size_t) {
                     if (error) return done(FrameOutcome::closed);
                     const std::uint32_t bytes = load_big_endian(frame.prefix);
                     if (bytes > bytes_max) return done(FrameOutcome::oversized);
                     frame.body.resize(bytes);
                     asio::async_read(socket, asio::buffer(frame.body), on_body);
                   });
}

std::optional<control::Hello> parse_hello(const std::string& body) {
  control::Hello hello;
  if (!hello.ParseFromString(body) || hello.magic() != kControlMagic) return std::nullopt;
  if (hello.protocol_version() != wire::kVersion) return hello;
  const std::string& address = hello.data().address();
  if (!address.empty() && !is_address(address)) return std::nullopt;
  const std::uint32_t kind = hello.configuration().transport();
  if (!is_kind(kind)) return std::nullopt;
  const bool has_udp = kind != static_cast<std::uint32_t>(TransportKind::custom);
  if (has_udp ? !is_port(hello.data().port()) : hello.data().port() != 0) return std::nullopt;
  if (hello.offers_size() > limits::kTransportOffersMax) return std::nullopt;
  const auto usable = [](const control::TransportOffer& offer) { return is_usable(offer); };
  if (!std::all_of(hello.offers().begin(), hello.offers().end(), usable)) return std::nullopt;
  return hello;
}

std::optional<control::Welcome> parse_welcome(const std::string& body, int size) {
  control::Welcome welcome;
  if (!welcome.ParseFromString(body) || welcome.magic() != kControlMagic) return std::nullopt;
  if (welcome.has_rejected()) return welcome;
  if (!welcome.has_group() || !is_usable(welcome.group(), size)) return std::nullopt;
  return welcome;
}

control::Welcome rejection_of(const Status& reason) {
  control::Welcome welcome;
  welcome.set_magic(kControlMagic);
  welcome.mutable_rejected()->set_code(static_cast<std::uint32_t>(reason.code()));
  welcome.mutable_rejected()->set_text(reason.c_str());
  return welcome;
}

Status status_of(const control::Rejection& rejection) {
  const auto last = static_cast<std::uint32_t>(StatusCode::kInternal);
  const bool known = rejection.code() != 0 && rejection.code() <= last;
  const auto code = known ? static_cast<StatusCode>(rejection.code()) : StatusCode::kMismatch;
  return Status::error(code, "%s", printable(rejection.text(), Status::kTextMax).c_str());
}

}  // namespace leeway::rendezvous
