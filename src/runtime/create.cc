// How a communicator comes to be: transport, rendezvous, proof of paths.
#include <algorithm>
#include <random>

#include "base/limits.h"
#include "leeway/communicator.h"
#include "runtime/address.h"
#include "runtime/bootstrap.h"
#include "runtime/communicator_core.h"
#include "runtime/log.h"
#include "transport/inproc/inproc_transport.h"
#include "transport/udp/udp_transport.h"

namespace leeway {
namespace {

using internal::CommunicatorCore;

// Data in flight to one peer when nothing else limits it. Enough for 100 Gb/s over 80 us; more only moves the queue from
// the sender to the receiver's socket buffer and out of its cache.
constexpr std::size_t kWindowBytesDefault = 1u << 20;

Status check_membership(const Options& options) {
  if (options.rank.has_value() != options.world_size.has_value()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: %s is set but %s is not: set both (LEEWAY_RANK, LEEWAY_WORLD_SIZE), or start through a "
                         "launcher",
                         options.rank ? "rank" : "world_size", options.rank ? "world_size" : "rank");
  }
  const int size = options.world_size.value_or(1);
  const int rank = options.rank.value_or(0);
  if (size < 1 || size > limits::kPeersMax) {
    return Status::error(StatusCode::kInvalidArgument, "create: world size %d is outside 1 .. %d", size,
                         limits::kPeersMax);
  }
  if (rank < 0 || rank >= size) {
    return Status::error(StatusCode::kInvalidArgument, "create: rank %d is outside 0 .. %d", rank, size - 1);
  }
  if (options.datagram_bytes != 0 &&
      (options.datagram_bytes < limits::kDatagramBytesMin || options.datagram_bytes > limits::kDatagramBytesMax)) {
    return Status::error(StatusCode::kInvalidArgument, "create: datagram_bytes %zu is outside %zu .. %zu",
                         options.datagram_bytes, limits::kDatagramBytesMin, limits::kDatagramBytesMax);
  }
  return Status();
}

// The address from which data go: as asked, or the one by which the system would reach rank 0.
Result<asio::ip::address> data_address(const Options& options) {
  if (!options.bind_address.empty()) {
    std::error_code error;
    const auto address = asio::ip::make_address(options.bind_address, error);
    if (error) {
      return Status::error(StatusCode::kInvalidArgument, "create: bind_address \"%s\" is not an IP address",
                           options.bind_address.c_str());
    }
    return address;
  }
  if (options.world_size.value_or(1) == 1) return asio::ip::address(asio::ip::address_v4::loopback());
  const auto where = runtime::parse_host_port(options.rendezvous);
  if (!where.ok()) return where.status();
  asio::io_context io;
  const auto resolved = runtime::resolve(io, *where);
  if (!resolved.ok()) return resolved.status();
  const auto& rendezvous = resolved->endpoints.front();
  return transport::local_address_towards({rendezvous.address(), rendezvous.port()});
}

Result<std::unique_ptr<transport::UdpTransport>> open_udp(const Options& options) {
  const auto address = data_address(options);
  if (!address.ok()) return address.status();
  transport::UdpOptions udp;
  udp.bind_address = *address;
  udp.datagram_bytes = options.datagram_bytes;
  if (options.socket_buffer_bytes != 0) udp.socket_buffer_bytes = options.socket_buffer_bytes;
  return transport::UdpTransport::open(udp);
}

Result<runtime::Group> join(const Options& options, const transport::UdpTransport& udp, runtime::Log& log) {
  runtime::LocalConfiguration local;
  local.rank = static_cast<Rank>(options.rank.value_or(0));
  local.size = options.world_size.value_or(1);
  local.rendezvous = options.rendezvous;
  local.name = options.communicator_name;
  local.datagram_bytes = static_cast<std::uint32_t>(udp.limits().datagram_bytes_max);
  local.receive_buffer_bytes = udp.limits().receive_buffer_bytes;
  local.window_bytes = static_cast<std::uint32_t>(options.window_bytes);
  local.seed = options.seed;
  local.data_address = runtime::to_bytes(udp.local_address().address());
  local.data_port = udp.local_address().port();
  local.join_timeout = options.join_timeout;
  return runtime::join_group(local, &log);
}

Status set_peers(transport::UdpTransport& udp, const runtime::Group& group) {
  std::vector<transport::UdpAddress> addresses;
  for (const auto& member : group.members) {
    const auto address = runtime::address_from_bytes(member.address);
    if (!address) return Status::error(StatusCode::kInternal, "create: rendezvous gave a malformed address");
    addresses.emplace_back(*address, member.port);
  }
  return udp.set_peers(addresses);
}

// What a receiver's buffer holds is shared by all its senders.
std::size_t window_to(const Options& options, std::size_t receive_buffer_bytes, int size) {
  const std::size_t share = receive_buffer_bytes / std::max(1, size - 1);
  return std::min(share, options.window_bytes != 0 ? options.window_bytes : kWindowBytesDefault);
}

Result<std::unique_ptr<CommunicatorCore>> make_core(const Options& options, const protocol::EndpointConfig& config,
                                                    std::unique_ptr<DatagramTransport> transport) {
  if (!options.faults.any()) return std::make_unique<CommunicatorCore>(options, config, std::move(transport), nullptr);
  auto plan = impairment::FaultPlan::create(options.faults);
  if (!plan.ok()) return plan.status();
  auto faulty =
      std::make_unique<transport::FaultTransport>(std::move(transport), std::move(*plan), runtime::steady_now);
  const transport::FaultTransport* faults = faulty.get();
  return std::make_unique<CommunicatorCore>(options, config, std::move(faulty), faults);
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(const Options& options) {
  if (Status status = check_membership(options); !status.ok()) return status;
  const auto level = runtime::parse_log_level(options.log_level);
  if (!level.ok()) return level.status();
  runtime::Log log(*level, static_cast<Rank>(options.rank.value_or(0)));
  const Instant start = runtime::steady_now();
  auto udp = open_udp(options);
  if (!udp.ok()) return udp.status();
  const auto group = join(options, **udp, log);
  if (!group.ok()) return group.status();
  if (Status status = set_peers(**udp, *group); !status.ok()) return status;

  protocol::EndpointConfig config;
  config.self = static_cast<Rank>(options.rank.value_or(0));
  config.size = options.world_size.value_or(1);
  config.epoch = group->epoch;
  config.seed = group->seed;
  config.datagram_bytes = group->datagram_bytes;
  for (const auto& member : group->members) {
    config.window_bytes.push_back(window_to(options, member.receive_buffer_bytes, config.size));
  }
  auto core = make_core(options, config, std::move(*udp));
  if (!core.ok()) return core.status();
  const Duration left = std::max<Duration>(options.join_timeout - (runtime::steady_now() - start), std::chrono::seconds(1));
  if (Status status = (*core)->prove_paths(left); !status.ok()) return status;
  return std::unique_ptr<Communicator>(new Communicator(std::move(*core)));
}

Result<std::vector<std::unique_ptr<Communicator>>> Communicator::create_inproc(int size, const Options& options) {
  Options checked = options;
  checked.rank = 0;
  checked.world_size = size;
  if (Status status = check_membership(checked); !status.ok()) return status;
  transport::InprocOptions inproc;
  if (options.datagram_bytes != 0) inproc.datagram_bytes = options.datagram_bytes;
  auto transports = transport::make_inproc_group(size, inproc);
  protocol::EndpointConfig config;
  config.size = size;
  config.epoch = std::max<std::uint32_t>(1, std::random_device{}());
  config.seed = options.seed;
  config.datagram_bytes = inproc.datagram_bytes;
  config.window_bytes.assign(size, window_to(options, inproc.receive_buffer_bytes, size));
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (Rank rank = 0; rank < size; ++rank) {
    config.self = rank;
    checked.rank = rank;
    auto core = make_core(checked, config, std::move(transports[rank]));
    if (!core.ok()) return core.status();
    communicators.emplace_back(new Communicator(std::move(*core)));
  }
  return communicators;
}

}  // namespace leeway
