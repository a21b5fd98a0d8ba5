// Numbers of a driver for people who watch it: counts since it began, and its state now.
//
// The driving thread fills in a snapshot when it is due (Driver::observe()) and hands it to the
// Observer. Between two snapshots nobody reads the core, so no lock lies on the data path.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/network_address.h"
#include "base/time.h"
#include "collective/request.h"
#include "leeway/options.h"
#include "leeway/transport.h"
#include "protocol/endpoint.h"
#include "seal/forwarding.h"
#include "seal/relay_shares.h"
#include "transport/whereabouts.h"

namespace leeway::driving {

// State of a peer, as this rank sees it.
enum class PeerState : std::uint8_t {
  joining = 0,  // the peer was not heard yet
  alive,
  suspect,  // the peer is silent while something is expected of it
  dead,     // the peer was given up
  gone,     // it left
};
inline constexpr int kPeerStates = 5;
const char* to_string(PeerState state);

// The reason for which a link's data waited.
enum class Limit : std::uint8_t {
  application = 0,  // there was nothing to send or receive
  uplink,           // this host: its pace, or its processor
  grant,            // the data in flight filled the room that the peer has granted
  peer,             // the peer was late: it had not begun, or not sent or answered
  deadline,         // operations ended by their deadline
  relay,            // the relay on the way has no share for more
};
inline constexpr int kLimits = 6;
const char* to_string(Limit limit);

struct PeerView {
  Rank rank = kNoRank;
  Rank process = kNoRank;  // slot of the process; the same in all communicators that share it
  PeerState state = PeerState::joining;
  bool rtt_measured = false;
  bool relayed = false;  // reached through another process, because there is no path
  Rank relay = kNoRank;  // the relaying process's rank, if it is a member
  Duration rtt{0};
  Duration rtt_min{0};   // 0 if nothing is paced, because then it is not measured
  Duration queueing{0};  // likewise
  double loss = 0;       // smoothed share of our datagrams that did not arrive
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_delivered = 0;  // bytes of `bytes_sent` that arrived, as the peer reported
  std::uint64_t bytes_received = 0;
  std::uint64_t datagrams_sent = 0;
  std::uint64_t datagrams_lost = 0;  // lost, among those that the peer's reports cover
  std::uint64_t datagrams_received = 0;
  std::uint32_t datagrams_in_flight = 0;
  std::uint32_t window_datagrams = 0;
  std::array<Duration, kLimits> limited{};  // time spent under each Limit
};

struct ChannelView {
  std::string name;
  std::uint32_t epoch = 0;  // tells communicators of the same name apart
  Rank self = 0;
  int size = 0;
  std::size_t datagram_bytes = 0;
  int rounds_open = 0;
  protocol::EndpointCounters counters;
  std::vector<PeerView> peers;  // peers by rank, without `self`
};

struct UplinkView {
  bool paced = false;
  double bits_per_second = 0;
  std::uint64_t in_flight_bytes = 0;
  std::uint64_t in_flight_bytes_max = 0;
  double noise = 0;  // share of losses that are put down to the network's own
};

// A process that relays for this one, and refused some datagrams because its share was used up.
struct RelayView {
  Rank process = kNoRank;
  NetworkAddress address;
  seal::RelayShares::Share share;
};

struct Snapshot {
  Instant at;
  TransportKind kind = TransportKind::udp;
  bool sealed = false;
  TransportCounters wire;
  // The system's latest refusals to send. The count is 0 if there were none, or if peers have no
  // network addresses.
  transport::SendRefusals refused_sends;
  seal::Counters seal;                                   // zeros if nothing is sealed
  seal::Forwarding::Counters forwarded;                  // datagrams forwarded for others; likewise
  std::array<std::uint64_t, wire::kRefusals> refused{};  // datagrams that belong to no communicator
  UplinkView uplink;
  std::vector<RelayView> relays;
  std::vector<ChannelView> channels;
};

// An observer hears of a driver's work. It is called on the thread that drives, which waits for it.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  // Called ten times a second while something happens.
  virtual void on_snapshot(const Snapshot& snapshot) = 0;
  // An operation of that channel ended.
  virtual void on_done(const std::string& channel, const collective::Request& request) = 0;
};

// Interval of snapshots.
inline constexpr Duration kSnapshotEvery = std::chrono::milliseconds(100);

}  // namespace leeway::driving
