// Simulates endless flows over one bottleneck with a hand clock. The line has a rate, a queue, a
// round trip, and random loss of single packets or in bursts. pass() and at() send other traffic
// over the line.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <vector>

#include "congestion/uplink.h"

namespace leeway::congestion::testing {

struct Line {
  double bits_per_second = 100e6;
  double rtt_seconds = 0.02;
  double queue_bdp = 1;  // in units of bits_per_second x rtt_seconds
  double loss = 0;       // random loss behind the queue
  double burst = 1;      // packets that are lost in a row, on average; 1: each is lost by itself
  double mark_bdp = 0;   // packets that wait behind a longer queue than this are marked; none if 0
  std::uint64_t seed = 1;

  double bdp_bytes() const { return bits_per_second * rtt_seconds / 8; }
};

struct FlowOptions {
  CongestionControl control = CongestionControl::wan;
  std::uint64_t rate_bits_per_second = 0;
  std::size_t links = 1;  // peers behind the bottleneck
  std::size_t lanes = 1;  // lanes that share the bundle; each has links to all peers
  double start_seconds = 0;
};

// Counts since the last reset().
struct FlowCounts {
  std::uint64_t sent = 0;  // packets
  std::uint64_t overflowed = 0;
  std::uint64_t arrived_bytes = 0;
};

class Bottleneck {
 public:
  static constexpr std::size_t kPacket = 1500;

  explicit Bottleneck(const Line& line);

  std::size_t add(const FlowOptions& options);
  void run_until(double seconds);
  void reset();
  void set_rate(double bits_per_second) { line_.bits_per_second = bits_per_second; }

  const FlowCounts& counts(std::size_t flow) const { return flows_[flow].counts; }
  const UplinkBundle& bundle(std::size_t flow) const {
    return flows_[flow].lanes[0].uplink->bundle();
  }
  // Returns the rate that arrived since reset(), as a share of the line's rate.
  double share(std::size_t flow) const;
  // Returns the same for one lane: the rate that arrived, as a share of the line's rate.
  double share(std::size_t flow, std::size_t lane) const;
  double overflow_share(std::size_t flow) const;
  // Returns a quantile of the waits in the queue, in seconds: a fraction `p` of the packets waited
  // less.
  double queueing(double p) const;
  double seconds() const { return static_cast<double>(now_.ns) / 1e9; }
  // Loses all reports of the flow from now on.
  void mute(std::size_t flow) { flows_[flow].muted = true; }
  // Sets the share of a flow's packets that is lost behind the line; `line.loss` applies to all
  // flows.
  void set_own_loss(std::size_t flow, double loss) { flows_[flow].own_loss = loss; }
  // The flow has nothing to send until `until_seconds`.
  void pause(std::size_t flow, double until_seconds);

  // Sends a packet of other traffic. Returns the time at which it has passed the line, or nullopt
  // if the queue is full.
  std::optional<Instant> pass(std::size_t bytes);
  void at(Instant at, std::function<void(Instant)> what);
  Instant now() const { return now_; }

  // Called for every train that leaves.
  std::function<void(std::size_t flow, Instant at, std::size_t bytes)> on_train;

 private:
  struct Link {
    std::uint32_t sequence = 0;
    Arrivals arrivals;
  };
  struct Lane {
    std::unique_ptr<Uplink> uplink;
    std::vector<Link> links;
    std::size_t turn = 0;
    Instant wake_at = Instant::infinite_future();
    std::uint64_t arrived_bytes = 0;
  };
  struct Flow {
    std::vector<Lane> lanes;
    bool muted = false;
    double own_loss = 0;
    Instant paused_until{0};
    FlowCounts counts;
  };
  struct Event {
    Instant at;
    std::uint64_t number = 0;
    enum { wake, arrival, report, call } what;
    std::size_t flow = 0;
    std::size_t lane = 0;
    std::size_t link = 0;
    std::uint32_t sequence = 0;
    bool asks = false;
    bool marked = false;
    Arrivals arrivals{};

    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  void push(Event event);
  void pump(std::size_t flow, std::size_t lane);
  void wake(std::size_t flow, std::size_t lane, Instant at);
  void transmit(const Event& packet);
  bool loses(double share);
  void on_arrival(const Event& event);

  Line line_;
  std::vector<Flow> flows_;
  std::priority_queue<Event> events_;
  std::vector<std::function<void(Instant)>> calls_;
  std::vector<std::size_t> free_calls_;
  std::uint64_t pushed_ = 0;
  std::mt19937_64 random_;
  bool in_burst_ = false;
  Instant now_{1'000'000'000};
  Instant reset_at_{1'000'000'000};
  Instant line_free_at_{0};
  std::vector<double> waits_;
};

}  // namespace leeway::congestion::testing
