// Interface of congestion controllers: what they are told (Sample) and how fast they let a rank
// send (Pace).
//
// A controller is pure: time comes in with each sample, nothing is allocated after it was made. It
// sees one rank's uplink as a whole (uplink_bundle.h); N - 1 controllers would take N - 1 shares.
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
  // Time spent in the uplink's queue: one-way delay above the link's least. It is the value of the
  // link where this is shortest.
  Duration queueing{0};
  // Standard deviation of the delays' own variation, of the link where it is least
  // (delay_jitter.h). 0 if not known.
  Duration jitter{0};
  // Time in which `delivered_bytes` arrived at all peers. 0 if unknown.
  Duration interval{0};
  std::uint64_t delivered_bytes = 0;
  // Bytes that arrived at this peer since its last report.
  std::uint64_t newly_delivered_bytes = 0;
  // Datagrams that this report decides about, and how many of them did not arrive. Overtaken
  // datagrams count as lost, and later as delivered: `lost` may be negative then.
  std::uint32_t covered = 0;
  std::int32_t lost = 0;
  // Arrived datagrams that a queue marked; without ECN it would have dropped them.
  std::uint32_t marked = 0;
  // Bytes in flight to all peers after this report.
  std::uint64_t in_flight_bytes = 0;
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
  // Marks what is sent from now on, so that its loss is attributed to this gain.
  std::uint32_t phase = 0;
};

// When peers are asked for reports: every quarter of a round trip, and before the window is full.
struct Questions {
  // Least time between two questions.
  Duration least = std::chrono::milliseconds(1);
  // Ask a peer also when half of its link's share of the window is in flight. With many links that
  // are sent to in turn, most would be silent until the window is full.
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
  // Returns whether peers in the same house are not paced. If not, everything keeps the rate.
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
