// Tables of endless flows over one line or over a fabric.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perf/congestion_tables.h"
#include "tcp/tcp_flow.h"
#include "unit/congestion/bottleneck.h"

namespace leeway {

using congestion::testing::Bottleneck;
using congestion::testing::FlowOptions;
using congestion::testing::Line;

namespace {

// TCP flows that share the bottleneck.
class TcpBeside final : public sim::TcpHost {
 public:
  TcpBeside(Bottleneck& line, double rtt_seconds) : line_(line), rtt_seconds_(rtt_seconds) {}

  void add(sim::TcpCongestion congestion, double start_seconds) {
    sim::TcpOptions options;
    options.congestion = congestion;
    const auto number = static_cast<std::uint32_t>(flows_.size());
    counts_.push_back({});
    flows_.push_back(
        std::make_unique<sim::TcpFlow>(sim::TcpFlow::Place{number, 0, 1}, options, *this));
    sim::TcpFlow& flow = *flows_.back();
    line_.at(Instant{1'000'000'000} + Duration(static_cast<std::int64_t>(start_seconds * 1e9)),
             [&flow](Instant now) { flow.send(now, sim::TcpFlow::kEndless); });
  }

  void reset() {
    for (Counts& counts : counts_) counts = {};
    reset_at_ = line_.now();
  }
  std::size_t size() const { return flows_.size(); }
  double bits_per_second(std::size_t flow) const {
    return static_cast<double>(counts_[flow].arrived) * 8e9 /
           static_cast<double>((line_.now() - reset_at_).count());
  }
  double bits_per_second() const {
    double sum = 0;
    for (std::size_t i = 0; i < size(); ++i) sum += bits_per_second(i);
    return sum;
  }
  double overflow() const {
    double sent = 0;
    double full = 0;
    for (const Counts& counts : counts_) {
      sent += static_cast<double>(counts.sent);
      full += static_cast<double>(counts.full);
    }
    return sent > 0 ? full / sent : 0;
  }

  void send_packet(Instant now, const sim::Packet& packet) override {
    const Duration half(static_cast<std::int64_t>(rtt_seconds_ * 5e8));
    Instant arrives = now + half;
    if (packet.traffic != sim::Traffic::control) {
      Counts& counts = counts_[sim::TcpFlow::flow_of(packet)];
      ++counts.sent;
      const auto passed = line_.pass(packet.bytes);
      if (!passed) {
        ++counts.full;
        return;
      }
      counts.arrived += packet.bytes;
      arrives = *passed + half;
    }
    line_.at(arrives, [this, packet](Instant at) {
      flows_[sim::TcpFlow::flow_of(packet)]->on_packet(at, packet);
    });
  }
  void wake_at(Instant at, std::uint32_t flow, sim::TcpEnd end) override {
    line_.at(at, [this, flow, end](Instant now) { flows_[flow]->on_wake(now, end); });
  }
  void on_delivered(Instant, std::uint32_t, std::uint64_t) override {}

 private:
  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t full = 0;
    std::uint64_t arrived = 0;
  };

  Bottleneck& line_;
  double rtt_seconds_;
  std::vector<std::unique_ptr<sim::TcpFlow>> flows_;
  std::vector<Counts> counts_;
  Instant reset_at_{1'000'000'000};
};

double jain(const std::vector<double>& shares) {
  double sum = 0;
  double squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

FlowOptions bundle(double start_seconds = 0) {
  return {.control = studied, .links = 7, .start_seconds = start_seconds};
}

}  // namespace

void print_alone() {
  std::printf(
      "\nalone, 7 peers, 5 s to 25 s: share of (1 - p) C, own overflow, p95 of the queue in ms\n\n"
      "| line, queue in BDP | p = 0 | 1 %% | 10 %% | 20 %% |\n|---|---|---|---|---|\n");
  const auto row = [](const char* title, Line line) {
    std::printf("| %s, %g |", title, line.queue_bdp);
    for (const double loss : {0.0, 0.01, 0.1, 0.2}) {
      line.loss = loss;
      Bottleneck bottleneck(line);
      bottleneck.add(bundle());
      bottleneck.run_until(5);
      bottleneck.reset();
      bottleneck.run_until(25);
      std::printf(" %.2f, %.1f %%, %.1f |", bottleneck.share(0) / (1 - loss),
                  100 * bottleneck.overflow_share(0), 1e3 * bottleneck.queueing(0.95));
      std::fflush(stdout);
    }
    std::printf("\n");
  };
  for (const double queue : {0.02, 0.1, 0.2, 1.0, 5.0})
    row("100 Mb/s, 20 ms", {.queue_bdp = queue});
  for (const double queue : {0.1, 1.0})
    row("500 Mb/s, 100 ms", {.bits_per_second = 500e6, .rtt_seconds = 0.1, .queue_bdp = queue});
  row("1 Gb/s, 200 ms", {.bits_per_second = 1e9, .rtt_seconds = 0.2, .queue_bdp = 0.5});
}

void print_many() {
  std::printf(
      "\nn bundles on 100 Mb/s, each 0.5 s after the one before; 20 s from then on: Jain, all of "
      "(1 - p) C, own "
      "overflow\n\n"
      "| n, round trip, queue in BDP | p = 0 | p = 10 %% |\n|---|---|---|\n");
  for (const std::size_t count : {std::size_t{2}, std::size_t{8}, std::size_t{16}}) {
    for (const double rtt : {0.02, 0.05}) {
      for (const double queue : {0.1, 1.0}) {
        std::printf("| %zu, %g ms, %g |", count, rtt * 1e3, queue);
        for (const double loss : {0.0, 0.1}) {
          Bottleneck bottleneck({.rtt_seconds = rtt, .queue_bdp = queue, .loss = loss});
          for (std::size_t i = 0; i < count; ++i) {
            bottleneck.add(bundle(0.5 * static_cast<double>(i)));
          }
          const double from = 0.5 * static_cast<double>(count);
          bottleneck.run_until(from);
          bottleneck.reset();
          bottleneck.run_until(from + 20);
          std::vector<double> shares;
          double sum = 0;
          double sent = 0;
          double full = 0;
          for (std::size_t i = 0; i < count; ++i) {
            shares.push_back(bottleneck.share(i));
            sum += shares.back();
            sent += static_cast<double>(bottleneck.counts(i).sent);
            full += static_cast<double>(bottleneck.counts(i).overflowed);
          }
          std::printf(" %.2f, %.2f, %.1f %% |", jain(shares), sum / (1 - loss), 100 * full / sent);
          std::fflush(stdout);
        }
        std::printf("\n");
      }
    }
  }
}

namespace {

struct Beside {
  double ours = 0;        // share of each of our flows, in fair shares
  double theirs = 0;      // likewise
  double total = 0;       // total, as a share of the link
  double their_loss = 0;  // share of TCP's packets that overflowed
  double our_loss = 0;
};

Beside beside(const Line& line, std::size_t bundles, std::size_t flows,
              sim::TcpCongestion congestion, double own_loss, CongestionControl control) {
  Bottleneck bottleneck(line);
  TcpBeside tcp(bottleneck, line.rtt_seconds);
  for (std::size_t i = 0; i < bundles; ++i) {
    FlowOptions options = bundle(3 + 0.1 * static_cast<double>(i));
    options.control = control;
    bottleneck.set_own_loss(bottleneck.add(options), own_loss);
  }
  for (std::size_t i = 0; i < flows; ++i) tcp.add(congestion, 0.1 * static_cast<double>(i));
  bottleneck.run_until(10);
  bottleneck.reset();
  tcp.reset();
  bottleneck.run_until(40);
  Beside result;
  const double fair = 1.0 / static_cast<double>(bundles + flows);
  double sent = 0;
  double full = 0;
  for (std::size_t i = 0; i < bundles; ++i) {
    result.ours += bottleneck.share(i);
    sent += static_cast<double>(bottleneck.counts(i).sent);
    full += static_cast<double>(bottleneck.counts(i).overflowed);
  }
  const double theirs = tcp.bits_per_second() / line.bits_per_second;
  result.total = result.ours + theirs;
  result.ours /= fair * static_cast<double>(std::max<std::size_t>(bundles, 1));
  result.theirs = theirs / (fair * static_cast<double>(std::max<std::size_t>(flows, 1)));
  result.their_loss = tcp.overflow();
  result.our_loss = sent > 0 ? full / sent : 0;
  return result;
}

}  // namespace

void print_beside() {
  std::printf(
      "\nbeside TCP on 100 Mb/s, 20 ms; 10 s to 40 s: ours and theirs of a fair share, overflow of "
      "theirs (of theirs "
      "alone), of ours\n\n"
      "| bundles, flows, own loss, queue in BDP | ours | theirs | all | their loss | ours "
      "|\n|---|---|---|---|---|---|\n");
  struct Case {
    std::size_t bundles;
    std::size_t flows;
    sim::TcpCongestion congestion;
    double own_loss;
  };
  for (const Case& one :
       {Case{1, 4, sim::TcpCongestion::cubic, 0}, Case{8, 4, sim::TcpCongestion::cubic, 0},
        Case{1, 1, sim::TcpCongestion::cubic, 0}, Case{1, 4, sim::TcpCongestion::cubic, 0.01},
        Case{1, 4, sim::TcpCongestion::cubic, 0.1}, Case{1, 1, sim::TcpCongestion::bbr, 0},
        Case{1, 4, sim::TcpCongestion::bbr, 0}}) {
    for (const double queue : {0.2, 1.0}) {
      const Line line{.queue_bdp = queue};
      const Beside alone = beside(line, 0, one.flows, one.congestion, 0, studied);
      const Beside with =
          beside(line, one.bundles, one.flows, one.congestion, one.own_loss, studied);
      std::printf("| %zu, %zu %s, %g %%, %g | %.2f | %.2f | %.2f | %.2f %% (%.2f) | %.2f %% |\n",
                  one.bundles, one.flows,
                  one.congestion == sim::TcpCongestion::cubic ? "CUBIC" : "BBR", 100 * one.own_loss,
                  queue, with.ours, with.theirs, with.total, 100 * with.their_loss,
                  100 * alone.their_loss, 100 * with.our_loss);
      std::fflush(stdout);
    }
  }
  std::printf(
      "\nscavenger beside 1 CUBIC: part of the line, CUBIC's over what it has alone; scavenger "
      "alone\n\n");
  for (const double queue : {0.2, 1.0, 5.0}) {
    const Line line{.queue_bdp = queue};
    const Beside alone = beside(line, 0, 1, sim::TcpCongestion::cubic, 0, studied);
    const Beside with =
        beside(line, 1, 1, sim::TcpCongestion::cubic, 0, CongestionControl::scavenger);
    const Beside own =
        beside(line, 1, 0, sim::TcpCongestion::cubic, 0, CongestionControl::scavenger);
    std::printf("queue %g BDP: %.2f, %.2f; %.2f\n", queue, with.ours / 2,
                with.theirs / 2 / alone.theirs, own.ours);
  }
}

void print_changes() {
  std::printf("\nW-6: 100 Mb/s, 20 ms, queue 1 BDP\n\n");
  for (const double loss : {0.0, 0.1}) {
    Bottleneck line({.queue_bdp = 1, .loss = loss});
    line.add(bundle());
    line.run_until(10);
    line.set_rate(10e6);
    double sent_at = -1;
    for (double at = 10; at < 13 && sent_at < 0; at += 0.005) {
      line.run_until(at);
      if (line.bundle(0).pace().bits_per_second * (1 - loss) < 10.5e6) sent_at = at - 10;
    }
    std::printf("a tenth of the capacity, loss %g %%: pace below it after %.0f ms\n", 100 * loss,
                1e3 * sent_at);
  }
  for (const double idle : {1.0, 60.0}) {
    Bottleneck line({.queue_bdp = 0.5, .loss = 0});
    line.add(bundle());
    line.run_until(10);
    line.reset();
    line.run_until(10.2);
    const double usual = line.share(0);
    line.pause(0, 10.2 + idle);
    line.run_until(10.2 + idle);
    line.reset();
    line.run_until(10.4 + idle);
    std::printf(
        "idle for %g s: the next 200 ms move %.2f of what 200 ms moved before, overflow %.1f %%\n",
        idle, line.share(0) / usual, 100 * line.overflow_share(0));
  }
}

namespace {

struct Crowd {
  double jain = 0;
  double share = 0;     // share of the link that all flows take together
  double overflow = 0;  // share of all packets that overflowed
  double queue_ms = 0;  // the 95 % quantile
};

// Starts `count` uplink bundles within 20 ms, lets their rates settle, and measures for `seconds`.
Crowd crowd(const Line& line, std::size_t count, std::size_t links, CongestionControl control,
            double seconds, double settle_seconds) {
  Bottleneck bottleneck(line);
  for (std::size_t i = 0; i < count; ++i) {
    bottleneck.add({.control = control,
                    .links = links,
                    .start_seconds = 0.02 * static_cast<double>(i) / static_cast<double>(count)});
  }
  bottleneck.run_until(settle_seconds);
  bottleneck.reset();
  bottleneck.run_until(settle_seconds + seconds);
  Crowd result;
  std::vector<double> shares;
  double sent = 0;
  double full = 0;
  for (std::size_t i = 0; i < count; ++i) {
    shares.push_back(bottleneck.share(i));
    result.share += shares.back();
    sent += static_cast<double>(bottleneck.counts(i).sent);
    full += static_cast<double>(bottleneck.counts(i).overflowed);
  }
  result.jain = jain(shares);
  result.overflow = sent > 0 ? full / sent : 0;
  result.queue_ms = 1e3 * bottleneck.queueing(0.95);
  return result;
}

constexpr CongestionControl kFabricControls[] = {CongestionControl::wan, CongestionControl::fabric};

}  // namespace

void print_fabric() {
  std::printf(
      "\nn bundles of 7 peers on one line of a fabric, 0.2 s after 0.1 s: part of the line, own "
      "overflow, p95 of the queue in ms, Jain; wan, fabric\n\n"
      "| line, round trip, queue | 1 | 2 | 4 | 8 |\n|---|---|---|---|---|\n");
  for (const double gbps : {1.0, 10.0}) {
    for (const double rtt_ms : {0.05, 0.2}) {
      for (const double queue_ms : {0.2, 1.0, 4.0}) {
        for (const CongestionControl control : kFabricControls) {
          std::printf("| %g Gb/s, %g ms, %g ms, %s |", gbps, rtt_ms, queue_ms,
                      std::string(to_string(control)).c_str());
          for (const std::size_t count :
               {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{8}}) {
            const Crowd all = crowd({.bits_per_second = gbps * 1e9,
                                     .rtt_seconds = rtt_ms / 1e3,
                                     .queue_bdp = queue_ms / rtt_ms},
                                    count, 7, control, 0.2, 0.1);
            std::printf(" %.2f, %.1f %%, %.2f, %.2f |", all.share, 100 * all.overflow, all.queue_ms,
                        all.jain);
            std::fflush(stdout);
          }
          std::printf("\n");
        }
      }
    }
  }
  std::printf(
      "\nmarked from 0.05 ms on: fabric, 1 Gb/s, 0.2 ms, queue 1 ms; 1, 4 and 8 bundles\n\n");
  for (const std::size_t count : {std::size_t{1}, std::size_t{4}, std::size_t{8}}) {
    const Crowd all =
        crowd({.bits_per_second = 1e9, .rtt_seconds = 0.2e-3, .queue_bdp = 5, .mark_bdp = 0.25},
              count, 7, CongestionControl::fabric, 0.2, 0.1);
    std::printf("%zu: %.2f, %.1f %%, %.2f ms, %.2f\n", count, all.share, 100 * all.overflow,
                all.queue_ms, all.jain);
  }
}

void print_incast() {
  std::printf(
      "\nCC-7: n senders to one receiver, a buffer of 100 KB: part of the line and loss, from the "
      "first packet on for 50 ms, and 0.2 s after 0.1 s\n\n"
      "| line, round trip, n | wan | fabric |\n|---|---|---|\n");
  for (const double gbps : {1.0, 10.0}) {
    for (const double rtt_ms : {0.05, 0.2}) {
      for (const std::size_t count : {std::size_t{16}, std::size_t{64}}) {
        std::printf("| %g Gb/s, %g ms, %zu |", gbps, rtt_ms, count);
        const Line line{.bits_per_second = gbps * 1e9,
                        .rtt_seconds = rtt_ms / 1e3,
                        .queue_bdp = 100e3 / (gbps * 1e9 * rtt_ms / 8e3)};
        for (const CongestionControl control : kFabricControls) {
          const Crowd first = crowd(line, count, 1, control, 0.05, 0);
          const Crowd later = crowd(line, count, 1, control, 0.2, 0.1);
          std::printf(" %.2f, %.1f %%; %.2f, %.1f %%, Jain %.2f |", first.share,
                      100 * first.overflow, later.share, 100 * later.overflow, later.jain);
          std::fflush(stdout);
        }
        std::printf("\n");
      }
    }
  }
}

// Prints how soon the controller `fabric` slows down after the line's rate fell to a tenth, and how
// soon the queue is short again.
void print_fall() {
  std::printf("\nCC-5: 10 Gb/s, 0.2 ms, queue 1 ms, fabric; the line falls to a tenth\n\n");
  Bottleneck line({.bits_per_second = 10e9, .rtt_seconds = 0.2e-3, .queue_bdp = 5});
  line.add({.control = CongestionControl::fabric, .links = 7});
  line.run_until(0.1);
  line.set_rate(1e9);
  double below = -1;
  double drained = -1;
  for (double at = 0.1; at < 0.4 && drained < 0; at += 0.0001) {
    line.run_until(at);
    if (below < 0 && line.bundle(0).pace().bits_per_second < 1.05e9) below = at - 0.1;
    line.reset();
    line.run_until(at + 0.0001);
    if (below >= 0 && line.queueing(0.95) < 0.2e-3) drained = at - 0.1;
  }
  std::printf("pace below it after %.1f ms, queue below 0.2 ms after %.1f ms\n", 1e3 * below,
              1e3 * drained);
}

namespace {

FlowOptions bundle_with_lanes(std::size_t lanes, double start_seconds) {
  FlowOptions options = bundle(start_seconds);
  options.lanes = lanes;
  return options;
}

}  // namespace

// Two processes share a line. A process's lanes share an uplink bundle.
void print_lanes() {
  std::printf(
      "\n%s with 4 lanes beside one with 1, 100 Mb/s, 30 s after 10: the first one's share over "
      "the other's; its lanes: least over most; and beside 4 of them, as lanes without a common "
      "bundle would be\n\n"
      "| round trip, queue in BDP, loss | 4 lanes : 1 | 1 lane : 1 | lanes | 4 : 1 "
      "|\n|---|---|---|---|---|\n",
      studied_name.c_str());
  for (const double rtt : {0.02, 0.05}) {
    for (const double queue : {0.1, 1.0}) {
      for (const double loss : {0.0, 0.01}) {
        const Line line{.rtt_seconds = rtt, .queue_bdp = queue, .loss = loss};
        Bottleneck lanes(line);
        lanes.add(bundle_with_lanes(4, 0));
        lanes.add(bundle(0.5));
        Bottleneck alike(line);
        alike.add(bundle(0));
        alike.add(bundle(0.5));
        Bottleneck apart(line);
        for (int i = 0; i < 5; ++i) apart.add(bundle(0.1 * i));
        for (Bottleneck* const one : {&lanes, &alike, &apart}) {
          one->run_until(10);
          one->reset();
          one->run_until(40);
        }
        std::vector<double> by_lane;
        for (std::size_t lane = 0; lane < 4; ++lane) by_lane.push_back(lanes.share(0, lane));
        double four = 0;
        for (std::size_t i = 0; i < 4; ++i) four += apart.share(i);
        std::printf("| %g ms, %g, %g %% | %.2f | %.2f | %.2f | %.2f |\n", rtt * 1e3, queue,
                    100 * loss, lanes.share(0) / lanes.share(1), alike.share(0) / alike.share(1),
                    *std::min_element(by_lane.begin(), by_lane.end()) /
                        *std::max_element(by_lane.begin(), by_lane.end()),
                    four / apart.share(4));
        std::fflush(stdout);
      }
    }
  }
  print_lanes_of_calls();
}

}  // namespace leeway
