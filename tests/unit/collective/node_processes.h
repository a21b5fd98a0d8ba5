// Processes with a Node each, on a network in virtual time.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "collective/node.h"
#include "protocol/train_buffer.h"
#include "support/train_datagrams.h"

namespace leeway::collective {

inline constexpr Duration kDelay = std::chrono::microseconds(100);
inline constexpr std::size_t kWindow = 16;  // datagrams

// The slot of each process is its number.
class Processes {
 public:
  explicit Processes(int count, const congestion::Settings& congestion = {},
                     const protocol::SizeLimits& sizes = {})
      : Processes(std::vector(static_cast<std::size_t>(count), congestion), sizes) {}
  explicit Processes(const std::vector<congestion::Settings>& congestion,
                     const protocol::SizeLimits& sizes = {}) {
    for (const congestion::Settings& settings : congestion) {
      nodes_.push_back(std::make_unique<Node>(settings));
      nodes_.back()->measure_sizes(sizes);
    }
  }

  // Makes each of these processes join a communicator now. Ranks follow the order of `slots`.
  std::vector<Member*> join(std::uint32_t epoch, std::vector<Rank> slots) {
    std::vector<Member*> members;
    for (std::size_t rank = 0; rank < slots.size(); ++rank)
      members.push_back(&join(epoch, slots, static_cast<Rank>(rank)));
    return members;
  }
  Member& join(std::uint32_t epoch, const std::vector<Rank>& slots, Rank rank) {
    protocol::EndpointConfig config;
    config.self = rank;
    config.size = static_cast<int>(slots.size());
    config.epoch = epoch;
    config.seed = epoch;
    config.window_bytes.assign(slots.size(), window * config.datagram_bytes);
    config.rtt_initial = 2 * kDelay;
    config.peer_timeout = std::chrono::seconds(3);
    if (named_by_slots) config.names = slots;
    return nodes_[slots[rank]]->join(now_, config, slots);
  }

  Node& operator[](Rank slot) { return *nodes_[slot]; }
  Instant now() const { return now_; }
  std::size_t sent() const { return sent_; }
  void stop(Rank slot) { stopped_ = slot; }

  Request& all_reduce(Rank slot, Member& member, std::vector<float>& data,
                      const Delivery& delivery = exact(no_deadline)) {
    Request& request = requests_.emplace_back();
    request.spec.kind = OperationKind::all_reduce;
    request.spec.input = std::span<const float>(data);
    request.spec.output = std::span(data);
    request.spec.options.delivery = delivery;
    member.engine().submit(now_, request);
    nodes_[slot]->touch(member);
    return request;
  }

  bool run_until(const std::function<bool()>& done, Duration limit = std::chrono::seconds(10)) {
    const Instant end = now_ + limit;
    for (;;) {
      pump();
      if (done()) return true;
      const Instant next = next_event();
      if (next > end) break;
      now_ = std::max(now_, next);
      while (!flights_.empty() && flights_.begin()->first <= now_.ns) {
        const auto flight = flights_.extract(flights_.begin());
        const auto& [from, to, bytes] = flight.mapped();
        if (to != stopped_) nodes_[to]->on_datagram(now_, from, bytes);
      }
    }
    now_ = end;
    return done();
  }
  void pass(Duration time) {
    (void)run_until([] { return false; }, time);
  }

  std::size_t window = kWindow;  // window of processes that join from now on
  bool named_by_slots = false;   // in texts; likewise
  std::function<void(Rank from, Rank to, ByteSpan datagram)> observer;
  std::function<bool(ByteSpan datagram)> loses;

 private:
  struct Flight {
    Rank from, to;
    std::vector<std::byte> bytes;
  };

  Instant next_event() const {
    Instant next = flights_.empty() ? Instant::infinite_future() : Instant{flights_.begin()->first};
    for (Rank slot = 0; slot < nodes_.size(); ++slot) {
      if (slot != stopped_) next = std::min(next, nodes_[slot]->next_wake());
    }
    return next;
  }
  void pump() {
    for (Rank slot = 0; slot < nodes_.size(); ++slot) {
      if (slot == stopped_) continue;
      nodes_[slot]->on_wake(now_);
      while (nodes_[slot]->poll_train(now_, *buffer_)) launch(slot, buffer_->train());
      nodes_[slot]->on_wake(now_);
    }
  }
  void launch(Rank from, const Train& train) {
    support::for_each_datagram(train, [&](ByteSpan datagram) {
      ++sent_;
      if (observer) observer(from, train.to, datagram);
      if (loses && loses(datagram)) return;
      flights_.emplace((now_ + kDelay).ns,
                       Flight{from, train.to, {datagram.begin(), datagram.end()}});
    });
  }

  std::vector<std::unique_ptr<Node>> nodes_;
  Instant now_{1'000'000'000};
  Rank stopped_ = kNoRank;
  std::multimap<std::int64_t, Flight> flights_;
  std::deque<Request> requests_;
  std::size_t sent_ = 0;
  std::unique_ptr<protocol::TrainBuffer> buffer_ = std::make_unique<protocol::TrainBuffer>();
};

}  // namespace leeway::collective
