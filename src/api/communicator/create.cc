// Making a communicator: over this host's transports, over one of the caller's own, or inside this
// process.
#include <algorithm>
#include <random>
#include <string>

#include "base/exceptions.h"
#include "base/exit_stop.h"
#include "base/limits.h"
#include "base/random_bits.h"
#include "communicator/channels.h"
#include "communicator/joining.h"
#include "communicator/memory_sharing.h"
#include "communicator/sealing.h"
#include "communicator/site_route.h"
#include "impairment/fault_plan.h"
#include "leeway/communicator.h"
#include "protocol/train_buffer.h"
#include "rendezvous/candidate.h"
#include "rendezvous/environment.h"
#include "rendezvous/log.h"
#include "rendezvous/tcp_security.h"
#include "rendezvous/variable_names.h"
#include "seal/aead.h"
#include "transport/inproc/inproc_transport.h"
#include "transport/train_limits.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;

// Least peer_timeout. A busy machine may take this long to let a process run.
constexpr Duration kPeerTimeoutMin = 100ms;

Status check_lanes(const Options& options) {
  if (options.lanes < 1 || options.lanes > limits::kLanesMax) {
    return Status::error(StatusCode::kInvalidArgument, "create: lanes %d is outside 1 .. %d",
                         options.lanes, limits::kLanesMax);
  }
  if (options.lanes == 1) return Status();
  if (options.multicast) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: multicast goes by one lane: leave out lanes (LEEWAY_LANES) or "
                         "multicast (LEEWAY_MULTICAST)");
  }
  if (options.port != 0 && options.port + options.lanes - 1 > UINT16_MAX) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: port %u leaves no room for the ports of %d lanes",
                         unsigned{options.port}, options.lanes);
  }
  return Status();
}

Status check_membership(const Options& options) {
  if (to_string(options.transport) == "unknown" || to_string(options.congestion) == "unknown") {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: transport %d or congestion %d does not exist",
                         static_cast<int>(options.transport), static_cast<int>(options.congestion));
  }
  if (options.join_timeout <= 0s)
    return Status::error(StatusCode::kInvalidArgument, "create: join_timeout must be positive");
  if (Status status = impairment::check_faults(options.faults); !status.ok()) return status;
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
  if (options.peer_timeout < kPeerTimeoutMin) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: peer_timeout %lld ms is less than %lld ms",
                         static_cast<long long>(options.peer_timeout / 1ms),
                         static_cast<long long>(kPeerTimeoutMin / 1ms));
  }
  if (options.congestion == CongestionControl::fixed &&
      (options.rate_bits_per_second < limits::kRateMin ||
       options.rate_bits_per_second > limits::kRateMax)) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: congestion fixed needs a rate_bits_per_second (LEEWAY_RATE) of "
                         "%llu .. %llu, not %llu",
                         static_cast<unsigned long long>(limits::kRateMin),
                         static_cast<unsigned long long>(limits::kRateMax),
                         static_cast<unsigned long long>(options.rate_bits_per_second));
  }
  if (Status status = check_lanes(options); !status.ok()) return status;
  if (options.datagram_bytes != 0 && (options.datagram_bytes < limits::kDatagramBytesMin ||
                                      options.datagram_bytes > limits::kFrameBytesMax)) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: datagram_bytes %zu is outside %zu .. %zu", options.datagram_bytes,
                         limits::kDatagramBytesMin, limits::kFrameBytesMax);
  }
  return Status();
}

// Checks that the core's trains (protocol/train_buffer.h) fit into the transport's limits.
Status check_transport(const DatagramTransport* transport) {
  constexpr std::size_t kNameMax = 64;
  using transport::kTrainBytesMax;
  using transport::kTrainDatagramsMax;
  using transport::kTrainSlicesMax;
  static_assert(protocol::TrainBuffer::kTrainBytesMax <= kTrainBytesMax &&
                protocol::TrainBuffer::kTrainDatagramsMax <= kTrainDatagramsMax);
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
  if (status.ok()) status = check("train_bytes_max", has.train_bytes_max, kTrainBytesMax);
  if (status.ok())
    status = check("train_datagrams_max", has.train_datagrams_max, kTrainDatagramsMax);
  if (status.ok()) status = check("train_slices_max", has.train_slices_max, kTrainSlicesMax);
  if (status.ok()) {
    status = check("receive_buffer_bytes", has.receive_buffer_bytes, has.datagram_bytes_max);
  }
  return status;
}

// Makes a communicator of one process, whose transport reaches no other.
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

// Returns null if the options name no credentials.
Result<std::shared_ptr<const keys::Secrets>> read_secrets(const Options& options) {
  return keys::read_credentials(rendezvous::credentials_of(options));
}

// Returns the identity of the endpoint of `seat`. Without a seat, makes an identity for this
// communicator alone. Returns null without a secret.
Result<std::shared_ptr<const keys::OwnIdentity>> identity_of(
    internal::UdpEndpoint::Seat* seat, const std::shared_ptr<const keys::Secrets>& secrets) {
  if (seat != nullptr) return seat->identity();
  if (secrets == nullptr) return std::shared_ptr<const keys::OwnIdentity>();
  return keys::OwnIdentity::make(secrets, seal::prefers_chacha());
}

// Takes a secret or certificates from the environment if the program names none. Misspelt variables
// are reported in any case. A misspelt variable that should have protected the group is an error.
Status protect(Options& options) {
  const bool is_open =
      !rendezvous::credentials_of(options).any() && options.world_size.value_or(1) > 1;
  Status status = rendezvous::check_process_names();
  if (!is_open) status = Status();
  if (status.ok()) status = rendezvous::seal_by_default(options);
  if (!status.ok()) return Status::error(status.code(), "create: %s", status.c_str());
  return internal::check_sealing(options);
}

void log_obstacles(const std::vector<rendezvous::TransportOffer>& offers, rendezvous::Log& log) {
  for (const rendezvous::TransportOffer& offer : offers) {
    if (offer.obstacle.empty()) continue;
    log.print(rendezvous::LogLevel::debug, "transport", "%s cannot be used here: %s",
              std::string(to_string(offer.kind)).c_str(), offer.obstacle.c_str());
  }
}

// Adds this rank's number to an error that says that descriptors, threads or memory ran out.
Status no_sockets(const Options& options, const Status& status) {
  if (status.code() != StatusCode::kResourceExhausted) return status;
  return Status::error(status.code(), "rank %d cannot open its sockets: %s",
                       options.rank.value_or(0), status.c_str());
}

// Joins the group over the transports that this host has.
Result<std::unique_ptr<internal::Channels>> join_over_host(Options& options, std::stop_token stop,
                                                           rendezvous::Log& log) {
  if (Status status = keys::check_random(); !status.ok()) return status;
  auto secrets = read_secrets(options);
  if (!secrets.ok()) return secrets.status();
  auto seat = internal::UdpEndpoint::take_seat(options, *secrets);
  if (!seat.ok()) return no_sockets(options, seat.status());
  auto candidates = rendezvous::open_candidates(
      options, *seat != nullptr ? (*seat)->endpoint().candidate() : nullptr);
  if (!candidates.ok()) return no_sockets(options, candidates.status());
  candidates->local.process = *seat != nullptr ? (*seat)->endpoint().process() : random_bits();
  if (*seat != nullptr) {
    candidates->local.memory = (*seat)->endpoint().memory();
  } else if (internal::may_share_memory(options)) {
    candidates->local.memory = internal::new_memory_place();
  }
  auto identity = identity_of(seat->get(), *secrets);
  if (!identity.ok()) return identity.status();
  candidates->local.identity = std::move(*identity);
  const auto site = internal::site_of(options);
  if (!site.ok()) return site.status();
  candidates->local.site = *site;
  candidates->local.stop = std::move(stop);
  log_obstacles(candidates->local.offers, log);
  return internal::join(options, std::move(*candidates), log, std::move(*seat));
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(const Options& options) {
  return create(options, std::stop_token());
}

Result<std::unique_ptr<Communicator>> Communicator::create(const Options& options,
                                                           std::stop_token stop) {
  if (Status status = check_membership(options); !status.ok()) return status;
  if (options.transport == TransportKind::inproc) return create_alone_inproc(options);
  if (options.transport == TransportKind::custom) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: a transport of the caller's own is given to "
                         "create(options, transport), not named in the options");
  }
  Options chosen = options;
  if (Status status = protect(chosen); !status.ok()) return status;
  const auto level = rendezvous::parse_log_level(options.log_level);
  if (!level.ok()) return level.status();
  rendezvous::Log log(*level, static_cast<Rank>(options.rank.value_or(0)));
  if (!options.world_size) {
    const std::string why = rendezvous::reason_to_be_alone(rendezvous::process_environment());
    if (!why.empty()) log.print(rendezvous::LogLevel::warn, "alone", "%s", why.c_str());
  }
  const ExitStop exit_stop(std::move(stop));
  const std::string place = "rank " + std::to_string(options.rank.value_or(0)) + ": create";
  auto channels = without_exceptions(
      place.c_str(), [&] { return join_over_host(chosen, exit_stop.token(), log); });
  if (!channels.ok()) {
    // The caller gets the error, too. This line helps if a program does not show it.
    log.print(rendezvous::LogLevel::info, "not joined", "not joined \"%s\": %s",
              options.communicator_name.c_str(), channels.status().c_str());
    return channels.status();
  }
  return std::unique_ptr<Communicator>(new Communicator(chosen, std::move(*channels)));
}

Result<std::unique_ptr<Communicator>> Communicator::create(
    const Options& options, std::unique_ptr<DatagramTransport> transport) {
  if (Status status = check_membership(options); !status.ok()) return status;
  if (Status status = check_transport(transport.get()); !status.ok()) return status;
  Options chosen = options;
  if (Status status = protect(chosen); !status.ok()) return status;
  const auto level = rendezvous::parse_log_level(options.log_level);
  if (!level.ok()) return level.status();
  rendezvous::Log log(*level, static_cast<Rank>(options.rank.value_or(0)));
  const auto secrets = read_secrets(chosen);
  if (!secrets.ok()) return secrets.status();
  auto identity = identity_of(nullptr, *secrets);
  if (!identity.ok()) return identity.status();
  auto candidates = rendezvous::candidates_over(std::move(transport), chosen);
  candidates.local.identity = std::move(*identity);
  const auto site = internal::site_of(chosen);
  if (!site.ok()) return site.status();
  candidates.local.site = *site;
  auto channels = without_exceptions(
      "create", [&] { return internal::join(chosen, std::move(candidates), log); });
  if (!channels.ok()) return channels.status();
  return std::unique_ptr<Communicator>(new Communicator(chosen, std::move(*channels)));
}

Result<std::vector<std::unique_ptr<Communicator>>> Communicator::create_inproc(
    int size, const Options& options) {
  Options checked = options;
  checked.rank = 0;
  checked.world_size = size;
  if (checked.congestion == CongestionControl::automatic)
    checked.congestion = CongestionControl::none;  // there is no network
  if (Status status = check_membership(checked); !status.ok()) return status;
  return without_exceptions(
      "create_inproc", [&]() -> Result<std::vector<std::unique_ptr<Communicator>>> {
        transport::InprocOptions inproc;
        if (options.datagram_bytes != 0) inproc.datagram_bytes = options.datagram_bytes;
        checked.lanes = 1;
        auto transports = transport::make_inproc_group(size, inproc);
        protocol::EndpointConfig config;
        config.size = size;
        config.epoch = std::max<std::uint32_t>(1, std::random_device{}());
        config.seed = options.seed;
        config.datagram_bytes = inproc.datagram_bytes;
        config.window_bytes.assign(size,
                                   internal::window_to(checked, inproc.receive_buffer_bytes, size));
        std::vector<std::unique_ptr<Communicator>> communicators;
        for (int rank = 0; rank < size; ++rank) {
          config.self = static_cast<Rank>(rank);
          config.multicast = options.multicast && transports[rank]->limits().multicast;
          checked.rank = rank;
          auto driver = internal::make_channel(checked, TransportKind::inproc, config,
                                               std::move(transports[rank]));
          if (!driver.ok()) return driver.status();
          communicators.emplace_back(
              new Communicator(checked, std::make_unique<internal::Channels>(std::move(*driver))));
        }
        // Finds out which ranks receive this rank's multicast, because it multicasts only to those.
        for (auto& communicator : communicators) {
          if (config.multicast) (void)communicator->channels_->datagrams().deaf_to_multicast();
        }
        return communicators;
      });
}

}  // namespace leeway
