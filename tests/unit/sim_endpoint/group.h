// A group of the library's cores over a simulated network, driven until every call is done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collective/operation_spec.h"
#include "endpoint/core_endpoints.h"
#include "network/network.h"
#include "run/operation_plan.h"
#include "scenario.pb.h"
#include "scenario/parse.h"
#include "topology/topology.h"

namespace leeway::sim::testing {

inline scenario::Scenario scenario_of(const std::string& text) {
  auto scenario = scenario::parse_text(text, "test");
  EXPECT_TRUE(scenario.ok()) << scenario.status().c_str();
  return *scenario;
}

// Sums over all ranks and over several rounds.
struct Tally {
  std::uint64_t expected = 0;
  std::uint64_t arrived = 0;
  std::uint64_t arrived_first = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t data_packets = 0;
  std::uint64_t control_packets = 0;
  std::uint32_t failed = 0;
  std::uint32_t cut = 0;
  double contributors_mean = 0;  // mean of the ranks' means
  std::uint32_t contributors_min = UINT32_MAX;
  std::vector<double> round_ms;

  double mean_ms() const {
    double sum = 0;
    for (const double ms : round_ms) sum += ms;
    return sum / static_cast<double>(round_ms.size());
  }
};

class Group final : public Endpoints::Client {
 public:
  explicit Group(const scenario::Scenario& scenario, std::uint64_t seed = 1)
      : scenario_(scenario),
        topology_(Topology::make(scenario_).value()),
        network_(
            Network::make(topology_, seed, queue_, scenario_.operation().datagram_bytes()).value()),
        endpoints_(CoreEndpoints::make(scenario_, seed, topology_, queue_, *network_).value()),
        plan_(OperationPlan::make(scenario_, elements()).value()),
        memories_(scenario_.ranks()),
        specs_(scenario_.ranks()),
        results(scenario_.ranks()),
        told(scenario_.ranks(), 0) {
    for (RankMemory& memory : memories_) {
      if (!scenario_.contents()) break;
      memory.gradient.assign(elements(), 1.0f);
      memory.result.assign(elements(), 0.0f);
    }
  }

  // Submits a call. If the scenario has contents, all values are ones.
  void submit(std::uint32_t rank, CallKind kind) {
    specs_[rank] = plan_.spec(kind, static_cast<Rank>(rank), memories_[rank], 1.0);
    const Call call{.kind = kind, .bytes = scenario_.operation().bytes(), .spec = &specs_[rank]};
    endpoints_->submit(now(), rank, call, *this);
  }
  bool step() {
    Event event;
    if (!queue_.pop(event)) return false;
    if (event.kind == static_cast<std::uint32_t>(EventKind::network)) {
      network_->on_event(event);
    } else if (event.kind == static_cast<std::uint32_t>(EventKind::endpoint)) {
      endpoints_->on_event(event);
    } else {
      reached_ = true;
    }
    return true;
  }
  // Returns false if no event is left before the calls are done.
  bool run_until_done(std::uint32_t calls) {
    while (done_ < calls) {
      if (!step()) return false;
    }
    return true;
  }
  void run_until(std::int64_t time_ns) {
    queue_.push(Instant{time_ns}, 0, static_cast<std::uint32_t>(EventKind::fault), 0);
    reached_ = false;
    while (!reached_) step();
  }
  // Runs until nothing is in flight, and every confirmation has come.
  void drain() {
    while (step()) {
    }
  }

  // Submits `rounds` calls of `kind` on all ranks together. `kind` is one of the kinds that the
  // scenario's operation makes.
  Tally run_rounds(CallKind kind, std::uint32_t rounds) {
    Tally tally;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const Instant begin = now();
      for (std::uint32_t rank = 0; rank < scenario_.ranks(); ++rank) submit(rank, kind);
      EXPECT_TRUE(run_until_done(done_ + scenario_.ranks() - done_ % scenario_.ranks()));
      tally.round_ms.push_back(static_cast<double>((now() - begin).count()) / 1e6);
      for (const CallResult& result : results) add(tally, result);
    }
    tally.contributors_mean /= scenario_.ranks() * rounds;
    tally.data_packets = network_->counters().sent[static_cast<int>(Traffic::data)];
    tally.control_packets = network_->counters().sent[static_cast<int>(Traffic::control)];
    return tally;
  }

  Instant now() const { return queue_.now(); }
  CoreEndpoints& endpoints() { return *endpoints_; }
  Network& network() { return *network_; }
  std::uint32_t done() const { return done_; }

 private:
  std::size_t elements() const { return scenario_.operation().bytes() / sizeof(float); }
  static void add(Tally& tally, const CallResult& result) {
    tally.expected += result.expected;
    tally.arrived += result.arrived;
    tally.arrived_first += result.arrived_first;
    tally.bytes_sent += result.bytes_sent;
    tally.failed += !result.status.ok();
    tally.cut += result.deadline_cut;
    tally.contributors_mean += result.contributors_mean;
    tally.contributors_min = std::min(tally.contributors_min, result.contributors_min);
  }
  void on_done(Instant, std::uint32_t rank, const CallResult& result) override {
    results[rank] = result;
    results[rank].report = nullptr;
    ++told[rank];
    ++done_;
  }

  scenario::Scenario scenario_;
  EventQueue queue_;
  Topology topology_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<CoreEndpoints> endpoints_;
  OperationPlan plan_;
  std::vector<RankMemory> memories_;  // by rank
  std::vector<collective::OperationSpec> specs_;
  std::uint32_t done_ = 0;
  bool reached_ = false;

 public:
  std::vector<CallResult> results;  // the latest result of each rank
  std::vector<std::uint32_t> told;  // how often
};

}  // namespace leeway::sim::testing
