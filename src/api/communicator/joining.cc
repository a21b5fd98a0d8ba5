#include "communicator/joining.h"

#include <algorithm>
#include <stop_token>
#include <string>

#include "base/limits.h"
#include "base/marks.h"
#include "communicator/lane_joining.h"
#include "communicator/memory_sharing.h"
#include "communicator/near_route.h"
#include "observe/watch.h"
#include "rendezvous/address.h"
#include "rendezvous/bootstrap.h"
#include "rendezvous/printable.h"
#include "transport/near_datagram.h"

namespace leeway::internal {
namespace {

using rendezvous::LogLevel;

// Least time for proving that every rank is heard, even if the rendezvous took all of join_timeout.
constexpr Duration kProofTimeMin = std::chrono::seconds(1);

class Joining {
 public:
  Joining(Options& options, rendezvous::Candidates candidates, rendezvous::Log& log,
          std::unique_ptr<UdpEndpoint::Seat> seat)
      : options_(options),
        candidates_(std::move(candidates)),
        seat_(std::move(seat)),
        log_(log),
        end_(driving::steady_now() + options.join_timeout) {}

  Result<std::unique_ptr<Channels>> run();

 private:
  static Duration patience_until(Instant end) {
    return std::max<Duration>(end - driving::steady_now(), kProofTimeMin);
  }
  Duration time_left() const { return patience_until(end_); }
  // Returns true if the length of datagrams is measured. With a given size, or with injected
  // faults, this rank keeps the size of the rendezvous.
  bool measures_size() const { return options_.datagram_bytes == 0 && !options_.faults.any(); }
  void decide_congestion();
  Status go_where_told();
  Status use_datagrams();
  void log_memory();
  Status check_shared();
  Status use_lanes();
  Status go_near();
  void go_by_sites();
  Result<std::unique_ptr<Channel>> drive(rendezvous::Candidate& candidate) const;
  Result<std::unique_ptr<Channel>> open(rendezvous::Candidate& candidate,
                                        const protocol::EndpointConfig& config) const;
  void join_multicast(rendezvous::Candidate& candidate);
  void log_deaf();
  Result<bool> all_say(bool yes) { return internal::all_say(*channels_, yes); }

  Options& options_;
  rendezvous::Candidates candidates_;
  std::unique_ptr<UdpEndpoint::Seat> seat_;
  rendezvous::Log& log_;
  const Instant end_;
  rendezvous::Group group_;
  std::unique_ptr<Channels> channels_;
};

Result<std::unique_ptr<Channels>> Joining::run() {
  auto group = rendezvous::join_group(candidates_.local, &log_);
  if (!group.ok()) return group.status();
  group_ = std::move(*group);
  decide_congestion();
  if (Status status = go_where_told(); !status.ok()) return status;
  if (Status status = use_datagrams(); !status.ok()) return status;
  if (Status status = check_shared(); !status.ok()) return status;
  if (options_.lanes > 1) {
    if (Status status = use_lanes(); !status.ok()) return status;
  }
  if (seat_ != nullptr && group_.datagrams.kind == TransportKind::udp) {
    channels_->keep(seat_->endpoint().shared_from_this());
    channels_->keep_alone(std::move(seat_));
  }
  if (Status status = go_near(); !status.ok()) return status;
  go_by_sites();
  channels_->keep_alone(std::move(group_.place));
  return std::move(channels_);
}

// All ranks have the same table, so all choose the same congestion control.
void Joining::decide_congestion() {
  if (options_.congestion != CongestionControl::automatic) return;
  const std::string why = rendezvous::why_far(group_);
  options_.congestion = why.empty() ? CongestionControl::none : CongestionControl::wan;
  if (!why.empty())
    log_.print(LogLevel::info, "congestion", "congestion control wan: %s", why.c_str());
}

// If peers reach this rank at another address than it guessed, moves its socket to that address.
Status Joining::go_where_told() {
  const rendezvous::GroupTransport& lane = group_.datagrams;
  if (lane.kind != TransportKind::udp || !candidates_.local.may_move) return Status();
  const std::vector<std::byte>& told = lane.members[candidates_.local.rank].address;
  if (told == candidates_.local.data_address) return Status();
  const auto address = rendezvous::address_from_bytes(told);
  const auto before = rendezvous::address_from_bytes(candidates_.local.data_address);
  if (!address || !before)
    return Status::error(StatusCode::kInternal, "create: rendezvous gave a malformed address");
  const Status status = seat_ != nullptr ? seat_->endpoint().move_to(options_, *address)
                                         : candidates_.move_udp(options_, *address);
  if (!status.ok()) {
    return Status::error(status.code(),
                         "rank %u: others reach this host at %s, and not at %s, where its socket "
                         "is; it cannot be moved: %s; set LEEWAY_BIND",
                         unsigned{candidates_.local.rank}, address->to_string().c_str(),
                         before->to_string().c_str(), status.c_str());
  }
  log_.print(LogLevel::info, "address",
             "the ranks met by %s: data goes from there, and not from %s",
             address->to_string().c_str(), before->to_string().c_str());
  return Status();
}

Status Joining::use_datagrams() {
  auto connected = candidates_.connect(group_.datagrams, candidates_.local.rank);
  if (!connected.ok()) return connected.status();
  if (group_.multicast) join_multicast(**connected);
  auto driver = drive(**connected);
  if (!driver.ok()) return driver.status();
  channels_ = std::make_unique<Channels>(std::move(*driver));
  observe::log_joined(channels_->datagrams(), options_, group_.keys != nullptr, log_);
  if (channels_->config().multicast) log_deaf();
  log_memory();
  return Status();
}

void Joining::log_memory() {
  if (!may_share_memory(options_) || group_.datagrams.kind != TransportKind::udp) return;
  if (!candidates_.local.memory.shares()) {
    log_.print(LogLevel::info, "memory", "no shared memory with ranks of this host: %s",
               check_memory().c_str());
    return;
  }
  const std::string obstacles = channels_->datagrams().memory_obstacles(/*of_this_host=*/true);
  if (obstacles.empty()) return;
  log_.print(LogLevel::warn, "memory", "ranks of this host are reached by UDP: %s",
             obstacles.c_str());
}

// If shared memory was asked for by name, it must connect all ranks; otherwise all ranks fail.
Status Joining::check_shared() {
  if (options_.transport != TransportKind::shm || candidates_.local.size == 1) return Status();
  const bool shared = channels_->datagrams().kind() == TransportKind::shm;
  const auto agreed = all_say(shared);
  if (!agreed.ok()) return agreed.status();
  if (*agreed) return Status();
  const std::string why = !candidates_.local.memory.shares() ? check_memory().c_str()
                          : shared                           ? "other ranks do not share theirs"
                                   : channels_->datagrams().memory_obstacles(false);
  return Status::error(StatusCode::kUnsupported,
                       "rank %u cannot use shm: %s; LEEWAY_TRANSPORT=mixed takes memory where it "
                       "can",
                       unsigned{candidates_.local.rank}, why.c_str());
}

// Opens a channel over the candidate, which is connected, and proves that every rank is heard.
Result<std::unique_ptr<Channel>> Joining::drive(rendezvous::Candidate& candidate) const {
  const rendezvous::GroupTransport& lane = group_.datagrams;
  const Instant end = driving::steady_now() + time_left();
  protocol::EndpointConfig config;
  config.self = candidates_.local.rank;
  config.size = candidates_.local.size;
  config.epoch = group_.epoch;
  config.seed = group_.seed;
  config.one_host = rendezvous::shares_host(group_);
  config.datagram_bytes = lane.datagram_bytes;
  if (group_.keys != nullptr) {
    if (lane.datagram_bytes < limits::kDatagramBytesMin + seal::kOverheadBytes) {
      return Status::error(StatusCode::kUnsupported,
                           "create: a rank can take datagrams of %u bytes only, too few to seal",
                           static_cast<unsigned>(lane.datagram_bytes));
    }
    config.datagram_bytes -= seal::kOverheadBytes;
  }
  config.multicast = options_.multicast && candidate.limits().multicast;
  if (lane.kind == TransportKind::udp && measures_size() && !options_.multicast &&
      may_share_memory(options_) && all_may_share(group_)) {
    // The length for memory; shortened below unless memory connects all ranks.
    config.datagram_bytes = transport::kNearDatagramBytes;
  }
  for (const auto& member : lane.members) {
    config.window_bytes.push_back(window_to(options_, member.receive_buffer_bytes, config.size));
  }
  if (options_.congestion != CongestionControl::none) {  // peers may not be paced
    Options unpaced;
    unpaced.window_bytes = options_.window_bytes;
    config.peers_window_bytes =
        window_to(unpaced, lane.members[config.self].receive_buffer_bytes, config.size);
  }
  auto channel = open(candidate, config);
  if (!channel.ok()) return channel.status();
  const std::stop_callback on_stop(candidates_.local.stop, [&] { (*channel)->abort(); });
  const auto tell = tell_paths(log_);
  const Duration proof_time = std::min(patience_until(end), kPathProofTime);
  if (Status status = (*channel)->prove_paths(proof_time, tell); !status.ok()) return status;
  (*channel)->prove_memory();
  // All ranks must agree on the size here, or none. So the condition (WIRE 10.4) uses only what all
  // ranks know, and no length that this rank alone was given.
  const bool may_be_long =
      all_may_share(group_) || lane.datagram_bytes > protocol::kBaseDatagramBytes;
  if (lane.kind == TransportKind::udp && config.size > 1 && may_be_long) {
    const Status status = (*channel)->agree_on_size(measures_size(), patience_until(end), tell);
    if (!status.ok()) return status;
  }
  return channel;
}

Result<std::unique_ptr<Channel>> Joining::open(rendezvous::Candidate& candidate,
                                               const protocol::EndpointConfig& config) const {
  const TransportKind kind = group_.datagrams.kind;
  if (seat_ == nullptr || kind != TransportKind::udp) {
    if (slows_for_marks(options_.congestion)) candidate.allow_marks();
    auto channel = make_channel(options_, kind, config, candidate.take(), &group_);
    if (channel.ok()) observe::watch(*(*channel)->driver(), options_, log_);
    return channel;
  }
  auto slots = seat_->endpoint().meet(group_, config.self);
  if (!slots.ok()) return slots.status();
  seat_->endpoint().pace(options_);
  observe::watch(*seat_->endpoint().driver(), options_, log_, seat_->endpoint().segmentation());
  return open_channel(options_, seat_->endpoint().driver(), config, std::move(*slots));
}

// A failure is only logged: without multicast, every packet is sent to each rank by itself.
void Joining::join_multicast(rendezvous::Candidate& candidate) {
  const auto address = rendezvous::address_from_bytes(group_.multicast->address);
  const Status status = address ? candidate.join_multicast(*address, group_.multicast->port)
                                : Status::error(StatusCode::kInternal, "malformed group address");
  if (status.ok()) return;
  log_.print(LogLevel::warn, "multicast", "no multicast from and to this rank: %s", status.c_str());
}

void Joining::log_deaf() {
  const std::vector<Rank> deaf = channels_->datagrams().deaf_to_multicast();
  if (deaf.empty()) return;
  log_.print(LogLevel::warn, "multicast",
             "rank(s) %s do not hear our multicast and are sent everything by itself: does the "
             "network carry multicast between these hosts?",
             rendezvous::list_ranks(deaf).c_str());
}

Status Joining::use_lanes() {
  const Status status = join_lanes({.options = options_,
                                    .group = group_,
                                    .local = candidates_.local,
                                    .endpoint = seat_ == nullptr ? nullptr : &seat_->endpoint(),
                                    .measures_size = measures_size(),
                                    .patience = time_left(),
                                    .log = log_},
                                   *channels_);
  options_.lanes = channels_->lanes();
  return status;
}

// The condition follows from the table that all ranks have, so all of them vote or none does.
Status Joining::go_near() {
  if (group_.datagrams.kind != TransportKind::udp || candidates_.local.size == 1 ||
      !all_may_share(group_)) {
    return Status();
  }
  std::string why;
  const bool willing =
      channels_->datagrams().kind() == TransportKind::shm && !options_.faults.any();
  auto near = meet_near(*channels_, options_, willing, candidates_.local.stop, why);
  if (!near.ok()) return near.status();
  if (*near != nullptr) {
    channels_->go_near(std::move(*near));
  } else {
    log_.print(LogLevel::info, "memory",
               "exact calls go as datagrams: no file of memory for all ranks: %s", why.c_str());
  }
  return Status();
}

// All ranks have the same table, so all make this route or none does.
void Joining::go_by_sites() {
  if (group_.sites.empty()) return;
  const auto map = collective::SiteMap::of(group_.sites, candidates_.local.rank);
  if (!map) {
    log_.print(LogLevel::warn, "no sites",
               "calls go straight between all ranks: LEEWAY_SITE must name two sites or more, of "
               "two ranks or more, equally many in each, on all ranks");
    return;
  }
  log_.print(LogLevel::info, "sites",
             "%d sites of %d ranks: large calls go inside them, then "
             "between them",
             map->sites(), map->ranks_per_site());
  channels_->go_by_sites(*map, options_, rendezvous::crosses_sites(group_));
}

}  // namespace

Channel::TellPath tell_paths(rendezvous::Log& log) {
  return [&log](Rank peer, const std::string& facts) {
    log.print(LogLevel::warn, "path", "the path to rank %u failed: %s", unsigned{peer},
              facts.c_str());
  };
}

Result<bool> all_say(Channels& channels, bool yes) {
  std::int32_t vote = yes ? 1 : 0;
  collective::OperationSpec spec{.kind = collective::OperationKind::all_reduce,
                                 .input = {&vote, 1, DataType::i32},
                                 .output = {&vote, 1, DataType::i32}};
  spec.options.op = ReduceOp::min;
  const auto report = channels.run(spec);
  if (!report.ok()) return report.status();
  return vote == 1;
}

Result<std::unique_ptr<Channels>> join(Options& options, rendezvous::Candidates candidates,
                                       rendezvous::Log& log,
                                       std::unique_ptr<UdpEndpoint::Seat> seat) {
  return Joining(options, std::move(candidates), log, std::move(seat)).run();
}

}  // namespace leeway::internal
