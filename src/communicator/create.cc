// How a communicator comes to be: transport, rendezvous, proof of paths.
#include <algorithm>
#include <random>

#include "base/limits.h"
#include "communicator/core.h"
#include "communicator/exact_lane.h"
#include "communicator/make_carrier.h"
#include "leeway/communicator.h"
#include "protocol/train_buffer.h"
#include "rendezvous/address.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/log.h"
#include "rendezvous/printable.h"
#include "rendezvous/transport_choice.h"
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

// What the core puts into a train (protocol/train_buffer.h) must fit.
Status check_transport(const DatagramTransport* transport) {
  constexpr std::size_t kNameMax = 64;
  constexpr std::size_t kTrainBytes = 65'507;
  constexpr std::size_t kTrainDatagrams = protocol::TrainBuffer::kTrainDatagramsMax;
  constexpr std::size_t kTrainSlices = 4 * kTrainDatagrams;
  static_assert(protocol::TrainBuffer::kTrainBytesMax <= kTrainBytes);
  if (transport == nullptr)
    return Status::error(StatusCode::kInvalidArgument, "create: the transport is null");
  const std::string name(transport->name());
  if (name.empty() || name.size() > kNameMax) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: the transport's name has %zu characters, not 1 .. %zu",
                         name.size(), kNameMax);
  }
  const TransportLimits& has = transport->limits();
  const auto check = [&](const char* what, std::size_t value, std::size_t least) {
    if (value >= least) return Status();
    return Status::error(StatusCode::kInvalidArgument,
                         "create: transport %s has limits().%s = %zu; at least %zu are needed",
                         name.c_str(), what, value, least);
  };
  Status status = check("datagram_bytes_max", has.datagram_bytes_max, limits::kDatagramBytesMin);
  if (status.ok()) status = check("train_bytes_max", has.train_bytes_max, kTrainBytes);
  if (status.ok()) status = check("train_datagrams_max", has.train_datagrams_max, kTrainDatagrams);
  if (status.ok()) status = check("train_slices_max", has.train_slices_max, kTrainSlices);
  if (status.ok()) {
    status = check("receive_buffer_bytes", has.receive_buffer_bytes, has.datagram_bytes_max);
  }
  return status;
}

// What this rank brings to the rendezvous: no address, only the transport's name and sizes.
rendezvous::LocalConfiguration configuration_over(const DatagramTransport& transport,
                                                  const Options& options) {
  const std::size_t wanted =
      options.datagram_bytes != 0 ? options.datagram_bytes : limits::kDatagramBytesMax;
  const std::size_t datagram_bytes = std::min(wanted, transport.limits().datagram_bytes_max);
  const ByteSpan name = std::as_bytes(std::span(transport.name()));
  rendezvous::LocalConfiguration local = rendezvous::local_configuration(options);
  local.transport = TransportKind::custom;
  local.datagram_bytes =
      static_cast<std::uint32_t>(std::min(datagram_bytes, limits::kFrameBytesMax));
  local.offers = {{TransportKind::custom,
                   {name.begin(), name.end()},
                   static_cast<std::uint32_t>(std::min(datagram_bytes, limits::kDatagramBytesMax)),
                   transport.limits().receive_buffer_bytes,
                   {}}};
  return local;
}

Status check_names(const rendezvous::Lane& lane, const DatagramTransport& transport) {
  const std::string_view own = transport.name();
  for (std::size_t rank = 0; rank < lane.members.size(); ++rank) {
    const std::vector<std::byte>& bytes = lane.members[rank].address;
    const std::string theirs(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (theirs == own) continue;
    return Status::error(StatusCode::kMismatch,
                         "create: rank %zu brings transport \"%s\", this rank \"%s\"", rank,
                         rendezvous::printable(theirs, 64).c_str(), std::string(own).c_str());
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

void log_candidates(const rendezvous::TransportChoice& choice, rendezvous::Log& log) {
  for (const auto& candidate : choice.candidates()) {
    if (candidate.opened != nullptr) continue;
    log.print(rendezvous::LogLevel::debug, "transport", "%s cannot be used here: %s",
              std::string(to_string(candidate.kind)).c_str(), candidate.obstacle.c_str());
  }
}

// Without multicast everything goes to each rank by itself.
void join_multicast(rendezvous::OpenedTransport& opened, const rendezvous::Group::Multicast& group,
                    rendezvous::Log& log) {
  const auto address = rendezvous::address_from_bytes(group.address);
  const Status status = address ? opened.join_multicast(*address, group.port)
                                : Status::error(StatusCode::kInternal, "malformed group address");
  if (status.ok()) return;
  log.print(rendezvous::LogLevel::warn, "multicast", "no multicast from and to this rank: %s",
            status.c_str());
}

void log_deaf(driving::Carrier& carrier, rendezvous::Log& log) {
  const std::vector<Rank> deaf = carrier.deaf_to_multicast();
  if (deaf.empty()) return;
  log.print(rendezvous::LogLevel::warn, "multicast",
            "rank(s) %s do not hear our multicast and are sent everything by itself: does the "
            "network carry multicast between these hosts?",
            rendezvous::list_ranks(deaf).c_str());
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(const Options& options) {
  if (Status status = check_membership(options); !status.ok()) return status;
  if (options.transport == TransportKind::inproc) return create_alone_inproc(options);
  if (options.transport == TransportKind::custom) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: a transport of the caller's own is given to "
                         "create(options, transport), not named in the options");
  }
  const auto level = rendezvous::parse_log_level(options.log_level);
  if (!level.ok()) return level.status();
  rendezvous::Log log(*level, static_cast<Rank>(options.rank.value_or(0)));
  const Instant start = driving::steady_now();
  const auto time_left = [&] {
    return std::max<Duration>(options.join_timeout - (driving::steady_now() - start),
                              std::chrono::seconds(1));
  };

  auto choice = rendezvous::TransportChoice::open(options);
  if (!choice.ok()) return choice.status();
  log_candidates(*choice, log);
  const auto group = rendezvous::join_group(choice->local_configuration(options), &log);
  if (!group.ok()) return group.status();

  auto config = internal::endpoint_config(options, *group, group->datagrams);
  auto opened = choice->connect(group->datagrams, config.self);
  if (!opened.ok()) return opened.status();
  if (Status status = (*opened)->prove_wakeups(time_left()); !status.ok()) return status;
  if (group->multicast) join_multicast(**opened, *group->multicast, log);
  config.multicast = (*opened)->limits().multicast;
  auto carrier = internal::make_carrier(options, group->datagrams.kind, config, (*opened)->take());
  if (!carrier.ok()) return carrier.status();
  if (Status status = (*carrier)->prove_paths(time_left()); !status.ok()) return status;
  if (config.multicast) log_deaf(**carrier, log);
  auto core = std::make_unique<CommunicatorCore>(options, std::move(*carrier));
  if (group->exact) {
    if (Status status = internal::open_exact_lane(*core, *choice, *group, time_left(), log);
        !status.ok())
      return status;
  }
  return std::unique_ptr<Communicator>(new Communicator(std::move(core)));
}

Result<std::unique_ptr<Communicator>> Communicator::create(
    const Options& options, std::unique_ptr<DatagramTransport> transport) {
  if (Status status = check_membership(options); !status.ok()) return status;
  if (Status status = check_transport(transport.get()); !status.ok()) return status;
  const auto level = rendezvous::parse_log_level(options.log_level);
  if (!level.ok()) return level.status();
  rendezvous::Log log(*level, static_cast<Rank>(options.rank.value_or(0)));
  const Instant end = driving::steady_now() + options.join_timeout;

  const auto group = rendezvous::join_group(configuration_over(*transport, options), &log);
  if (!group.ok()) return group.status();
  if (Status status = check_names(group->datagrams, *transport); !status.ok()) return status;
  auto config = internal::endpoint_config(options, *group, group->datagrams);
  config.multicast = options.multicast && transport->limits().multicast;
  auto carrier =
      internal::make_carrier(options, TransportKind::custom, config, std::move(transport));
  if (!carrier.ok()) return carrier.status();
  const Duration left = std::max<Duration>(end - driving::steady_now(), std::chrono::seconds(1));
  if (Status status = (*carrier)->prove_paths(left); !status.ok()) return status;
  if (config.multicast) log_deaf(**carrier, log);
  return std::unique_ptr<Communicator>(
      new Communicator(std::make_unique<CommunicatorCore>(options, std::move(*carrier))));
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
  config.window_bytes.assign(size, internal::window_to(options, inproc.receive_buffer_bytes, size));
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (Rank rank = 0; rank < size; ++rank) {
    config.self = rank;
    config.multicast = options.multicast && transports[rank]->limits().multicast;
    checked.rank = rank;
    auto carrier =
        internal::make_carrier(checked, TransportKind::inproc, config, std::move(transports[rank]));
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
