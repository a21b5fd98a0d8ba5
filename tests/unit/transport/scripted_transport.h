// A transport whose arrivals follow a test's script: each receive() returns its next batch.
#pragma once

#include <deque>
#include <vector>

#include "leeway/transport.h"
#include "unit/transport/datagrams.h"

namespace leeway::transport {

class ScriptedTransport final : public DatagramTransport {
 public:
  void arrive(std::vector<Bytes> batch, Rank from = 1) {
    batches_.push_back({std::move(batch), from});
  }

  std::string_view name() const override { return "scripted"; }
  const TransportLimits& limits() const override { return limits_; }
  std::size_t send(std::span<const Train> trains) override {
    sent += trains.size();
    return trains.size();
  }
  std::size_t receive(std::span<Received> out) override {
    ++receives;
    current_.clear();
    if (batches_.empty()) return 0;
    Batch& batch = batches_.front();
    while (current_.size() < out.size() && !batch.datagrams.empty()) {
      current_.push_back(std::move(batch.datagrams.front()));
      batch.datagrams.erase(batch.datagrams.begin());
    }
    for (std::size_t i = 0; i < current_.size(); ++i) out[i] = {batch.from, current_[i]};
    if (batch.datagrams.empty()) batches_.pop_front();
    return current_.size();
  }
  void wait(Duration timeout) override { waits.push_back(timeout); }
  void wake() override { ++wakes; }
  TransportCounters counters() const override { return {.datagrams_sent = sent}; }

  std::size_t sent = 0;
  int receives = 0;
  int wakes = 0;
  std::vector<Duration> waits;

 private:
  struct Batch {
    std::vector<Bytes> datagrams;
    Rank from;
  };
  TransportLimits limits_{1472, 65507, 64, 256, 1u << 20};
  std::deque<Batch> batches_;
  std::vector<Bytes> current_;
};

}  // namespace leeway::transport
