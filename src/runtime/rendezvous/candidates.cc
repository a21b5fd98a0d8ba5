#include <algorithm>
#include <array>

#include "base/contracts.h"
#include "rendezvous/address.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/candidate.h"

namespace leeway::rendezvous {
namespace {

// A transport that Leeway can be built with.
struct Known {
  TransportKind kind;
  const char* lacking;  // how to install and build it, if this build is without it
  Result<std::unique_ptr<Candidate>> (*open)(const Options&, const asio::ip::address&);
  Devices (*devices)();
};

#if LEEWAY_HAS_VERBS
constexpr Known kVerbs = {TransportKind::verbs, nullptr, open_verbs, list_verbs_devices};
#else
constexpr Known kVerbs = {
    TransportKind::verbs,
    "this Leeway was built without InfiniBand and RoCE: install libibverbs-dev and librdmacm-dev "
    "and build with -DLEEWAY_WITH_VERBS=ON",
    nullptr, nullptr};
#endif
#if LEEWAY_HAS_UCX
constexpr Known kUcx = {TransportKind::ucx, nullptr, open_ucx, list_ucx_devices};
#else
constexpr Known kUcx = {
    TransportKind::ucx,
    "this Leeway was built without UCX: install libucx-dev and build with -DLEEWAY_WITH_UCX=ON",
    nullptr, nullptr};
#endif

constexpr std::array<Known, 3> kKnown = {
    {{TransportKind::udp, nullptr, open_udp, nullptr}, kVerbs, kUcx}};

const Known* find(TransportKind kind) {
  const auto found = std::find_if(kKnown.begin(), kKnown.end(),
                                  [kind](const Known& one) { return one.kind == kind; });
  return found == kKnown.end() ? nullptr : &*found;
}

bool is_wanted(TransportKind kind, const Options& options) {
  if (options.transport != TransportKind::automatic) return options.transport == kind;
  return kind == TransportKind::verbs && options.world_size.value_or(1) > 1 &&
         !options.faults.any();
}

}  // namespace

TransportOffer offer_of(const Candidate& candidate) {
  GroupTransport::Member place = candidate.place();
  return {candidate.kind(),
          std::move(place.address),
          static_cast<std::uint32_t>(candidate.limits().datagram_bytes_max),
          place.receive_buffer_bytes,
          {}};
}

std::vector<std::vector<std::byte>> addresses_of(const GroupTransport& transport) {
  std::vector<std::vector<std::byte>> addresses;
  for (const GroupTransport::Member& member : transport.members)
    addresses.push_back(member.address);
  return addresses;
}

Result<std::unique_ptr<Candidate>> open_candidate(TransportKind kind, const Options& options,
                                                  const asio::ip::address& address) {
  const Known* const known = find(kind);
  LEEWAY_ASSERT(known != nullptr);
  if (known->lacking == nullptr) return known->open(options, address);
  return Status::error(StatusCode::kUnsupported, "%s", known->lacking);
}

Devices list_devices(TransportKind kind) {
  const Known* const known = find(kind);
  LEEWAY_ASSERT(known != nullptr);
  if (known->lacking == nullptr) return known->devices();
  return Status::error(StatusCode::kUnsupported, "%s", known->lacking);
}

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
  if (options.store == nullptr) {
    if (options.rendezvous.empty()) return rendezvous_unknown(options.rank.value_or(0));
    const auto where = parse_host_port(options.rendezvous);
    if (!where.ok()) return rendezvous_refused(where.status());
  }
  return address_towards(options.rendezvous);
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
  local.lanes = options.lanes;
  local.join_timeout = options.join_timeout;
  local.store = options.store;
  local.restart_count = options.restart_count;
  local.insecure = options.insecure;
  return local;
}

Result<Candidates> open_candidates(const Options& options, std::unique_ptr<Candidate> udp) {
  const auto address = data_address(options);
  if (!address.ok()) return address.status();
  if (udp == nullptr) {
    auto opened = open_candidate(TransportKind::udp, options, *address);
    if (!opened.ok()) return opened.status();
    udp = std::move(*opened);
  }
  const GroupTransport::Member place = udp->place();
  Candidates candidates{{}, local_configuration(options)};
  LocalConfiguration& local = candidates.local;
  local.datagram_bytes = static_cast<std::uint32_t>(udp->limits().datagram_bytes_max);
  local.receive_buffer_bytes = place.receive_buffer_bytes;
  local.data_address = place.address;
  local.data_port = place.port;
  local.may_move = options.bind_address.empty();
  candidates.open.push_back(std::move(udp));
  for (const Known& known : kKnown) {
    if (known.kind == TransportKind::udp || !is_wanted(known.kind, options)) continue;
    auto opened = open_candidate(known.kind, options, *address);
    if (!opened.ok()) {
      local.offers.push_back({.kind = known.kind, .obstacle = opened.status().c_str()});
      continue;
    }
    local.offers.push_back(offer_of(**opened));
    candidates.open.push_back(std::move(*opened));
  }
  return candidates;
}

Status Candidates::move_udp(const Options& options, const asio::ip::address& address) {
  Options there = options;
  there.port = local.data_port;
  const auto udp = std::find_if(open.begin(), open.end(), [](const auto& candidate) {
    return candidate != nullptr && candidate->kind() == TransportKind::udp;
  });
  if (udp == open.end()) return Status();
  auto opened = open_candidate(TransportKind::udp, there, address);
  if (opened.ok()) *udp = std::move(*opened);
  return opened.status();
}

Result<std::unique_ptr<Candidate>> Candidates::connect(const GroupTransport& transport, Rank self) {
  const auto found = std::find_if(open.begin(), open.end(), [&](const auto& candidate) {
    return candidate != nullptr && candidate->kind() == transport.kind;
  });
  if (found == open.end())
    return Status::error(StatusCode::kInternal,
                         "create: rank 0 chose a transport that is not here");
  if (Status status = (*found)->connect(transport, self); !status.ok()) return status;
  return std::move(*found);
}

}  // namespace leeway::rendezvous
