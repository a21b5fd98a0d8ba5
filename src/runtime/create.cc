// How a communicator comes to be: transport, rendezvous, proof of paths.
#include <algorithm>
#include <random>

#include "base/limits.h"
#include "leeway/communicator.h"
#include "runtime/address.h"
#include "runtime/agreement.h"
#include "runtime/bootstrap.h"
#include "runtime/communicator_core.h"
#include "runtime/exact_lane.h"
#include "runtime/log.h"
#include "runtime/make_carrier.h"
#include "runtime/transport_choice.h"
#include "transport/inproc/inproc_transport.h"

namespace leeway {
namespace {

using internal::CommunicatorCore;

Status check_membership(const Options& options) {
  if (options.rank.has_value() != options.world_size.has_value()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: %s is set but %s is not: set both (LEEWAY_RANK, "
                         "LEEWAY_WORLD_SIZE), or start through a "
                         "launcher",
                         options.rank ? "rank" : "world_size",
                         options.rank ? "world_size" : "rank");
  }
  const int size = options.world_size.value_or(1);
  const int rank = options.rank.value_or(0);
  if (size < 1 || size > limits::kPeersMax) {
    return Status::error(StatusCode::kInvalidArgument, "create: world size %d is outside 1 .. %d",
                         size, limits::kPeersMax);
  }
  if (rank < 0 || rank >= size) {
    return Status::error(StatusCode::kInvalidArgument, "create: rank %d is outside 0 .. %d", rank,
                         size - 1);
  }
  if (options.datagram_bytes != 0 && (options.datagram_bytes < limits::kDatagramBytesMin ||
                                      options.datagram_bytes > limits::kFrameBytesMax)) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: datagram_bytes %zu is outside %zu .. %zu", options.datagram_bytes,
                         limits::kDatagramBytesMin, limits::kFrameBytesMax);
  }
  return Status();
}

// A communicator of one process, whose transport nobody will hear.
Result<std::unique_ptr<Communicator>> create_alone_inproc(const Options& options) {
  if (options.world_size.value_or(1) > 1) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: transport inproc connects threads of one process, and %d "
                         "processes were started: use "
                         "Communicator::create_inproc(), or another LEEWAY_TRANSPORT",
                         *options.world_size);
  }
  auto alone = Communicator::create_inproc(1, options);
  if (!alone.ok()) return alone.status();
  return std::move(alone->front());
}

void log_candidates(const runtime::TransportChoice& choice, runtime::Log& log) {
  for (const auto& candidate : choice.candidates()) {
    if (candidate.opened != nullptr) continue;
    log.print(runtime::LogLevel::debug, "transport", "%s cannot be used here: %s",
              std::string(to_string(candidate.kind)).c_str(), candidate.obstacle.c_str());
  }
}

// Without multicast everything goes to each rank by itself.
void join_multicast(runtime::OpenedTransport& opened, const runtime::Group::Multicast& group,
                    runtime::Log& log) {
  const auto address = runtime::address_from_bytes(group.address);
  const Status status = address ? opened.join_multicast(*address, group.port)
                                : Status::error(StatusCode::kInternal, "malformed group address");
  if (status.ok()) return;
  log.print(runtime::LogLevel::warn, "multicast", "no multicast from and to this rank: %s",
            status.c_str());
}

void log_deaf(internal::Carrier& carrier, runtime::Log& log) {
  const std::vector<Rank> deaf = carrier.deaf_to_multicast();
  if (deaf.empty()) return;
  log.print(runtime::LogLevel::warn, "multicast",
            "rank(s) %s do not hear our multicast and are sent everything by itself: does the "
            "network carry multicast between these hosts?",
            runtime::list_ranks(deaf).c_str());
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(const Options& options) {
  if (Status status = check_membership(options); !status.ok()) return status;
  if (options.transport == TransportKind::inproc) return create_alone_inproc(options);
  const auto level = runtime::parse_log_level(options.log_level);
  if (!level.ok()) return level.status();
  runtime::Log log(*level, static_cast<Rank>(options.rank.value_or(0)));
  const Instant start = runtime::steady_now();
  const auto time_left = [&] {
    return std::max<Duration>(options.join_timeout - (runtime::steady_now() - start),
                              std::chrono::seconds(1));
  };

  auto choice = runtime::TransportChoice::open(options);
  if (!choice.ok()) return choice.status();
  log_candidates(*choice, log);
  const auto group = runtime::join_group(choice->local_configuration(options), &log);
  if (!group.ok()) return group.status();

  auto config = runtime::endpoint_config(options, *group, group->datagrams);
  auto opened = choice->connect(group->datagrams, config.self);
  if (!opened.ok()) return opened.status();
  if (Status status = (*opened)->prove_wakeups(time_left()); !status.ok()) return status;
  if (group->multicast) join_multicast(**opened, *group->multicast, log);
  config.multicast = (*opened)->limits().multicast;
  auto carrier = runtime::make_carrier(options, group->datagrams.kind, config, (*opened)->take());
  if (!carrier.ok()) return carrier.status();
  if (Status status = (*carrier)->prove_paths(time_left()); !status.ok()) return status;
  if (config.multicast) log_deaf(**carrier, log);
  auto core = std::make_unique<CommunicatorCore>(options, std::move(*carrier));
  if (group->exact) {
    if (Status status = runtime::open_exact_lane(*core, *choice, *group, time_left(), log);
        !status.ok())
      return status;
  }
  return std::unique_ptr<Communicator>(new Communicator(std::move(core)));
}

Result<std::vector<std::unique_ptr<Communicator>>> Communicator::create_inproc(
    int size, const Options& options) {
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
  config.window_bytes.assign(size, runtime::window_to(options, inproc.receive_buffer_bytes, size));
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (Rank rank = 0; rank < size; ++rank) {
    config.self = rank;
    config.multicast = options.multicast && transports[rank]->limits().multicast;
    checked.rank = rank;
    auto carrier =
        runtime::make_carrier(checked, TransportKind::inproc, config, std::move(transports[rank]));
    if (!carrier.ok()) return carrier.status();
    communicators.emplace_back(
        new Communicator(std::make_unique<CommunicatorCore>(checked, std::move(*carrier))));
  }
  // Ranks multicast to those whom they know to hear it.
  for (auto& communicator : communicators) {
    if (config.multicast) (void)communicator->core_->main().deaf_to_multicast();
  }
  return communicators;
}

}  // namespace leeway
