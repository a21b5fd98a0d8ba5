#include "rendezvous/control_message.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "keys/joined_keys.h"
#include "leeway/options.h"
#include "rendezvous/group.h"
#include "rendezvous/printable.h"
#include "wire/packet.h"

namespace leeway::rendezvous {
namespace {

template <typename Message>
bool parse(ByteSpan value, std::size_t bytes_max, Message& message) {
  return value.size() <= bytes_max &&
         message.ParseFromArray(value.data(), static_cast<int>(value.size())) &&
         message.magic() == kControlMagic;
}

// Encodes `proof` as field 17 of a message, of type bytes. Its length fits into a varint of two
// bytes.
std::vector<std::byte> encoded_proof(ByteSpan proof) {
  std::vector<std::byte> field = {std::byte{0x8A}, std::byte{0x01}};
  if (proof.size() > 0x7F) field.push_back(static_cast<std::byte>((proof.size() & 0x7F) | 0x80));
  field.push_back(static_cast<std::byte>(proof.size() > 0x7F ? proof.size() >> 7 : proof.size()));
  field.insert(field.end(), proof.begin(), proof.end());
  return field;
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
  return kind <= static_cast<std::uint32_t>(TransportKind::mixed);
}
// Returns true for transports that need a TransportOffer, because their addresses are not UDP's.
bool is_offered_kind(std::uint32_t kind) {
  return kind == static_cast<std::uint32_t>(TransportKind::verbs) ||
         kind == static_cast<std::uint32_t>(TransportKind::ucx) ||
         kind == static_cast<std::uint32_t>(TransportKind::custom);
}

// WIRE 7.9. An offer without an address is of an unusable transport, so only its kind is checked.
bool is_usable(const control::TransportOffer& offer) {
  return is_offered_kind(offer.kind()) &&
         offer.address().size() <= limits::kTransportAddressBytesMax &&
         (offer.address().empty() || is_datagram_size(offer.datagram_bytes()));
}

// Checks a rank's row in the table (WIRE 7.11).
bool is_usable(const control::Member& member, bool udp) {
  if (udp) return is_address(member.address()) && is_port(member.port());
  return !member.address().empty() && member.address().size() <= limits::kTransportAddressBytesMax;
}

bool is_usable(const control::GroupTransport& transport, int size) {
  const bool udp = transport.transport() == static_cast<std::uint32_t>(TransportKind::udp);
  if (!udp && !is_offered_kind(transport.transport())) return false;
  return transport.members_size() == size && is_datagram_size(transport.datagram_bytes()) &&
         std::all_of(transport.members().begin(), transport.members().end(),
                     [udp](const control::Member& member) { return is_usable(member, udp); });
}

bool is_multicast(const control::Endpoint& group) {
  if (!is_address(group.address()) || !is_port(group.port())) return false;
  const auto first = static_cast<unsigned char>(group.address()[0]);
  return group.address().size() == 4 ? first >> 4 == 0xE : first == 0xFF;
}

// Checks a rank's identity (WIRE 7.15).
bool is_usable(const control::Identity& identity) {
  return identity.public_key().size() == sizeof(keys::Key) && identity.secrets_size() >= 1 &&
         identity.secrets_size() <= static_cast<int>(keys::kSecretsMax);
}

// Checks a rank's memory place (WIRE 7.17).
bool is_usable(const control::Memory& memory) {
  constexpr std::size_t kBytes = sizeof(MemoryPlace::token);
  if (memory.token().empty()) return memory.boot().empty();
  return memory.token().size() == kBytes && memory.boot().size() == kBytes;
}

// Returns true if all members have a usable memory place, or none has any.
bool has_usable_memories(const control::Group& group, int size) {
  return group.memories().empty() ||
         (group.memories_size() == size &&
          std::all_of(group.memories().begin(), group.memories().end(),
                      [](const control::Memory& memory) { return is_usable(memory); }));
}

// Returns true if all members have a usable identity, or none has any.
bool has_usable_identities(const control::Group& group, int size) {
  if (group.identities().empty()) return group.nonce().empty();
  return group.nonce().size() == sizeof(keys::Key) && group.identities_size() == size &&
         std::all_of(group.identities().begin(), group.identities().end(),
                     [](const control::Identity& identity) { return is_usable(identity); });
}

bool is_usable(const control::Group& group, int size) {
  return group.epoch() != 0 && is_usable(group.datagrams(), size) &&
         (!group.has_multicast() || is_multicast(group.multicast())) &&
         group.attempts_size() == size && group.processes_size() == size &&
         has_usable_identities(group, size) && has_usable_memories(group, size) &&
         (group.sites().empty() || group.sites_size() == size);
}

}  // namespace

std::vector<std::byte> value_of(const google::protobuf::MessageLite& message) {
  std::vector<std::byte> value(message.ByteSizeLong());
  assert(value.size() <= limits::kWelcomeBytesMax);
  message.SerializeToArray(value.data(), static_cast<int>(value.size()));
  return value;
}

std::vector<std::byte> with_proof(std::vector<std::byte> value, ByteSpan proof) {
  const std::vector<std::byte> field = encoded_proof(proof);
  value.insert(value.end(), field.begin(), field.end());
  return value;
}

std::optional<ByteSpan> covered_bytes(ByteSpan value, const std::string& proof) {
  if (proof.empty() || proof.size() > keys::kSecretsMax * sizeof(keys::Key)) return std::nullopt;
  const std::vector<std::byte> field = encoded_proof(std::as_bytes(std::span(proof)));
  if (value.size() < field.size()) return std::nullopt;
  const ByteSpan covered = value.first(value.size() - field.size());
  const bool is_last = std::equal(field.begin(), field.end(), value.last(field.size()).begin());
  return is_last ? std::optional(covered) : std::nullopt;
}

std::optional<control::Invitation> parse_invitation(ByteSpan value) {
  control::Invitation invitation;
  if (!parse(value, limits::kHelloBytesMax, invitation) || invitation.meeting() == 0)
    return std::nullopt;
  return invitation;
}

// WIRE 7.2
std::optional<control::Hello> parse_hello(ByteSpan value) {
  control::Hello hello;
  if (!parse(value, limits::kHelloBytesMax, hello)) return std::nullopt;
  if (hello.protocol_version() != wire::kVersion) return hello;
  const std::uint32_t kind = hello.configuration().transport();
  if (!is_kind(kind)) return std::nullopt;
  const bool has_udp = kind != static_cast<std::uint32_t>(TransportKind::custom);
  if (has_udp ? !is_port(hello.data().port()) : hello.data().port() != 0) return std::nullopt;
  const std::string& address = hello.data().address();
  if (has_udp || !address.empty()) {
    if (!is_address(address)) return std::nullopt;
  }
  const std::string& reached = hello.data().reached();
  if (!reached.empty() && !is_address(reached)) return std::nullopt;
  if (hello.attempt() == 0) return std::nullopt;
  if (hello.has_identity() && !is_usable(hello.identity())) return std::nullopt;
  if (hello.has_memory() && !is_usable(hello.memory())) return std::nullopt;
  if (hello.offers_size() > limits::kTransportOffersMax) return std::nullopt;
  const auto usable = [](const control::TransportOffer& offer) { return is_usable(offer); };
  if (!std::all_of(hello.offers().begin(), hello.offers().end(), usable)) return std::nullopt;
  return hello;
}

std::optional<control::Welcome> parse_welcome(ByteSpan value, int size) {
  control::Welcome welcome;
  if (!parse(value, limits::kWelcomeBytesMax, welcome)) return std::nullopt;
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
