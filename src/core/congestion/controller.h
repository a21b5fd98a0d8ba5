// Interface of congestion controllers. They are told what reports show (Sample), and answer how
// fast a rank may send (Pace).
//
// A controller reads no clock: each sample brings the time. It allocates memory only in its
// constructor. One controller serves a rank's whole uplink (uplink_bundle.h), because N - 1
// controllers would take N - 1 shares of the path.
#pragma once

#include <cstdint>
#include <memory>

#include "base/time.h"
#include "leeway/options.h"

namespace leeway::congestion {

// Length assumed for every packet where windows are counted in packets.
inline constexpr double kPacketBytes = 1500;

// What one report of one peer shows about the uplink.
struct Sample {
  Instant now;
  // Round trip of the newest datagram that the report covers, without the time for which the
  // receiver held back the report.
  Duration rtt{0};
  // Shortest round trip of this link lately.
  Duration rtt_min{0};
  // Delay in the uplink's queue. A link's queueing is its one-way delay minus the least one-way
  // delay of that link; this is the least queueing of all links. A link with a longer delay may
  // have a queue at its peer, too.
  Duration queueing{0};
  // Jitter: standard deviation of the one-way delay without a queue (delay_jitter.h), on the link
  // where it is least. 0 if unknown.
  Duration jitter{0};
  // `delivered_bytes` bytes arrived at all peers together within `interval`. Both are 0 if unknown.
  Duration interval{0};
  std::uint64_t delivered_bytes = 0;
  // Bytes that arrived at this peer since its last report.
  std::uint64_t newly_delivered_bytes = 0;
  // `covered`: number of datagrams that this report is the first to cover. `lost`: how many more
  // datagrams count as lost than before. A datagram that counted as lost and then arrives is
  // subtracted, so `lost` may be negative.
  std::uint32_t covered = 0;
  std::int32_t lost = 0;
  // Datagrams that arrived with a queue's ECN mark. Without ECN the queue would have dropped them.
  std::uint32_t marked = 0;
  // Pace::phase at which the covered datagrams were sent; kNoPhase if there were several.
  std::uint32_t phase = 0;
  // True if the application or a peer's window limited the sending rate, so that the pace was not
  // used up.
  bool limited = false;
};

inline constexpr std::uint32_t kNoPhase = UINT32_MAX;

struct Pace {
  double bits_per_second = 0;
  // Limit for the bytes in flight to all peers together.
  std::uint64_t in_flight_bytes = UINT64_MAX;
  // Limit on the bytes that leave at once. 0 means what the rate allows in a quarter of a
  // millisecond.
  std::size_t quantum_bytes = 0;
  // Number of the controller's state. Sample::phase repeats it, so the controller knows in which
  // state lost datagrams were sent.
  std::uint32_t phase = 0;
};

// Details of when peers are asked for reports. A peer is asked every quarter of a round trip, and
// before the window is full.
struct Questions {
  // Least time between two requests for a report of the same peer.
  Duration least = std::chrono::milliseconds(1);
  // If true, a peer is asked also when half of its link's share of the window is in flight. If
  // false and many links send in turn, most peers are not asked before the window is full.
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
  // Share of packets, 0 to 1, that the network loses by itself, as this controller believes.
  virtual double noise() const { return 0; }
  // Returns true if data to near peers (kNear in uplink_bundle.cc) need not keep the pace.
  virtual bool spares_near() const { return true; }
  virtual Questions questions() const { return {}; }
  // Returns true if a link is limited while a queue stands at its peer's access link, where several
  // senders may meet (link_governor.h).
  virtual bool governs_links() const { return false; }
};

struct Settings {
  CongestionControl control = CongestionControl::none;
  std::uint64_t rate_bits_per_second = 0;  // for `fixed`, which needs more than 0
};

// Returns null for `none` and `automatic`.
std::unique_ptr<Controller> make_controller(const Settings& settings);

}  // namespace leeway::congestion
