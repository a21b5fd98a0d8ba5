#include "communicator/lane_joining.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <stop_token>

#include "base/marks.h"
#include "base/philox.h"
#include "communicator/datagram_route.h"
#include "communicator/joining.h"
#include "communicator/memory_sharing.h"
#include "observe/watch.h"
#include "rendezvous/address.h"
#include "rendezvous/candidate.h"

namespace leeway::internal {
namespace {

using rendezvous::LogLevel;

// Stream tag for the lanes' seeds. All lanes number their calls from 0, so with one seed they would
// draw the same random numbers.
constexpr std::uint32_t kLaneStream = 0x4C000001;

// A rank's description of one of its lanes for the others (WIRE 7.19).
struct Told {
  std::uint64_t receive_buffer_bytes = 0;
  std::uint64_t port = 0;  // 0 if the rank has no such lane
  std::array<std::byte, 16> memory_token{};
};
static_assert(sizeof(Told) == 32);

class LaneJoining {
 public:
  LaneJoining(const LaneMeeting& meeting, Channels& channels)
      : meeting_(meeting), channels_(channels), end_(driving::steady_now() + meeting.patience) {}

  Status run();

 private:
  // A lane of this rank that no other rank knows yet.
  struct Own {
    std::shared_ptr<UdpEndpoint> endpoint;  // or null, if this communicator has a socket of its own
    std::unique_ptr<rendezvous::Candidate> candidate;
    rendezvous::MemoryPlace memory;
  };

  int further() const { return meeting_.options.lanes - 1; }
  Duration time_left() const {
    return std::max<Duration>(end_ - driving::steady_now(), std::chrono::seconds(1));
  }
  Status open_own();
  Status open_one(int lane);
  Result<std::vector<Told>> tell() const;
  rendezvous::Group group_of(const std::vector<Told>& all, int lane) const;
  Status connect(const std::vector<Told>& all);
  Result<std::unique_ptr<Channel>> connect(const rendezvous::Group& group, int lane);
  Status prove(Channel& channel) const;

  const LaneMeeting& meeting_;
  Channels& channels_;
  const Instant end_;
  std::vector<Own> own_;
  std::vector<std::unique_ptr<Channel>> lanes_;
};

Status LaneJoining::run() {
  const Status opened = open_own();
  const auto told = tell();
  if (!opened.ok()) return opened;
  if (!told.ok()) return told.status();
  const auto lacks = [](const Told& one) { return one.port == 0 || one.port > UINT16_MAX; };
  const auto first = std::find_if(told->begin(), told->end(), lacks);
  if (first != told->end()) {
    return Status::error(StatusCode::kUnavailable,
                         "create: rank %td could not open its %d further lanes (LEEWAY_LANES)",
                         (first - told->begin()) / further(), further());
  }
  const Status connected = connect(*told);
  const auto agreed = all_say(channels_, connected.ok());
  if (!connected.ok()) return connected;
  if (!agreed.ok()) return agreed.status();
  if (!*agreed) {
    return Status::error(
        StatusCode::kUnavailable,
        "create: another rank could not use its lanes (LEEWAY_LANES), and says why");
  }
  channels_.use_lanes(std::move(lanes_));
  meeting_.log.print(LogLevel::info, "lanes", "large calls go over %d lanes", further() + 1);
  return Status();
}

Status LaneJoining::open_own() {
  for (int lane = 1; lane <= further(); ++lane) {
    if (Status status = open_one(lane); !status.ok()) return status;
  }
  return Status();
}

Status LaneJoining::open_one(int lane) {
  Own own;
  if (meeting_.endpoint != nullptr) {
    auto opened = meeting_.endpoint->lane(meeting_.options, lane);
    if (!opened.ok()) return opened.status();
    own.endpoint = std::move(*opened);
    own.candidate = own.endpoint->candidate();
    own.memory = own.endpoint->memory();
  } else {
    const auto address = rendezvous::address_from_bytes(
        meeting_.group.datagrams.members[meeting_.local.rank].address);
    if (!address) return Status::error(StatusCode::kInternal, "create: malformed own address");
    auto opened = rendezvous::open_candidate(TransportKind::udp,
                                             options_of_lane(meeting_.options, lane), *address);
    if (!opened.ok()) return opened.status();
    own.candidate = std::move(*opened);
    if (slows_for_marks(meeting_.options.congestion)) own.candidate->allow_marks();
    if (may_share_memory(meeting_.options)) own.memory = new_memory_place();
  }
  own_.push_back(std::move(own));
  return Status();
}

// Exchanges descriptions of lanes. Returns the descriptions of all ranks, by rank, then by lane.
Result<std::vector<Told>> LaneJoining::tell() const {
  std::vector<Told> own(static_cast<std::size_t>(further()));
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const rendezvous::GroupTransport::Member place = own_[i].candidate->place();
    own[i] = {place.receive_buffer_bytes, place.port, own_[i].memory.token};
  }
  std::vector<Told> all(own.size() * static_cast<std::size_t>(channels_.size()));
  collective::OperationSpec spec{.kind = collective::OperationKind::all_gather,
                                 .input = {own.data(), own.size() * sizeof(Told), DataType::u8},
                                 .output = {all.data(), all.size() * sizeof(Told), DataType::u8}};
  spec.options.delivery = exact(time_left());
  const auto report = channels_.run(spec);
  if (!report.ok()) return report.status();
  return all;
}

// Returns the group as if ranks had met over this lane.
rendezvous::Group LaneJoining::group_of(const std::vector<Told>& all, int lane) const {
  rendezvous::Group group = meeting_.group;
  for (std::size_t rank = 0; rank < group.datagrams.members.size(); ++rank) {
    const Told& told =
        all[rank * static_cast<std::size_t>(further()) + static_cast<std::size_t>(lane - 1)];
    group.datagrams.members[rank].port = static_cast<std::uint16_t>(told.port);
    group.datagrams.members[rank].receive_buffer_bytes = told.receive_buffer_bytes;
    if (!group.memories.empty()) group.memories[rank].token = told.memory_token;
  }
  return group;
}

Status LaneJoining::connect(const std::vector<Told>& all) {
  for (int lane = 1; lane <= further(); ++lane) {
    auto channel = connect(group_of(all, lane), lane);
    if (!channel.ok()) return channel.status();
    if (Status status = prove(**channel); !status.ok()) {
      return Status::error(status.code(), "create: lane %d: %s", lane, status.c_str());
    }
    lanes_.push_back(std::move(*channel));
  }
  return Status();
}

Result<std::unique_ptr<Channel>> LaneJoining::connect(const rendezvous::Group& group, int lane) {
  const Options options = options_of_lane(meeting_.options, lane);
  Own& own = own_[static_cast<std::size_t>(lane - 1)];
  protocol::EndpointConfig config = channels_.config();
  config.intact.clear();
  config.seed = keyed_hash(group.seed, static_cast<std::uint32_t>(lane), kLaneStream, 0, 0);
  for (std::size_t rank = 0; rank < config.window_bytes.size(); ++rank) {
    config.window_bytes[rank] =
        window_to(options, group.datagrams.members[rank].receive_buffer_bytes, config.size);
  }
  if (own.endpoint == nullptr) {
    if (Status status = own.candidate->connect(group.datagrams, config.self); !status.ok())
      return status;
    auto driver = make_driver(options, TransportKind::udp, config.self, own.candidate->take(),
                              &group, static_cast<std::uint8_t>(lane));
    if (!driver.ok()) return driver.status();
    (*driver)->pace_with(*channels_.datagrams().driver());
    observe::watch(**driver, options, meeting_.log);
    std::vector<Rank> slots(static_cast<std::size_t>(config.size));
    std::iota(slots.begin(), slots.end(), Rank{0});
    return open_channel(options, std::move(*driver), config, std::move(slots));
  }
  auto slots = own.endpoint->meet(group, config.self);
  if (!slots.ok()) return slots.status();
  observe::watch(*own.endpoint->driver(), options, meeting_.log, own.endpoint->segmentation());
  return open_channel(options, own.endpoint->driver(), config, std::move(*slots));
}

Status LaneJoining::prove(Channel& channel) const {
  const std::stop_callback on_stop(meeting_.local.stop, [&] { channel.abort(); });
  const auto tell = tell_paths(meeting_.log);
  const Duration proof_time = std::min(time_left(), kPathProofTime);
  if (Status status = channel.prove_paths(proof_time, tell); !status.ok()) return status;
  channel.prove_memory();
  const std::size_t around = meeting_.group.keys == nullptr ? 0 : seal::kOverheadBytes;
  if (channel.config().datagram_bytes <= protocol::kBaseDatagramBytes - around) return Status();
  return channel.agree_on_size(meeting_.measures_size, time_left(), tell);
}

}  // namespace

Status join_lanes(const LaneMeeting& meeting, Channels& channels) {
  if (channels.size() == 1) return Status();
  const auto alone = [&](const char* why) {
    meeting.log.print(LogLevel::warn, "one lane", "LEEWAY_LANES=%d makes no difference: %s",
                      meeting.options.lanes, why);
    return Status();
  };
  if (meeting.group.datagrams.kind != TransportKind::udp)
    return alone("datagrams do not go by UDP");
  const std::stop_callback on_stop(meeting.local.stop, [&] { channels.abort(); });
  const auto near = all_say(channels, channels.datagrams().kind() == TransportKind::shm);
  if (!near.ok()) return near.status();
  if (*near) return alone("memory connects all ranks");
  return LaneJoining(meeting, channels).run();
}

}  // namespace leeway::internal
