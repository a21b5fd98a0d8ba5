#include "rendezvous/agreement.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "leeway/version.h"
#include "rendezvous/address.h"
#include "rendezvous/control_message.h"
#include "rendezvous/lane_agreement.h"
#include "rendezvous/printable.h"
#include "wire/packet.h"

namespace leeway::rendezvous {
namespace {

ByteSpan bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Status check_version(const control::Hello& hello, const std::string& from) {
  if (hello.protocol_version() == wire::kVersion) return {};
  return Status::error(StatusCode::kMismatch,
                       "rank %u at %s speaks protocol version %u (Leeway %s), rank 0 version %u "
                       "(Leeway %s); install the "
                       "same Leeway everywhere",
                       hello.rank(), from.c_str(), hello.protocol_version(),
                       printable(hello.library_version(), 16).c_str(), unsigned{wire::kVersion},
                       LEEWAY_VERSION_STRING);
}

Status check_place(const control::Hello& hello, const LocalConfiguration& root,
                   const std::string& from) {
  const auto size = static_cast<std::uint32_t>(root.size);
  if (hello.world_size() != size) {
    return Status::error(StatusCode::kMismatch, "rank %u at %s expects %u ranks, rank 0 expects %u",
                         hello.rank(), from.c_str(), hello.world_size(), size);
  }
  if (hello.rank() >= size) {
    return Status::error(StatusCode::kMismatch,
                         "the process at %s says it is rank %u, but %u ranks are 0 to %u",
                         from.c_str(), hello.rank(), size, size - 1);
  }
  if (hello.rank() == 0) {
    return Status::error(StatusCode::kMismatch,
                         "two processes claim rank 0: the one at %s and the one at %s",
                         root.rendezvous.c_str(), from.c_str());
  }
  return {};
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
  const std::uint32_t datagram = theirs.datagram_bytes();
  if (datagram < limits::kDatagramBytesMin || datagram > limits::kFrameBytesMax) {
    return Status::error(StatusCode::kMismatch,
                         "rank %u offers datagrams of %u bytes; %zu to %zu are possible",
                         hello.rank(), datagram, limits::kDatagramBytesMin, limits::kFrameBytesMax);
  }
  return check_wishes(hello, root);
}

// Rank 0's own address: the one it was told to use, or one by which the others reached it, best not
// loopback.
asio::ip::address root_address(const LocalConfiguration& root, std::span<const Joined> others) {
  if (const auto own = address_from_bytes(root.data_address)) return *own;
  const auto remote = std::find_if(others.begin(), others.end(), [](const Joined& joined) {
    return !joined.reached_at.is_loopback();
  });
  return (remote != others.end() ? *remote : others.front()).reached_at;
}

asio::ip::address data_address(const Joined& joined, const asio::ip::address& root) {
  if (const auto own = address_from_bytes(bytes_of(joined.hello.data().address()))) return *own;
  return joined.seen_from.is_loopback() ? root : joined.seen_from;
}

void put_lane(const Lane& lane, control::Lane& message) {
  message.set_transport(static_cast<std::uint32_t>(lane.kind));
  message.set_datagram_bytes(lane.datagram_bytes);
  for (const Lane::Member& member : lane.members) {
    control::Member& row = *message.add_members();
    row.set_address(member.address.data(), member.address.size());
    row.set_port(member.port);
    row.set_receive_buffer_bytes(member.receive_buffer_bytes);
  }
}

Lane lane_of(const control::Lane& message) {
  Lane lane{static_cast<TransportKind>(message.transport()), message.datagram_bytes(), {}};
  for (const control::Member& row : message.members()) {
    const ByteSpan address = bytes_of(row.address());
    lane.members.push_back({{address.begin(), address.end()},
                            static_cast<std::uint16_t>(row.port()),
                            row.receive_buffer_bytes()});
  }
  return lane;
}

}  // namespace

Status check_hello(const control::Hello& hello, const LocalConfiguration& root,
                   const std::string& from) {
  if (Status status = check_version(hello, from); !status.ok()) return status;
  if (Status status = check_place(hello, root, from); !status.ok()) return status;
  return check_configuration(hello, root);
}

Result<Group> make_group(const LocalConfiguration& root, std::span<const Joined> others,
                         std::uint32_t epoch) {
  const asio::ip::address first = unmapped(root_address(root, others));
  Lane udp{TransportKind::udp,
           root.datagram_bytes,
           {{to_bytes(first), root.data_port, root.receive_buffer_bytes}}};
  std::vector<std::vector<TransportOffer>> offers = {root.offers};
  for (const Joined& joined : others) {
    const control::Hello& hello = joined.hello;
    const asio::ip::address address = unmapped(data_address(joined, first));
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
  }
  auto lanes = choose_lanes(root.transport, udp, offers);
  if (!lanes.ok()) return lanes.status();
  Group group{epoch, root.seed, std::move(lanes->datagrams), std::move(lanes->exact), {}};
  if (root.multicast && !others.empty()) group.multicast = multicast_of(epoch, first.is_v4());
  return group;
}

control::Welcome welcome_of(const Group& group) {
  control::Welcome welcome;
  welcome.set_magic(kControlMagic);
  control::Group& message = *welcome.mutable_group();
  message.set_epoch(group.epoch);
  message.set_seed(group.seed);
  put_lane(group.datagrams, *message.mutable_datagrams());
  if (group.exact) put_lane(*group.exact, *message.mutable_exact());
  if (group.multicast) {
    const std::vector<std::byte>& address = group.multicast->address;
    message.mutable_multicast()->set_address(address.data(), address.size());
    message.mutable_multicast()->set_port(group.multicast->port);
  }
  return welcome;
}

Group group_of(const control::Group& message) {
  Group group{message.epoch(), message.seed(), lane_of(message.datagrams()), {}, {}};
  if (message.has_exact()) group.exact = lane_of(message.exact());
  if (message.has_multicast()) {
    const ByteSpan address = bytes_of(message.multicast().address());
    group.multicast = {{address.begin(), address.end()},
                       static_cast<std::uint16_t>(message.multicast().port())};
  }
  return group;
}

}  // namespace leeway::rendezvous
