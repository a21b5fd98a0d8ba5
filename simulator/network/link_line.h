// Decides what happens to a packet on one link, at the time when it enters: queue and line, losses,
// corruption, duplication, delays. Events, packets in flight and counters are in network.h.
//
// Random streams are named by seed, link and purpose. So adding a setting to a link does not change
// the draws of its other settings, nor those of other links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/geometric.h"
#include "link/delay_model.h"
#include "link/loss_model.h"
#include "link/queue.h"
#include "network/network_types.h"
#include "network/packet.h"
#include "network/rare_hit.h"
#include "topology/link_properties.h"

namespace leeway::sim {

// Large tables, which all links with the same properties share.
struct LinkTables {
  explicit LinkTables(const LinkProperties& properties);

  GeometricDistance duplicate;
  GeometricDistance reorder;
  GeometricDistance corrupt;
  // Loss models that the links' own models are made from: one for losses of a link alone, one for
  // losses that links share. Down times are never shared. They follow the clock, and each link asks
  // about them at the times of its own queue.
  LossModel own_losses;
  LossModel shared_losses;
};

// Makes the loss model that all links with the fate number `fate` share.
LossModel make_shared_fate(const LinkTables& tables, std::uint32_t fate, std::uint64_t seed);

class LinkLine {
 public:
  struct Names {
    std::uint64_t seed = 0;
    std::uint64_t link = 0;
  };
  // `tables` and `fate` must outlive the line; `fate` may be null. The properties must be valid.
  LinkLine(const LinkProperties& properties, const LinkTables& tables, LossModel* fate,
           Names names);

  struct Passage {
    // what happens at the end of the link, or why the packet is lost
    PacketStep step = PacketStep::sent;
    std::int64_t arrival_ns = 0;  // if not lost
    bool trimmed = false;
    bool marked = false;
    bool corrupted = false;
    bool held_back = false;
    bool copied = false;
    std::int64_t copy_arrival_ns = 0;
    std::uint64_t waiting_bytes = 0;  // in the queue, this packet included

    bool unharmed() const {
      return step == PacketStep::sent && !trimmed && !marked && !corrupted && !held_back;
    }
  };

  // Decides the packet's fate, and marks, cuts or corrupts the packet accordingly. Times must not
  // go back.
  Passage pass(std::int64_t now_ns, Packet& packet);

  // From now on only the queue loses packets, and nothing is copied, held back or damaged.
  void set_calm();

  // Returns true if packets leave in the order in which they came.
  bool in_order() const { return in_order_; }
  // Returns true if the link never delays a packet.
  bool at_once() const { return at_once_; }

  // Call both shortly before a packet comes, prefetch_queue() first: prefetch_waiting() reads what
  // prefetch_queue() fetches.
  void prefetch_queue() const {
    __builtin_prefetch(queue_.get(), 1);
    __builtin_prefetch(reinterpret_cast<const std::byte*>(queue_.get()) + 64, 1);
  }
  void prefetch_waiting() const {
    if (queue_ != nullptr) queue_->prefetch();
  }

  // Bytes in the queue now, including the packet on the line.
  std::uint64_t waiting_bytes(std::int64_t now_ns) {
    return queue_ == nullptr ? 0 : queue_->waiting_bytes(now_ns);
  }

 private:
  struct Faults {
    std::optional<RareHit> duplicate;
    std::optional<RareHit> reorder;
    std::optional<RareHit> corrupt;
  };

  void add_delays(const LinkProperties& properties, Names names);
  void add_faults(const LinkProperties& properties, const LinkTables& tables, Names names);
  bool enqueue(std::int64_t now_ns, Packet& packet, Passage& passage, std::int64_t& out_ns);
  bool lost(std::int64_t out_ns, std::uint32_t bytes);
  void harm(std::int64_t out_ns, Packet& packet, Passage& passage);
  std::int64_t delayed(std::int64_t out_ns);

  std::unique_ptr<Queue> queue_;
  std::unique_ptr<LossModel> losses_;
  LossModel* fate_ = nullptr;
  std::unique_ptr<Faults> faults_;
  std::int64_t fixed_delay_ns_ = 0;
  std::int64_t reorder_by_ns_ = 0;
  std::vector<DelayModel> delays_;  // delays that vary
  bool in_order_ = true;
  bool at_once_ = false;
};

}  // namespace leeway::sim
