#include "rendezvous/agreement.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>

#include "keys/table_proof.h"
#include "leeway/version.h"
#include "rendezvous/address.h"
#include "rendezvous/control_message.h"
#include "rendezvous/printable.h"
#include "rendezvous/transport_choice.h"
#include "wire/packet.h"

namespace leeway::rendezvous {
namespace {

using namespace std::chrono_literals;

ByteSpan bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(const std::string& place) {
  return printable(place, 60);
}

// The error of two ranks with different protocol versions. The text names both.
Status versions_differ(std::uint32_t rank, const std::string& place, std::uint32_t version,
                       const std::string& library, std::uint32_t root_version,
                       const std::string& root_library) {
  return Status::error(StatusCode::kMismatch,
                       "rank %u at %s speaks protocol version %u (Leeway %s), rank 0 version %u "
                       "(Leeway %s); install the same Leeway everywhere",
                       rank, text_of(place).c_str(), version, printable(library, 16).c_str(),
                       root_version, printable(root_library, 16).c_str());
}

Status sizes_differ(std::uint32_t rank, const std::string& place, std::uint32_t size,
                    std::uint32_t root_size) {
  return Status::error(StatusCode::kMismatch, "rank %u at %s expects %u ranks, rank 0 expects %u",
                       rank, text_of(place).c_str(), size, root_size);
}

void put_identity(const keys::Identity& identity, control::Identity& message) {
  message.set_public_key(identity.public_key.data(), identity.public_key.size());
  message.set_tag(identity.tag);
  message.mutable_secrets()->Add(identity.secrets.begin(), identity.secrets.end());
}

void put_memory(const MemoryPlace& memory, control::Memory& message) {
  if (!memory.shares()) return;
  message.set_boot(memory.boot.data(), memory.boot.size());
  message.set_user(memory.user);
  message.set_token(memory.token.data(), memory.token.size());
}

// `message` must have passed parse_hello() or parse_welcome().
MemoryPlace memory_of(const control::Memory& message) {
  MemoryPlace memory;
  if (message.token().empty()) return memory;
  std::memcpy(memory.boot.data(), message.boot().data(), memory.boot.size());
  memory.user = message.user();
  std::memcpy(memory.token.data(), message.token().data(), memory.token.size());
  return memory;
}

// `bytes` must be as long as a key; the parsers of messages check this.
keys::Key key_of(const std::string& bytes) {
  keys::Key key;
  std::memcpy(key.data(), bytes.data(), key.size());
  return key;
}

keys::Identity identity_of(const control::Identity& message) {
  return {key_of(message.public_key()),
          message.tag(),
          {message.secrets().begin(), message.secrets().end()}};
}

Status secrets_differ(std::uint32_t rank, const std::string& place) {
  return Status::error(StatusCode::kMismatch,
                       "rank %u at %s and rank 0 share no secret; LEEWAY_SECRET_FILE must hold one "
                       "that all ranks have",
                       rank, text_of(place).c_str());
}

Status check_identity(const control::Hello& hello, const LocalConfiguration& root) {
  if (hello.has_identity() != (root.identity != nullptr)) {
    return Status::error(StatusCode::kMismatch,
                         "%s has a secret (LEEWAY_SECRET_FILE) and %s none; all ranks need the "
                         "same, or none may have one",
                         root.identity != nullptr ? "rank 0" : "a rank",
                         root.identity != nullptr ? "another rank" : "rank 0");
  }
  if (!hello.has_identity()) return {};
  const keys::Identity theirs = identity_of(hello.identity());
  if (keys::shared_secret(root.identity->told.secrets, theirs.secrets) != 0) return {};
  return secrets_differ(hello.rank(), hello.place());
}

// WIRE 7.15. Fails unless all ranks know the same secret of rank 0.
Status check_secrets(const std::vector<keys::Identity>& members) {
  const auto everyone_has = [&](std::uint64_t id) {
    return std::all_of(members.begin(), members.end(), [id](const keys::Identity& member) {
      return std::find(member.secrets.begin(), member.secrets.end(), id) != member.secrets.end();
    });
  };
  const std::vector<std::uint64_t>& own = members.front().secrets;
  if (std::any_of(own.begin(), own.end(), everyone_has)) return {};
  return Status::error(StatusCode::kMismatch,
                       "each rank shares a secret with rank 0, but no secret is known to all; "
                       "LEEWAY_SECRET_FILE must hold one that all ranks have");
}

Status check_configuration(const control::Hello& hello, const LocalConfiguration& root) {
  const control::Configuration& theirs = hello.configuration();
  if (theirs.communicator_name() != root.name) {
    return Status::error(
        StatusCode::kMismatch,
        "rank %u joins communicator \"%s\", rank 0 communicator \"%s\"; names must be equal",
        hello.rank(), printable(theirs.communicator_name()).c_str(), printable(root.name).c_str());
  }
  if (theirs.window_bytes() != root.window_bytes) {
    return Status::error(
        StatusCode::kMismatch,
        "rank %u has a window of %u bytes, rank 0 of %u; LEEWAY_WINDOW_BYTES must be equal on all "
        "ranks",
        hello.rank(), theirs.window_bytes(), root.window_bytes);
  }
  const std::uint32_t lanes = std::max(theirs.lanes(), 1u);
  if (lanes != static_cast<std::uint32_t>(root.lanes)) {
    return Status::error(StatusCode::kMismatch,
                         "rank %u has LEEWAY_LANES=%u, rank 0 %d; it must be equal on all ranks",
                         hello.rank(), lanes, root.lanes);
  }
  const std::uint32_t datagram = theirs.datagram_bytes();
  if (datagram < limits::kDatagramBytesMin || datagram > limits::kDatagramBytesMax) {
    return Status::error(
        StatusCode::kMismatch, "rank %u offers datagrams of %u bytes; %zu to %zu are possible",
        hello.rank(), datagram, limits::kDatagramBytesMin, limits::kDatagramBytesMax);
  }
  if (Status status = check_identity(hello, root); !status.ok()) return status;
  return check_wishes(hello, root);
}

void put_transport(const GroupTransport& transport, control::GroupTransport& message) {
  message.set_transport(static_cast<std::uint32_t>(transport.kind));
  message.set_datagram_bytes(transport.datagram_bytes);
  for (const GroupTransport::Member& member : transport.members) {
    control::Member& row = *message.add_members();
    row.set_address(member.address.data(), member.address.size());
    row.set_port(member.port);
    row.set_receive_buffer_bytes(member.receive_buffer_bytes);
  }
}

GroupTransport transport_of(const control::GroupTransport& message) {
  GroupTransport transport{
      static_cast<TransportKind>(message.transport()), message.datagram_bytes(), {}};
  for (const control::Member& row : message.members()) {
    const ByteSpan address = bytes_of(row.address());
    transport.members.push_back({{address.begin(), address.end()},
                                 static_cast<std::uint16_t>(row.port()),
                                 row.receive_buffer_bytes()});
  }
  return transport;
}

// Fails unless `proof` shows that a holder of the secret put `value` at `key`.
Status check_proof(const LocalConfiguration& local, const std::vector<std::uint64_t>& theirs,
                   ByteSpan value, const std::string& proof, const std::string& key, Rank writer) {
  const auto covered = covered_bytes(value, proof);
  const keys::Secrets& own = *local.identity->secrets;
  if (covered && keys::is_proved(own, theirs, key, *covered, bytes_of(proof))) return Status();
  return Status::error(
      StatusCode::kMismatch,
      "what stands at \"%.100s\" as rank %u's was not written by a holder of the "
      "secret (LEEWAY_SECRET_FILE), or was changed since; who else can write there?",
      key.c_str(), unsigned{writer});
}

}  // namespace

std::string this_place() {
  std::array<char, 65> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host[0] = '?';
  return std::string(host.data()) + ", process " + std::to_string(::getpid());
}

control::Invitation invitation_of(const LocalConfiguration& root, std::uint64_t meeting) {
  control::Invitation invitation;
  invitation.set_magic(kControlMagic);
  invitation.set_protocol_version(wire::kVersion);
  invitation.set_library_version(LEEWAY_VERSION_STRING);
  invitation.set_meeting(meeting);
  invitation.set_world_size(static_cast<std::uint32_t>(root.size));
  invitation.set_place(this_place());
  return invitation;
}

control::Hello hello_of(const LocalConfiguration& local, std::uint64_t attempt, Duration patience,
                        Duration round_trip) {
  control::Hello hello;
  hello.set_magic(kControlMagic);
  hello.set_protocol_version(wire::kVersion);
  hello.set_library_version(LEEWAY_VERSION_STRING);
  hello.set_rank(local.rank);
  hello.set_world_size(static_cast<std::uint32_t>(local.size));
  control::Configuration& configuration = *hello.mutable_configuration();
  configuration.set_communicator_name(local.name);
  configuration.set_datagram_bytes(local.datagram_bytes);
  configuration.set_receive_buffer_bytes(local.receive_buffer_bytes);
  configuration.set_window_bytes(local.window_bytes);
  configuration.set_seed(local.seed);
  configuration.set_transport(static_cast<std::uint32_t>(local.transport));
  configuration.set_multicast(local.multicast);
  if (local.lanes > 1) configuration.set_lanes(static_cast<std::uint32_t>(local.lanes));
  put_offers(local.offers, hello);
  hello.mutable_data()->set_address(local.data_address.data(), local.data_address.size());
  hello.mutable_data()->set_port(local.data_port);
  hello.mutable_data()->set_fixed(!local.may_move);
  const auto patience_ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  hello.set_patience_ms(
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(patience_ms, 0, UINT32_MAX)));
  hello.set_attempt(attempt);
  hello.set_process(local.process);
  hello.set_place(this_place());
  const auto round_trip_us = std::chrono::ceil<std::chrono::microseconds>(round_trip).count();
  hello.set_round_trip_us(
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(round_trip_us, 0, UINT32_MAX)));
  if (local.identity != nullptr) put_identity(local.identity->told, *hello.mutable_identity());
  hello.set_site(local.site);
  if (local.memory.shares()) put_memory(local.memory, *hello.mutable_memory());
  return hello;
}

Status check_invitation(const control::Invitation& invitation, const LocalConfiguration& local) {
  const auto size = static_cast<std::uint32_t>(local.size);
  if (invitation.protocol_version() != wire::kVersion) {
    return versions_differ(local.rank, this_place(), wire::kVersion, LEEWAY_VERSION_STRING,
                           invitation.protocol_version(), invitation.library_version());
  }
  if (invitation.world_size() != size)
    return sizes_differ(local.rank, this_place(), size, invitation.world_size());
  return {};
}

Status check_hello(const control::Hello& hello, const LocalConfiguration& root, Rank rank) {
  if (hello.protocol_version() != wire::kVersion) {
    return versions_differ(hello.rank(), hello.place(), hello.protocol_version(),
                           hello.library_version(), wire::kVersion, LEEWAY_VERSION_STRING);
  }
  const auto size = static_cast<std::uint32_t>(root.size);
  if (hello.world_size() != size)
    return sizes_differ(hello.rank(), hello.place(), hello.world_size(), size);
  if (hello.rank() != rank) {
    return Status::error(StatusCode::kMismatch,
                         "the process at %s says it is rank %u where rank %u is awaited",
                         text_of(hello.place()).c_str(), hello.rank(), unsigned{rank});
  }
  return check_configuration(hello, root);
}

Status claimed_twice(std::uint32_t rank, const std::string& one_place,
                     const std::string& other_place) {
  return Status::error(StatusCode::kMismatch,
                       "two processes claim rank %u: the one at %s and the one at %s; is one left "
                       "from an earlier start? End it: a LEEWAY_RUN_ID for each start keeps them "
                       "apart",
                       rank, text_of(one_place).c_str(), text_of(other_place).c_str());
}

Result<Group> make_group(const LocalConfiguration& root, std::span<const control::Hello> others,
                         std::uint32_t epoch) {
  // With a transport of the caller's own a rank has no IP address, so loopback stands in for it.
  const auto address_of = [](ByteSpan bytes) {
    return plain_address(bytes).value_or(asio::ip::address_v4::loopback());
  };
  const asio::ip::address first = address_of(root.data_address);
  GroupTransport udp{TransportKind::udp,
                     root.datagram_bytes,
                     {{to_bytes(first), root.data_port, root.receive_buffer_bytes}}};
  std::vector<std::vector<TransportOffer>> offers = {root.offers};
  std::vector<std::uint64_t> attempts = {0};
  std::vector<std::uint64_t> processes = {root.process};
  std::vector<MemoryPlace> memories = {root.memory};
  std::vector<std::uint64_t> sites = {root.site};
  std::uint32_t round_trip_us = 0;
  std::vector<keys::Identity> identities;
  if (root.identity != nullptr) identities.push_back(root.identity->told);
  for (const control::Hello& hello : others) {
    const asio::ip::address address = address_of(bytes_of(hello.data().address()));
    if (address.is_v4() != first.is_v4()) {
      return Status::error(StatusCode::kMismatch,
                           "rank %u has data address %s, rank 0 has %s: one is IPv4, the other "
                           "IPv6; set LEEWAY_BIND or "
                           "LEEWAY_RENDEZVOUS so that all use one family",
                           hello.rank(), address.to_string().c_str(), first.to_string().c_str());
    }
    udp.datagram_bytes = std::min(udp.datagram_bytes, hello.configuration().datagram_bytes());
    udp.members.push_back({to_bytes(address), static_cast<std::uint16_t>(hello.data().port()),
                           hello.configuration().receive_buffer_bytes()});
    offers.push_back(offers_of(hello));
    attempts.push_back(hello.attempt());
    processes.push_back(hello.process());
    memories.push_back(memory_of(hello.memory()));
    sites.push_back(hello.site());
    round_trip_us = std::max(round_trip_us, hello.round_trip_us());
    if (root.identity != nullptr) identities.push_back(identity_of(hello.identity()));
  }
  if (root.identity != nullptr) {
    if (Status status = keys::check_distinct(identities); !status.ok()) return status;
    if (Status status = check_secrets(identities); !status.ok()) return status;
  }
  auto transport = choose_transport(root.transport, udp, offers);
  if (!transport.ok()) return transport.status();
  Group group;
  group.epoch = epoch;
  group.seed = root.seed;
  group.datagrams = std::move(*transport);
  group.attempts = std::move(attempts);
  group.processes = std::move(processes);
  const bool any_shares = std::any_of(memories.begin(), memories.end(),
                                      [](const MemoryPlace& memory) { return memory.shares(); });
  if (group.datagrams.kind == TransportKind::udp && any_shares)
    group.memories = std::move(memories);
  if (std::any_of(sites.begin(), sites.end(), [](std::uint64_t site) { return site != 0; }))
    group.sites = std::move(sites);
  group.round_trip = std::chrono::microseconds(round_trip_us);
  if (root.multicast && !others.empty()) group.multicast = multicast_of(epoch, first.is_v4());
  if (root.identity != nullptr) {
    group.identities.emplace();
    keys::fill_randomly(group.identities->nonce);
    group.identities->members = std::move(identities);
  }
  return group;
}

control::Welcome welcome_of(const Group& group) {
  control::Welcome welcome;
  welcome.set_magic(kControlMagic);
  control::Group& message = *welcome.mutable_group();
  message.set_epoch(group.epoch);
  message.set_seed(group.seed);
  put_transport(group.datagrams, *message.mutable_datagrams());
  if (group.multicast) {
    const std::vector<std::byte>& address = group.multicast->address;
    message.mutable_multicast()->set_address(address.data(), address.size());
    message.mutable_multicast()->set_port(group.multicast->port);
  }
  message.mutable_attempts()->Add(group.attempts.begin(), group.attempts.end());
  message.mutable_processes()->Add(group.processes.begin(), group.processes.end());
  message.set_round_trip_us(static_cast<std::uint32_t>(group.round_trip / 1us));
  for (const MemoryPlace& memory : group.memories) put_memory(memory, *message.add_memories());
  message.mutable_sites()->Add(group.sites.begin(), group.sites.end());
  if (group.identities) {
    const keys::Key& nonce = group.identities->nonce;
    message.set_nonce(nonce.data(), nonce.size());
    for (const keys::Identity& one : group.identities->members)
      put_identity(one, *message.add_identities());
  }
  return welcome;
}

Group group_of(const control::Group& message) {
  Group group;
  group.epoch = message.epoch();
  group.seed = message.seed();
  group.datagrams = transport_of(message.datagrams());
  group.attempts = {message.attempts().begin(), message.attempts().end()};
  group.processes = {message.processes().begin(), message.processes().end()};
  group.round_trip = std::chrono::microseconds(message.round_trip_us());
  for (const control::Memory& memory : message.memories())
    group.memories.push_back(memory_of(memory));
  group.sites = {message.sites().begin(), message.sites().end()};
  if (message.has_multicast()) {
    const ByteSpan address = bytes_of(message.multicast().address());
    group.multicast = {{address.begin(), address.end()},
                       static_cast<std::uint16_t>(message.multicast().port())};
  }
  if (!message.identities().empty()) {
    group.identities.emplace();
    group.identities->nonce = key_of(message.nonce());
    for (const control::Identity& one : message.identities())
      group.identities->members.push_back(identity_of(one));
  }
  return group;
}

std::vector<std::byte> proved_value(const google::protobuf::MessageLite& message,
                                    const LocalConfiguration& local, const std::string& key) {
  std::vector<std::byte> value = value_of(message);
  if (local.identity == nullptr) return value;
  const auto proof = keys::prove(*local.identity->secrets, key, value);
  return with_proof(std::move(value), proof);
}

Result<control::Hello> take_hello(ByteSpan value, const std::string& key,
                                  const LocalConfiguration& root, Rank rank) {
  auto hello = parse_hello(value);
  if (!hello) {
    return Status::error(StatusCode::kMismatch,
                         "what rank %u put at \"%.100s\" is not a Hello of this version of Leeway",
                         unsigned{rank}, key.c_str());
  }
  if (Status status = check_hello(*hello, root, rank); !status.ok()) return status;
  if (root.identity != nullptr) {
    const std::vector<std::uint64_t> theirs = identity_of(hello->identity()).secrets;
    if (Status status = check_proof(root, theirs, value, hello->proof(), key, rank); !status.ok())
      return status;
  }
  return std::move(*hello);
}

Result<Group> take_group(const control::Welcome& welcome, ByteSpan value, const std::string& key,
                         const LocalConfiguration& local) {
  Group group = group_of(welcome.group());
  if (local.identity == nullptr || !group.identities) return group;
  const std::vector<std::uint64_t>& theirs = group.identities->members.front().secrets;
  if (Status status = check_proof(local, theirs, value, welcome.proof(), key, 0); !status.ok())
    return status;
  bind_to_table(group, value, key);
  return group;
}

// Mixes the table into the keys. The table contains a random nonce, so the keys of two groups
// differ.
void bind_to_table(Group& group, ByteSpan value, const std::string& key) {
  if (group.identities) group.identities->meeting = keys::extract(bytes_of(key), value);
}

Status take_keys(const LocalConfiguration& local, Group& group) {
  if (local.identity == nullptr) return {};
  const bool is_in_it = group.identities && local.rank < group.identities->members.size() &&
                        group.identities->members[local.rank] == local.identity->told;
  if (!is_in_it) {
    return Status::error(StatusCode::kMismatch,
                         "the table of members does not have rank %u's key; does rank 0 have the "
                         "secret (LEEWAY_SECRET_FILE)?",
                         unsigned{local.rank});
  }
  auto keys = keys::join_keys(local.identity, group.identities->meeting, group.identities->members);
  if (!keys.ok()) return keys.status();
  group.keys = std::move(*keys);
  return {};
}

}  // namespace leeway::rendezvous
