// A group of ranks over a simulated network, driven until every call is done: the same for every
// kind of endpoints, so that the same scenario runs through both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collective/operation_spec.h"
#include "endpoint/endpoints.h"
#include "network/network.h"
#include "scenario.pb.h"
#include "scenario/parse.h"
#include "topology/topology.h"

namespace leeway::sim::testing {

inline scenario::Scenario scenario_of(const std::string& text) {
  auto scenario = scenario::parse_text(text, "test");
  EXPECT_TRUE(scenario.ok()) << scenario.status().c_str();
  return *scenario;
}

// Tensors for endpoints that carry contents.
class Tensors {
 public:
  Tensors(const scenario::Scenario& scenario, CallKind kind) : kind_(kind) {
    const scenario::Operation& operation = scenario.operation();
    ranks_ = scenario.ranks();
    elements_ = operation.bytes() / sizeof(float);
    data_.assign(ranks_, std::vector<float>(elements_, 1.0f));
    result_.assign(ranks_, std::vector<float>(elements_, 0.0f));
    const bool reduces = kind == CallKind::all_reduce || kind == CallKind::reduce_scatter ||
                         kind == CallKind::replica_reduce;
    options_.codec = *parse_codec(operation.codec());
    if (reduces && operation.has_spread_codec())
      options_.spread_codec = *parse_codec(operation.spread_codec());
    if (reduces) {
      options_.op = ReduceOp::avg;
      options_.estimator =
          *parse_estimator(scenario::Operation::Estimator_Name(operation.estimator()));
    }
    if (reduces || operation.delivery().has_kind())
      options_.delivery.kind = kind_of(operation.delivery().kind());
    options_.delivery.loss_max = operation.delivery().loss_max();
    options_.delivery.deadline =
        Duration(static_cast<std::int64_t>(operation.delivery().deadline_ms() * 1e6));
    if (kind == CallKind::all_reduce) options_.spread = kind_of(operation.spread());
  }

  collective::OperationSpec spec(std::uint32_t rank) {
    const std::size_t block = elements_ / ranks_;
    const std::span<float> data(data_[rank]);
    const std::span<float> result(result_[rank]);
    collective::OperationSpec spec;
    spec.options = options_;
    spec.input = data;
    spec.output = result;
    using collective::OperationKind;
    switch (kind_) {
      case CallKind::all_reduce:
        spec.kind = OperationKind::all_reduce;
        break;
      case CallKind::reduce_scatter:
        spec.kind = OperationKind::reduce_scatter;
        spec.input = data.first(block * ranks_);
        spec.output = result.first(block);
        break;
      case CallKind::all_gather:
        spec.kind = OperationKind::all_gather;
        spec.input = data.first(block);
        spec.output = result.first(block * ranks_);
        break;
      case CallKind::broadcast:
        spec.kind = OperationKind::broadcast;
        spec.peer = 0;
        break;
      case CallKind::all_to_all:
        spec.kind = OperationKind::all_to_all;
        spec.input = data.first(block * ranks_);
        spec.output = result.first(block * ranks_);
        break;
      case CallKind::replica_reduce:
        spec.kind = OperationKind::replica_reduce;
        break;
      case CallKind::replica_broadcast:
        spec.kind = OperationKind::replica_broadcast;
        spec.input = spec.output = result;
        break;
    }
    return spec;
  }

 private:
  static Delivery::Kind kind_of(scenario::Delivery::Kind kind) {
    if (kind == scenario::Delivery::exact) return Delivery::Kind::exact;
    return kind == scenario::Delivery::bounded ? Delivery::Kind::bounded
                                               : Delivery::Kind::best_effort;
  }

  CallKind kind_;
  std::uint32_t ranks_ = 0;
  std::size_t elements_ = 0;
  CollectiveOptions options_;
  std::vector<std::vector<float>> data_;
  std::vector<std::vector<float>> result_;
};

// What some rounds came to, over all ranks.
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

template <typename Kind>
class Group final : public Endpoints::Client {
 public:
  explicit Group(const scenario::Scenario& scenario, std::uint64_t seed = 1)
      : scenario_(scenario),
        topology_(Topology::make(scenario_).value()),
        network_(
            Network::make(topology_, seed, queue_, scenario_.operation().datagram_bytes()).value()),
        endpoints_(Kind::make(scenario_, seed, topology_, queue_, *network_).value()),
        results(scenario_.ranks()),
        told(scenario_.ranks(), 0) {}

  void submit(std::uint32_t rank, CallKind kind, const collective::OperationSpec* spec = nullptr) {
    const Call call{.kind = kind, .bytes = scenario_.operation().bytes(), .spec = spec};
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
  // False if nothing is left to happen before.
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
  // What is still under way, and every confirmation.
  void drain() {
    while (step()) {
    }
  }

  // All ranks submit together, `rounds` times.
  Tally run_rounds(CallKind kind, std::uint32_t rounds) {
    Tensors tensors(scenario_, kind);
    Tally tally;
    std::vector<collective::OperationSpec> specs(scenario_.ranks());
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const Instant begin = now();
      for (std::uint32_t rank = 0; rank < scenario_.ranks(); ++rank) {
        specs[rank] = tensors.spec(rank);
        submit(rank, kind, &specs[rank]);
      }
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
  Kind& endpoints() { return *endpoints_; }
  Network& network() { return *network_; }
  std::uint32_t done() const { return done_; }

 private:
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
  std::unique_ptr<Kind> endpoints_;
  std::uint32_t done_ = 0;
  bool reached_ = false;

 public:
  std::vector<CallResult> results;  // the latest of each rank
  std::vector<std::uint32_t> told;  // how often
};

}  // namespace leeway::sim::testing
