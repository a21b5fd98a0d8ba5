// Interface of congestion controllers: what they are told (Sample) and how fast they let a rank
// send (Pace).
//
// A controller reads no clock, since time comes in with each sample. It allocates nothing after its
// construction. It sees one rank's uplink as a whole (uplink_bundle.h): a controller for each peer
// would make the rank take N - 1 shares of the path.
#pragma once

#include <cstdint>
#include <memory>

#include "base/time.h"
#include "leeway/options.h"

namespace leeway::congestion {

// Size assumed for a packet, in windows and floors.
inline constexpr double kPacketBytes = 1500;

// Facts about the uplink that one report of one peer shows.
struct Sample {
  Instant now;
  // Round trip of the newest datagram that the report covers, without the time the receiver held
  // the report back.
  Duration rtt{0};
  // Shortest round trip of this link lately.
  Duration rtt_min{0};
  // Time spent in the uplink's queue: a link's one-way delay above its least. The least value of
  // all links counts, since one link may also have a queue at its peer.
  Duration queueing{0};
  // Jitter: standard deviation of the one-way delay without a queue, of the link where it is least
  // (delay_jitter.h). 0 if unknown.
  Duration jitter{0};
  // Time in which `delivered_bytes` arrived at all peers. 0 if unknown.
  Duration interval{0};
  std::uint64_t delivered_bytes = 0;
  // Bytes that arrived at this peer since its last report.
  std::uint64_t newly_delivered_bytes = 0;
  // Datagrams that this report newly covers, and how many count as lost. A datagram that counted as
  // lost may arrive after all; it is then subtracted, so `lost` may be negative.
  std::uint32_t covered = 0;
  std::int32_t lost = 0;
  // Arrived datagrams that a queue marked; without ECN it would have dropped them.
  std::uint32_t marked = 0;
  // Pace::phase when the datagrams were sent; kNoPhase if they left in several phases.
  std::uint32_t phase = 0;
  // Set if the application or a peer's window limited what was sent, and not the controller.
  bool limited = false;
};

inline constexpr std::uint32_t kNoPhase = UINT32_MAX;

struct Pace {
  double bits_per_second = 0;
  // Most bytes in flight to all peers together.
  std::uint64_t in_flight_bytes = UINT64_MAX;
  // Most bytes that leave at once. 0 means a quarter of a millisecond at the rate.
  std::size_t quantum_bytes = 0;
  // Number of the controller's present state. Samples name it (Sample::phase), so the controller
  // knows in which state the lost datagrams were sent.
  std::uint32_t phase = 0;
};

// When peers are asked for reports: every quarter of a round trip, and before the window is full.
struct Questions {
  // Least time between two questions.
  Duration least = std::chrono::milliseconds(1);
  // Ask a peer also when half of its link's share of the window is in flight. Otherwise, with many
  // links that send in turn, most peers would not be asked before the window is full.
  bool by_share = false;
};

class Controller {
 public:
  Controller() = default;
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;
  virtual ~Controller() = default;

  virtual void on_sample(const Sample& sample) = 0;
  virtual Pace pace() const = 0;
  // Share of losses, 0 to 1, that this controller takes for the network's own.
  virtual double noise() const { return 0; }
  // Returns whether near peers (kNear in uplink_bundle.cc) are exempt from the pace. If false, data
  // to all peers keeps it.
  virtual bool spares_near() const { return true; }
  virtual Questions questions() const { return {}; }
  // Returns whether a queue at a peer's own access link, where several senders may meet, limits
  // what is sent there (link_governor.h).
  virtual bool governs_links() const { return false; }
};

struct Settings {
  CongestionControl control = CongestionControl::none;
  std::uint64_t rate_bits_per_second = 0;  // for `fixed`, which needs more than 0
};

// Returns null for `none` and `automatic`.
std::unique_ptr<Controller> make_controller(const Settings& settings);

}  // namespace leeway::congestion
