// A job of a few members in virtual time: the library's core (src/core/collective) and seal
// (src/security/seal), on a network in which an attacker acts. Deterministic: if attacks have no
// effect, two jobs send the same bytes at the same times.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/contracts.h"
#include "base/crc32c.h"
#include "collective/node.h"
#include "seal/aead.h"
#include "seal/associations.h"
#include "support/train_datagrams.h"
#include "wire/packet.h"

namespace leeway::attack {

using Bytes = std::vector<std::byte>;

struct JobSetup {
  int size = 4;
  CongestionControl control = CongestionControl::none;
  // With another number, processes have other keys, made from the same secret.
  unsigned incarnation = 1;
  std::uint32_t epoch = 77;
  std::size_t datagram_bytes = 600;
  Duration peer_timeout = std::chrono::seconds(3);
};

class SealedJob {
 public:
  static constexpr Duration kOneWay = std::chrono::milliseconds(1);

  struct Flying {
    Rank from;  // source address
    Rank to;
    Bytes bytes;
    Duration delay = kOneWay;
  };

  explicit SealedJob(const JobSetup& setup = {}) : setup_(setup) {
    for (Rank rank = 0; rank < setup.size; ++rank) {
      members_.push_back(std::make_unique<Process>(setup.control));
      join(rank);
    }
  }

  // Called for each datagram that a process sends. The returned datagrams travel instead.
  std::function<std::vector<Flying>(const Flying&)> network;
  // Called for each plain datagram before it is sealed. The returned messages are sealed and sent
  // instead, as by a faulty member.
  std::function<std::vector<Bytes>(Rank from, Rank to, const Bytes& plain)> betrayal;

  collective::Engine& engine(Rank rank) { return members_[rank]->member->engine(); }
  const seal::Counters& sealed(Rank rank) const { return members_[rank]->seals.counters(); }
  const protocol::EndpointCounters& counters(Rank rank) {
    return engine(rank).endpoint().counters();
  }
  Instant now() const { return now_; }
  // Returns a checksum of all bytes that these processes sent, and of the times when they sent
  // them.
  std::uint32_t trace() const { return trace_; }
  std::uint64_t bytes_between(Rank from, Rank to) const {
    const auto found = bytes_.find({from, to});
    return found == bytes_.end() ? 0 : found->second;
  }
  // Returns the tag by which `to` recognises datagrams of `from`.
  std::uint32_t tag_of(Rank from, Rank to) const { return keys(from, to).outbound_tag; }

  collective::Request& submit(Rank rank, const collective::OperationSpec& spec) {
    Process& process = *members_[rank];
    process.requests.push_back(std::make_unique<collective::Request>());
    collective::Request& request = *process.requests.back();
    request.spec = spec;
    process.member->engine().submit(now_, request);
    process.node.touch(*process.member);
    pump(rank);
    return request;
  }

  bool run_until(const std::function<bool()>& done, Duration limit) {
    const Instant end = now_ + limit;
    while (!done()) {
      const auto next = next_event();
      if (!next || *next > end) {
        now_ = std::max(now_, end);
        return done();
      }
      now_ = std::max(now_, *next);
      while (!flights_.empty() && flights_.begin()->first <= now_.ns) {
        Flying flying = std::move(flights_.begin()->second);
        flights_.erase(flights_.begin());
        arrive(flying);
      }
      for (Rank rank = 0; rank < setup_.size; ++rank) pump(rank);
    }
    return true;
  }
  void pass(Duration time) {
    run_until([] { return false; }, time);
  }

  void inject(Flying flying) { flights_.emplace((now_ + flying.delay).ns, std::move(flying)); }
  // Sends a message of a faulty member, properly sealed.
  void say(Rank from, Rank to, const Bytes& plain) { fly(from, to, sealed_by(from, to, plain)); }

  Bytes sealed_by(Rank from, Rank to, const Bytes& plain) {
    const Slice slice{plain.data(), plain.size()};
    const Train train{to, plain.size(), plain.size(), {&slice, 1}};
    Bytes out(seal::Associations::sealed_bytes(train));
    members_[from]->seals.seal(now_, train, out);
    return out;
  }

 private:
  struct Process {
    explicit Process(CongestionControl control)
        : node({.control = control, .rate_bits_per_second = 50'000'000}) {}
    collective::Node node;
    seal::Associations seals;
    collective::Member* member = nullptr;
    std::vector<std::unique_ptr<collective::Request>> requests;
  };

  seal::Party party(Rank rank) const {
    seal::Party party{.tag_base = 0x11110000u * (rank + setup_.incarnation)};
    party.public_key.fill(std::byte(16 * setup_.incarnation + rank));
    return party;
  }
  seal::PairKeys keys(Rank self, Rank peer) const {
    keys::Key agreed{};
    agreed[0] = std::byte(std::min(self, peer));
    agreed[1] = std::byte(std::max(self, peer));
    agreed[2] = std::byte(setup_.incarnation);
    keys::Key secret{};
    secret.fill(std::byte{0x55});
    return seal::derive_pair(agreed, secret, {}, party(self), party(peer), 0, 0);
  }

  void join(Rank self) {
    Process& process = *members_[self];
    protocol::EndpointConfig config;
    config.self = self;
    config.size = setup_.size;
    config.epoch = setup_.epoch;
    config.seed = 5;
    config.datagram_bytes = setup_.datagram_bytes;
    config.sum_payloads = false;
    config.window_bytes.assign(setup_.size, std::size_t{64} * 1024);
    config.peer_timeout = setup_.peer_timeout;
    config.rtt_initial = 2 * kOneWay;
    config.paced = setup_.control != CongestionControl::none;
    std::vector<Rank> slots;
    for (Rank rank = 0; rank < setup_.size; ++rank) {
      slots.push_back(rank);
      if (rank != self) {
        process.seals.meet(now_, rank, keys(self, rank),
                           seal::aead_maker(seal::AeadKind::aes_128_gcm));
      }
    }
    process.member = &process.node.join(now_, config, slots);
  }

  void pump(Rank rank) {
    Process& process = *members_[rank];
    process.node.on_wake(now_);
    while (process.node.poll_train(now_, *buffer_)) launch(rank, buffer_->train());
    process.node.on_wake(now_);
  }

  void launch(Rank from, const Train& train) {
    support::for_each_datagram(train, [&](ByteSpan datagram) {
      const Bytes plain(datagram.begin(), datagram.end());
      if (!betrayal) return fly(from, train.to, sealed_by(from, train.to, plain));
      for (const Bytes& said : betrayal(from, train.to, plain))
        fly(from, train.to, sealed_by(from, train.to, said));
    });
  }

  void fly(Rank from, Rank to, Bytes bytes) {
    trace_ = crc32c(bytes, trace_);
    trace_ = crc32c(std::as_bytes(std::span(&now_.ns, 1)), trace_);
    bytes_[{from, to}] += bytes.size();
    Flying flying{from, to, std::move(bytes)};
    if (!network) return inject(std::move(flying));
    for (Flying& one : network(flying)) inject(std::move(one));
  }

  void arrive(Flying& flying) {
    Process& process = *members_[flying.to];
    const ByteSpan plain = process.seals.open(now_, flying.from, flying.bytes);
    if (!plain.empty()) process.node.on_datagram(now_, flying.from, plain);
  }

  std::optional<Instant> next_event() const {
    std::optional<Instant> next;
    if (!flights_.empty()) next = Instant{flights_.begin()->first};
    for (const auto& process : members_) {
      const Instant wake = process->node.next_wake();
      if (wake < next.value_or(Instant::infinite_future())) next = wake;
    }
    return next;
  }

  const JobSetup setup_;
  Instant now_{1'000'000'000};
  std::vector<std::unique_ptr<Process>> members_;
  std::multimap<std::int64_t, Flying> flights_;  // by time of arrival
  std::unique_ptr<protocol::TrainBuffer> buffer_ = std::make_unique<protocol::TrainBuffer>();
  std::map<std::pair<Rank, Rank>, std::uint64_t> bytes_;
  std::uint32_t trace_ = 0;
};

// One all-reduce of a job: the inputs and results of all ranks.
class Sums {
 public:
  Sums(int size, std::size_t count, Delivery delivery) : delivery_(delivery) {
    for (int rank = 0; rank < size; ++rank) {
      auto& row = data_.emplace_back();
      for (std::size_t i = 0; i < count; ++i)
        row.push_back(static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 101));
    }
    results_ = data_;
  }
  std::vector<float>& contribution(Rank rank) { return data_[rank]; }
  const std::vector<float>& result(Rank rank) const { return results_[rank]; }

  collective::Request& submit(SealedJob& job, Rank rank) {
    collective::OperationSpec spec{.kind = collective::OperationKind::all_reduce};
    spec.input = std::span(data_[rank]);
    spec.output = std::span(results_[rank]);
    spec.options.delivery = delivery_;
    if (delivery_.kind != Delivery::Kind::exact) spec.options.spread = Delivery::Kind::best_effort;
    return job.submit(rank, spec);
  }

 private:
  std::vector<std::vector<float>> data_;
  std::vector<std::vector<float>> results_;
  Delivery delivery_;
};

}  // namespace leeway::attack
