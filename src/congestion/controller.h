// How fast a rank may send: the question that every controller answers, and what it is told.
//
// A controller is pure: time comes in with each sample, nothing is allocated after it was made. It
// sees one rank's uplink as a whole (uplink_bundle.h); N - 1 controllers would take N - 1 shares.
#pragma once

#include <cstdint>
#include <memory>

#include "base/time.h"
#include "leeway/options.h"

namespace leeway::congestion {

// Assumed where a packet's size matters: windows, floors.
inline constexpr double kPacketBytes = 1500;

// What one report of one peer says about the uplink.
struct Sample {
  Instant now;
  // Of the newest datagram that the report covers; without the time the receiver held it back.
  Duration rtt{0};
  // The least that this link showed lately.
  Duration rtt_min{0};
  // Time spent in the uplink's queue: one-way delay above the link's least, of the link where that
  // is shortest.
  Duration queueing{0};
  // The standard deviation of delays that vary by themselves, of the link where it is least
  // (delay_jitter.h). 0: not known.
  Duration jitter{0};
  // `delivered_bytes` arrived at all peers within `interval`; 0: unknown.
  Duration interval{0};
  std::uint64_t delivered_bytes = 0;
  // Arrived at this peer since its last report
  std::uint64_t newly_delivered_bytes = 0;
  // Datagrams that this report decides about, and those of them that did not arrive. Datagrams
  // that were overtaken count as lost, and as delivered later: `lost` may be negative then.
  std::uint32_t covered = 0;
  std::int32_t lost = 0;
  // Of those that arrived: marked by a queue, which would have dropped them without ECN
  std::uint32_t marked = 0;
  // Bytes under way to all peers after it
  std::uint64_t in_flight_bytes = 0;
  // Pace::phase when the datagrams were sent; kNoPhase: of several.
  std::uint32_t phase = 0;
  // The application or a peer's window, not the controller, limited what was sent.
  bool limited = false;
};

inline constexpr std::uint32_t kNoPhase = UINT32_MAX;

struct Pace {
  double bits_per_second = 0;
  // At most so much under way to all peers together
  std::uint64_t in_flight_bytes = UINT64_MAX;
  // At most so much leaves at once; 0: a quarter of a millisecond of the rate
  std::size_t quantum_bytes = 0;
  // Marks what is sent from now on, so that its loss is attributed to this gain.
  std::uint32_t phase = 0;
};

// When peers are asked for reports: every quarter of a round trip, and before the window is full.
struct Questions {
  // Not more often than this
  Duration least = std::chrono::milliseconds(1);
  // Besides, when half of a link's share of the window is under way: of many links that are sent to
  // in turn, most would be silent until the window is full.
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
  // The part of losses that this controller takes for the network's own
  virtual double noise() const { return 0; }
  // Peers in the same house are not paced. False: everything keeps the rate.
  virtual bool spares_near() const { return true; }
  virtual Questions questions() const { return {}; }
  // A queue at one peer's own line, where others may meet, limits what goes there
  // (link_governor.h).
  virtual bool governs_links() const { return false; }
};

struct Settings {
  CongestionControl control = CongestionControl::none;
  std::uint64_t rate_bits_per_second = 0;  // of `fixed`, not 0
};

// Null for `none` and `automatic`.
std::unique_ptr<Controller> make_controller(const Settings& settings);

}  // namespace leeway::congestion
