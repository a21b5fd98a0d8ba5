// Scenarios of bad input: ranks that disagree, and datagrams that no rank should send.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "integration/every_operation.h"
#include "wire/packet.h"

namespace leeway::integration {
namespace {

constexpr Rank kVictim = 0;
constexpr Rank kMisbehaving = 1;

struct DataSocket {
  int handle = -1;
  sockaddr_in address{};
};

// Finds the communicator's own UDP socket. Datagrams that are sent through this socket come from a
// member's address.
std::optional<DataSocket> find_data_socket() {
  for (int handle = 3; handle < 256; ++handle) {
    int type = 0;
    socklen_t type_length = sizeof(type);
    if (getsockopt(handle, SOL_SOCKET, SO_TYPE, &type, &type_length) != 0 || type != SOCK_DGRAM)
      continue;
    DataSocket found{handle, {}};
    socklen_t length = sizeof(found.address);
    if (getsockname(handle, reinterpret_cast<sockaddr*>(&found.address), &length) != 0) continue;
    if (found.address.sin_family == AF_INET && found.address.sin_port != 0) return found;
  }
  return std::nullopt;
}

// Makes a bad datagram of kind 0 .. kJunkKinds - 1. Every receiver must refuse all kinds.
constexpr int kJunkKinds = 6;
std::vector<std::byte> make_junk(int kind, std::uint32_t k) {
  std::vector<std::byte> datagram(limits::kDatagramBytesMax);
  wire::Prefix prefix{.type = wire::PacketType::probe,
                      .epoch = 0x12345678,
                      .source = kMisbehaving,
                      .destination = kVictim,
                      .sequence = k};
  wire::DataHeader header{.round = k, .flow_packets = 1};
  switch (kind) {
    case 0:  // random bytes of random length, none included
      datagram.resize(k * 2654435761u % 1500);
      for (std::size_t i = 0; i < datagram.size(); ++i)
        datagram[i] = static_cast<std::byte>(i * 167 + k * 13);
      break;
    case 1:  // right magic and version, too short
      wire::encode_bare(prefix, datagram);
      datagram.resize(wire::kPrefixBytes - 1 - k % 8);
      break;
    case 2:  // as large as UDP over loopback allows
      datagram.assign(65'000, static_cast<std::byte>(k));
      break;
    case 3:  // well formed and with the right checksum, but of another incarnation of the group
      prefix.type = wire::PacketType::data;
      datagram.resize(wire::encode_data(prefix, header, 0, datagram));
      break;
    case 4:  // another protocol version
      datagram.resize(wire::encode_bare(prefix, datagram));
      datagram[2] = std::byte{wire::kVersion + 1};
      break;
    default:  // a packet type that does not exist
      datagram.resize(wire::encode_bare(prefix, datagram));
      datagram[3] = std::byte{99};
  }
  return datagram;
}

// Sends junk to `to` until `stop` is true. Returns the number of datagrams sent.
std::uint64_t throw_junk(int handle, const sockaddr_in& to, const std::atomic<bool>& stop) {
  std::uint64_t thrown = 0;
  for (std::uint32_t k = 0; !stop.load(); ++k) {
    const auto datagram = make_junk(static_cast<int>(k % kJunkKinds), k);
    thrown += sendto(handle, datagram.data(), datagram.size(), MSG_DONTWAIT,
                     reinterpret_cast<const sockaddr*>(&to), sizeof(to)) >= 0;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return thrown;
}

Status publish_victim(Communicator& group, const DataSocket& own, sockaddr_in& victim) {
  std::array<std::int32_t, 2> place{static_cast<std::int32_t>(own.address.sin_addr.s_addr),
                                    own.address.sin_port};
  const auto outcome = group.broadcast(std::span(place), kVictim);
  if (!outcome.ok()) return outcome.status();
  victim.sin_family = AF_INET;
  victim.sin_addr.s_addr = static_cast<in_addr_t>(place[0]);
  victim.sin_port = static_cast<in_port_t>(place[1]);
  return Status();
}

}  // namespace

// Rank 1 passes one element more than the others. Returns the outcome of each rank's call, and
// whether the group still works.
Facts size_mismatch(const Arguments& arguments) {
  const auto group = join();
  const std::size_t count = group->rank() == kMisbehaving ? 1001 : 1000;
  std::vector<float> data(count, 1.0f);
  const CollectiveOptions options{.delivery = arguments.text("delivery", "exact") == "exact"
                                                  ? exact(std::chrono::seconds(10))
                                                  : best_effort(std::chrono::seconds(10))};
  const auto outcome = group->all_reduce(std::span(data), options);
  Tally tally;
  EveryOperation(*group, tally).all_reduce(DataType::f32, 1000, ReduceOp::sum);
  Facts facts = {{"rank", group->rank()}, {"afterwards", tally.facts()}};
  if (!outcome.ok()) facts["error"] = facts_of(outcome.status());
  return facts;
}

// All ranks make exact all_reduces. Meanwhile rank 0 gets junk from two sides: from rank 1 through
// the group's own socket, and from a stranger.
Facts junk(const Arguments& arguments) {
  const auto group = join();
  const auto own = find_data_socket();
  if (!own) end_with(Status::error(StatusCode::kInternal, "no UDP socket found"));
  sockaddr_in victim{};
  if (const Status status = publish_victim(*group, *own, victim); !status.ok()) end_with(status);
  std::atomic<bool> stop{false};
  std::uint64_t thrown = 0;
  std::uint64_t thrown_by_stranger = 0;
  std::vector<std::thread> throwers;
  const int stranger = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (group->rank() == kMisbehaving) {
    throwers.emplace_back([&] { thrown = throw_junk(own->handle, victim, stop); });
    throwers.emplace_back([&] { thrown_by_stranger = throw_junk(stranger, victim, stop); });
  }
  Tally tally;
  EveryOperation every(*group, tally);
  for (std::int64_t k = 0; k < arguments.number("rounds", 200); ++k) {
    every.all_reduce(DataType::f32, 16'384, ReduceOp::sum);
  }
  stop = true;
  for (std::thread& thrower : throwers) thrower.join();
  close(stranger);
  Facts facts = tally.facts();
  facts["rank"] = group->rank();
  facts["thrown"] = thrown;
  facts["thrown_by_stranger"] = thrown_by_stranger;
  for (const auto& [name, value] : group->counters()) facts["counters"][name] = value;
  return facts;
}

}  // namespace leeway::integration
