// Injects faults into any transport, on the receiving side, as a FaultPlan says.
//
// The plan is asked about each arriving datagram by its packet address. The datagram is then lost,
// corrupted in place, delayed, held back behind later ones or handed out twice. A datagram that
// does not decode has no such address and passes untouched. So do all datagrams that this rank
// sends. No datagram is held for ever: one that is never overtaken leaves after kReorderHold.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "impairment/fault_plan.h"
#include "leeway/transport.h"
#include "transport/fault/held_pool.h"

namespace leeway::transport {

// Longest time that a datagram waits to be overtaken. It equals the library's timer tick.
inline constexpr Duration kReorderHold = std::chrono::milliseconds(1);

struct FaultCounters {
  std::uint64_t lost_data = 0;
  std::uint64_t lost_control = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t delayed = 0;
  std::uint64_t not_held = 0;     // handed out at once because no slot was free to hold them
  std::uint64_t undecodable = 0;  // passed on untouched
};

class FaultTransport final : public DatagramTransport {
 public:
  using ClockFunction = std::function<Instant()>;

  // Limit on the datagrams held. At 1 GB/s of jumbo frames, 4,096 suffice for a delay of 36 ms.
  static constexpr std::size_t kSlots = 4096;

  // `self` is the rank whose transport this is. `slots` datagrams can be held at a time.
  FaultTransport(std::unique_ptr<DatagramTransport> inner, Rank self, impairment::FaultPlan plan,
                 ClockFunction clock, std::size_t slots = kSlots);

  std::string_view name() const override { return name_; }
  const TransportLimits& limits() const override { return inner_->limits(); }
  // Payloads have checksums even if the inner transport goes through memory, because the injected
  // faults imitate those of a network.
  const TransportLimits& limits_to(Rank) const override { return inner_->limits(); }
  std::size_t send(std::span<const Train> trains) override { return inner_->send(trains); }
  std::size_t borrowed() override { return inner_->borrowed(); }
  Status register_memory(ByteSpan memory) override { return inner_->register_memory(memory); }
  void forget_memory(ByteSpan memory) override { inner_->forget_memory(memory); }
  const Status& status() const override { return inner_->status(); }
  std::size_t receive(std::span<Received> out) override;
  void wait(Duration timeout) override;
  void wake() override { inner_->wake(); }
  TransportCounters counters() const override { return inner_->counters(); }

  const FaultCounters& fault_counters() const { return faults_; }
  // Returns the counters as rows: "injected_lost_data", ...
  std::vector<std::pair<std::string, std::uint64_t>> named_fault_counters() const;

 private:
  // The caller's array, while receive() fills it.
  struct Output {
    std::span<Received> out;
    std::size_t filled = 0;
    std::size_t room() const { return out.size() - filled; }
    void put(const Received& datagram) { out[filled++] = datagram; }
  };

  void reclaim_lent();
  void release_delayed(Instant now, Output& output);
  void release_overdue(Instant now);
  void hand_out_ready(Output& output, std::size_t keep_free);
  std::size_t take_in(Instant now, Output& output);
  void on_arrival(Instant now, Received datagram, Output& output);
  void on_overtaken();
  std::optional<HeldIndex> hold(const Received& datagram, const impairment::Fate& fate,
                                Instant due);
  bool hold_back(Instant now, const Received& datagram, const impairment::Fate& fate);
  bool delay(Instant now, const Received& datagram, const impairment::Fate& fate);
  void duplicate(const Received& datagram);
  void lend(HeldIndex index, Output& output);
  Instant next_release() const;

  const std::unique_ptr<DatagramTransport> inner_;
  const Rank self_;
  impairment::FaultPlan plan_;
  const ClockFunction clock_;
  const std::string name_;

  std::vector<Received> arrivals_;
  HeldPool pool_;
  // Delayed datagrams in order of arrival. This is also the order in which they fall due, because
  // the delay is constant
  HeldQueue delayed_;
  std::vector<HeldIndex> overtaken_;  // each waits until fate.reorder more are handed out
  HeldQueue ready_;                   // to be handed out next
  std::vector<HeldIndex> lent_;       // handed out by the last receive()
  FaultCounters faults_;
};

}  // namespace leeway::transport
