#include "rendezvous/trials.h"

#include <array>
#include <chrono>
#include <memory>
#include <random>

#include "base/steady_now.h"
#include "rendezvous/address.h"
#include "rendezvous/candidate.h"
#include "rendezvous/transport_choice.h"
#include "transport/udp/address.h"

namespace leeway::rendezvous {
namespace {

constexpr Duration kTrialTime = std::chrono::milliseconds(200);

using Pair = std::array<std::unique_ptr<Candidate>, 2>;

Result<Pair> open_pair(const asio::ip::address& address) {
  Pair pair;
  GroupTransport transport{TransportKind::udp, 0, {}};
  for (auto& one : pair) {
    auto opened = open_candidate(TransportKind::udp, Options(), address);
    if (!opened.ok()) return opened.status();
    one = std::move(*opened);
    transport.members.push_back(one->place());
  }
  for (Rank rank = 0; rank < 2; ++rank) {
    if (Status status = pair[rank]->connect(transport, rank); !status.ok()) return status;
  }
  return pair;
}

Status hear(DatagramTransport& receiver) {
  const Instant deadline = steady_now() + kTrialTime;
  std::array<Received, 1> out;
  for (Instant now = steady_now(); now < deadline; now = steady_now()) {
    if (receiver.receive(out) == 1) return Status();
    receiver.wait(deadline - now);
  }
  return Status::error(StatusCode::kUnavailable,
                       "joined, but what was sent to the group did not come back");
}

}  // namespace

asio::ip::address likely_address(const Options& options) {
  if (!options.bind_address.empty() || !options.rendezvous.empty()) {
    Options several = options;
    several.world_size = 2;
    if (const auto address = data_address(several); address.ok()) return *address;
  }
  return outward_address();
}

AutomaticChoice choose_automatically(const Options& options, const asio::ip::address& address) {
  AutomaticChoice choice;
  if (options.faults.any()) {
    choice.why = "faults are injected into UDP only";
    return choice;
  }
  const auto verbs = open_candidate(TransportKind::verbs, options, address);
  if (verbs.ok()) choice.datagrams = TransportKind::verbs;
  if (!verbs.ok()) choice.why = verbs.status().c_str();
  return choice;
}

Status try_multicast(const asio::ip::address& address) {
  auto pair = open_pair(address);
  if (!pair.ok()) return pair.status();
  const Group::Multicast group = multicast_of(std::random_device{}(), address.is_v4());
  const auto group_address = address_from_bytes(group.address);
  for (auto& one : *pair) {
    if (Status status = one->join_multicast(*group_address, group.port); !status.ok())
      return status;
  }
  const std::array<std::byte, 64> bytes{};
  const Slice slice{bytes.data(), bytes.size()};
  const Train train{.to = kEveryRank,
                    .segment_bytes = bytes.size(),
                    .total_bytes = bytes.size(),
                    .slices = {&slice, 1}};
  const auto sender = (*pair)[0]->take();
  const auto receiver = (*pair)[1]->take();
  if (sender->send({&train, 1}) != 1 || sender->counters().send_errors > 0) {
    return Status::error(StatusCode::kUnavailable,
                         "joined, but the system does not send to the group: is there a "
                         "route (ip route add 239.0.0.0/8 dev <interface>)?");
  }
  return hear(*receiver);
}

}  // namespace leeway::rendezvous
