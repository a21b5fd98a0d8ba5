// How a communicator comes to be: transport, rendezvous, proof of paths.
#include <algorithm>
#include <random>

#include "base/limits.h"
#include "base/philox.h"
#include "leeway/communicator.h"
#include "runtime/bootstrap.h"
#include "runtime/communicator_core.h"
#include "runtime/log.h"
#include "runtime/transport_choice.h"
#include "transport/inproc/inproc_transport.h"

namespace leeway {
namespace {

using internal::Carrier;
using internal::CommunicatorCore;

// Data in flight to one peer when nothing else limits it. Enough for 100 Gb/s over 80 us; more only moves the queue from
// the sender to the receiver's socket buffer and out of its cache.
constexpr std::size_t kWindowBytesDefault = 1u << 20;

// Keys the seed of a carrier for exact calls: both number their calls from 0, and must not draw the same random numbers.
constexpr std::uint32_t kExactStream = 0x45000000;

// How long ranks try to hear each other over UCX before they do without it.
constexpr Duration kExactProofTime = std::chrono::seconds(10);

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

// What a receiver's buffer holds is shared by all its senders.
std::size_t window_to(const Options& options, std::size_t receive_buffer_bytes, int size) {
  const std::size_t share = receive_buffer_bytes / std::max(1, size - 1);
  return std::min(share, options.window_bytes != 0 ? options.window_bytes : kWindowBytesDefault);
}

protocol::EndpointConfig config_of(const Options& options, const runtime::Group& group, const runtime::Lane& lane) {
  protocol::EndpointConfig config;
  config.self = static_cast<Rank>(options.rank.value_or(0));
  config.size = options.world_size.value_or(1);
  config.epoch = group.epoch;
  config.seed = group.seed;
  config.datagram_bytes = lane.datagram_bytes;
  for (const auto& member : lane.members) {
    config.window_bytes.push_back(window_to(options, member.receive_buffer_bytes, config.size));
  }
  return config;
}

Result<std::unique_ptr<Carrier>> make_carrier(const Options& options, TransportKind kind,
                                              const protocol::EndpointConfig& config,
                                              std::unique_ptr<DatagramTransport> transport) {
  if (!options.faults.any()) return std::make_unique<Carrier>(kind, config, std::move(transport), nullptr);
  auto plan = impairment::FaultPlan::create(options.faults);
  if (!plan.ok()) return plan.status();
  auto faulty =
      std::make_unique<transport::FaultTransport>(std::move(transport), std::move(*plan), runtime::steady_now);
  const transport::FaultTransport* faults = faulty.get();
  return std::make_unique<Carrier>(kind, config, std::move(faulty), faults);
}

// A communicator of one process, whose transport nobody will hear.
Result<std::unique_ptr<Communicator>> create_alone_inproc(const Options& options) {
  if (options.world_size.value_or(1) > 1) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: transport inproc connects threads of one process, and %d processes were started: use "
                         "Communicator::create_inproc(), or another LEEWAY_TRANSPORT",
                         *options.world_size);
  }
  auto alone = Communicator::create_inproc(1, options);
  if (!alone.ok()) return alone.status();
  return std::move(alone->front());
}

// All ranks' least.
Result<bool> all_say(CommunicatorCore& core, bool yes) {
  std::int32_t vote = yes ? 1 : 0;
  collective::OperationSpec spec{.kind = collective::OperationKind::all_reduce,
                                 .input = {&vote, 1, DataType::i32},
                                 .output = {&vote, 1, DataType::i32}};
  spec.options.op = ReduceOp::min;
  const auto report = core.run(spec);
  if (!report.ok()) return report.status();
  return vote == 1;
}

// UCX for exact calls, when it is better than TCP from every rank to every other, and works. Ranks find out for
// themselves and agree over the main carrier; only a vote that fails is an error.
Status use_ucx_for_exact(CommunicatorCore& core, runtime::TransportChoice& choice, const runtime::Group& group,
                         Duration timeout, runtime::Log& log) {
  std::string way;
  auto ucx = choice.connect(*group.exact, core.rank());
  const bool better = ucx.ok() && (*ucx)->better_than_tcp(way);
  if (!ucx.ok()) log.print(runtime::LogLevel::info, "exact over ucx", "no UCX for exact calls: %s", ucx.status().c_str());
  auto agreed = all_say(core, better);
  if (!agreed.ok()) return agreed.status();
  if (!*agreed) {
    log.print(runtime::LogLevel::debug, "exact over ucx", "no UCX for exact calls: not all ranks have more than TCP; here: %s",
              way.c_str());
    return Status();
  }
  auto config = config_of(core.options(), group, *group.exact);
  config.seed = keyed_hash(config.seed, kExactStream, 0, 0, 0);
  auto carrier = make_carrier(core.options(), group.exact->kind, config, (*ucx)->take());
  if (!carrier.ok()) return carrier.status();
  const Status proven = (*carrier)->prove_paths(std::min(timeout, kExactProofTime));
  if (!proven.ok()) log.print(runtime::LogLevel::warn, "exact over ucx", "no UCX for exact calls: %s", proven.c_str());
  agreed = all_say(core, proven.ok());
  if (!agreed.ok()) return agreed.status();
  if (!*agreed) return Status();
  log.print(runtime::LogLevel::info, "exact over ucx", "exact calls go over UCX: %s", way.c_str());
  core.use_for_exact(std::move(*carrier));
  return Status();
}

void log_candidates(const runtime::TransportChoice& choice, runtime::Log& log) {
  for (const auto& candidate : choice.candidates()) {
    if (candidate.opened != nullptr) continue;
    log.print(runtime::LogLevel::debug, "transport", "%s cannot be used here: %s",
              std::string(to_string(candidate.kind)).c_str(), candidate.obstacle.c_str());
  }
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
    return std::max<Duration>(options.join_timeout - (runtime::steady_now() - start), std::chrono::seconds(1));
  };

  auto choice = runtime::TransportChoice::open(options);
  if (!choice.ok()) return choice.status();
  log_candidates(*choice, log);
  const auto group = runtime::join_group(choice->local_configuration(options), &log);
  if (!group.ok()) return group.status();

  const auto config = config_of(options, *group, group->datagrams);
  auto opened = choice->connect(group->datagrams, config.self);
  if (!opened.ok()) return opened.status();
  auto carrier = make_carrier(options, group->datagrams.kind, config, (*opened)->take());
  if (!carrier.ok()) return carrier.status();
  if (Status status = (*carrier)->prove_paths(time_left()); !status.ok()) return status;
  auto core = std::make_unique<CommunicatorCore>(options, std::move(*carrier));
  if (group->exact) {
    if (Status status = use_ucx_for_exact(*core, *choice, *group, time_left(), log); !status.ok()) return status;
  }
  return std::unique_ptr<Communicator>(new Communicator(std::move(core)));
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
    auto carrier = make_carrier(checked, TransportKind::inproc, config, std::move(transports[rank]));
    if (!carrier.ok()) return carrier.status();
    communicators.emplace_back(new Communicator(std::make_unique<CommunicatorCore>(checked, std::move(*carrier))));
  }
  return communicators;
}

}  // namespace leeway
