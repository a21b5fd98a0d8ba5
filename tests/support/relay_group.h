// Processes with sealed datagrams in a virtual network, where some have no path to each other. They
// run the library's sealing transport (src/runtime/transport/sealed) in virtual time. A test can
// act as an attacker who sees and changes every datagram.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "seal/aead.h"
#include "support/train_datagrams.h"
#include "transport/sealed/sealed_transport.h"

namespace leeway::support {

using Bytes = std::vector<std::byte>;

class RelayGroup {
 public:
  static constexpr Duration kOneWay = std::chrono::milliseconds(5);

  struct Flying {
    NetworkAddress from;
    NetworkAddress to;
    Bytes bytes;
    Duration delay = kOneWay;
  };

  explicit RelayGroup(Rank size, std::size_t datagram_bytes = 1472) {
    for (Rank self = 0; self < size; ++self) {
      auto end = std::make_unique<End>(*this, self, size, datagram_bytes);
      ends_.push_back(end.get());
      members_.push_back(
          std::make_unique<transport::SealedTransport>(std::move(end), [this] { return now_; }));
      heard_.emplace_back();
    }
    for (Rank self = 0; self < size; ++self) {
      for (Rank peer = 0; peer < size; ++peer) {
        if (peer == self) continue;
        members_[self]->meet(peer, keys_of(self, peer),
                             seal::aead_maker(seal::AeadKind::aes_128_gcm), name_of(peer));
      }
    }
  }

  // A test may set this. It is called for each datagram that leaves a process, and the datagrams
  // that it returns travel in its place.
  std::function<std::vector<Flying>(const Flying&)> network;

  static NetworkAddress address_of(Rank process) {
    NetworkAddress address;
    address.ip = {0, 0, 0,    0,    0,   0, 0, 0,
                  0, 0, 0xFF, 0xFF, 192, 0, 2, static_cast<std::uint8_t>(process + 1)};
    address.port = 7000;
    return address;
  }
  static std::uint64_t name_of(Rank process) { return 1000u + process; }
  static seal::PairKeys keys_of(Rank self, Rank peer) {
    keys::Key agreed{};
    agreed[0] = std::byte(std::min(self, peer));
    agreed[1] = std::byte(std::max(self, peer));
    return seal::derive_pair(agreed, {}, {}, party_of(self), party_of(peer), 0, 0);
  }

  void cut(Rank one, Rank other) {
    cut_.insert({one, other});
    cut_.insert({other, one});
  }
  void mend(Rank one, Rank other) {
    cut_.erase({one, other});
    cut_.erase({other, one});
  }
  void set_busy(bool busy) {
    for (auto& member : members_) member->set_busy(busy);
  }

  transport::SealedTransport& at(Rank process) { return *members_[process]; }
  std::uint64_t counter(Rank process, std::string_view name) const {
    for (const auto& [row, value] : members_[process]->named_seal_counters()) {
      if (row == name) return value;
    }
    return UINT64_MAX;
  }
  // Returns the messages of peer `from` that `process` passed to its core since the last call.
  std::vector<Bytes> take_heard(Rank process, Rank from) {
    return std::exchange(heard_[process][from], {});
  }
  // Takes the same messages as take_heard(), but returns their ECN marks.
  std::vector<Ecn> take_heard_with_marks(Rank process, Rank from) {
    heard_[process][from].clear();
    return std::exchange(marks_[process][from], {});
  }
  std::uint64_t bytes_to(const NetworkAddress& to) const {
    std::uint64_t sum = 0;
    for (const auto& [address, bytes] : sent_) sum += address == to ? bytes : 0;
    return sum;
  }
  void mark(Ecn ecn) { ecn_ = ecn; }
  std::size_t longest_train() const { return longest_train_; }
  Instant now() const { return now_; }

  // Sends datagrams of `segment_bytes` each; the last one may be shorter.
  void send(Rank from, Rank to, const Bytes& bytes, std::size_t segment_bytes) {
    const Slice slice{bytes.data(), bytes.size()};
    const Train train{to, std::min(segment_bytes, bytes.size()), bytes.size(), {&slice, 1}};
    members_[from]->send({&train, 1});
  }
  // Puts a datagram of an attacker or a stranger on the network.
  void inject(Flying flying) { flying_.emplace((now_ + flying.delay).ns, std::move(flying)); }

  void run(Duration time, Duration step = std::chrono::milliseconds(1)) {
    for (const Instant end = now_ + time; now_ < end; now_ += step) {
      while (!flying_.empty() && flying_.begin()->first <= now_.ns) {
        Flying flying = std::move(flying_.begin()->second);
        flying_.erase(flying_.begin());
        for (End* const there : ends_) {
          if (address_of(there->self()) != flying.to) continue;
          there->arrive(std::move(flying));
          break;
        }
      }
      for (Rank process = 0; process < members_.size(); ++process) {
        std::array<Received, 32> out;
        while (const std::size_t count = members_[process]->receive(out)) {
          for (std::size_t i = 0; i < count; ++i) {
            heard_[process][out[i].from].emplace_back(out[i].bytes.begin(), out[i].bytes.end());
            marks_[process][out[i].from].push_back(out[i].ecn);
          }
        }
        members_[process]->wait({});
        while (members_[process]->poll_move()) {
        }
      }
    }
  }

 private:
  class End final : public DatagramTransport, public transport::Whereabouts {
   public:
    End(RelayGroup& group, Rank self, Rank size, std::size_t datagram_bytes)
        : group_(group), self_(self) {
      limits_.datagram_bytes_max = datagram_bytes;
      for (Rank peer = 0; peer < size; ++peer) where_.push_back(RelayGroup::address_of(peer));
    }
    Rank self() const { return self_; }
    void arrive(Flying flying) { arrived_.push_back(std::move(flying)); }

    std::string_view name() const override { return "memory"; }
    const TransportLimits& limits() const override { return limits_; }
    std::size_t send(std::span<const Train> trains) override {
      for (const Train& train : trains) {
        group_.longest_train_ = std::max(group_.longest_train_, train.total_bytes);
        support::for_each_datagram(train,
                                   [&](ByteSpan datagram) { send_to(where_[train.to], datagram); });
      }
      return trains.size();
    }
    std::size_t receive(std::span<Received> out) override {
      here_.clear();
      while (here_.size() < out.size() && !arrived_.empty()) {
        here_.push_back(std::move(arrived_.front()));
        arrived_.pop_front();
      }
      for (std::size_t i = 0; i < here_.size(); ++i) {
        const auto peer = std::find(where_.begin(), where_.end(), here_[i].from);
        const auto from = peer == where_.end() ? kNoRank : static_cast<Rank>(peer - where_.begin());
        out[i] = {from, here_[i].bytes, group_.ecn_};
      }
      return here_.size();
    }
    void wait(Duration) override {}
    void wake() override {}
    TransportCounters counters() const override { return {}; }

    void show_strangers() override {}
    NetworkAddress address_of(Rank peer) const override { return where_[peer]; }
    NetworkAddress source_of(const Received& received) const override {
      for (const Flying& one : here_) {
        if (one.bytes.data() == received.bytes.data()) return one.from;
      }
      return {};
    }
    bool move(Rank peer, const NetworkAddress& to) override {
      where_[peer] = to;
      return true;
    }
    bool send_to(const NetworkAddress& to, ByteSpan datagram) override {
      group_.fly({RelayGroup::address_of(self_), to, {datagram.begin(), datagram.end()}});
      return true;
    }

   private:
    RelayGroup& group_;
    const Rank self_;
    TransportLimits limits_{1472, 65507, 64, 256, 1u << 20};
    std::vector<NetworkAddress> where_;
    std::deque<Flying> arrived_;
    std::vector<Flying> here_;
  };

  static seal::Party party_of(Rank process) {
    seal::Party party{.tag_base = 0x11110000u * (process + 1u)};
    party.public_key.fill(std::byte(16 + process));
    return party;
  }

  void fly(const Flying& flying) {
    sent_.emplace_back(flying.to, flying.bytes.size());
    for (const auto& [one, other] : cut_) {
      if (flying.from == address_of(one) && flying.to == address_of(other)) return;
    }
    if (!network) return inject(flying);
    for (Flying& one : network(flying)) inject(std::move(one));
  }

  Instant now_{1'000'000'000};
  std::vector<End*> ends_;
  std::vector<std::unique_ptr<transport::SealedTransport>> members_;
  std::vector<std::map<Rank, std::vector<Bytes>>> heard_;
  std::map<Rank, std::map<Rank, std::vector<Ecn>>> marks_;
  std::multimap<std::int64_t, Flying> flying_;
  std::set<std::pair<Rank, Rank>> cut_;
  std::vector<std::pair<NetworkAddress, std::size_t>> sent_;
  std::size_t longest_train_ = 0;
  Ecn ecn_ = Ecn::none;
};

}  // namespace leeway::support
