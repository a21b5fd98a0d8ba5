// A packet's fate on one link, decided when it enters: queue and line, losses, corruption,
// duplication, delays. It has no events, no packets in flight, and no counters: network.h has
// those.
//
// All draws come from random streams named by seed, link and purpose. So one more setting on a link
// changes neither the draws of its other settings nor those of another link.
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

// Tables that all links of the same properties share, because they are large.
struct LinkTables {
  explicit LinkTables(const LinkProperties& properties);

  GeometricDistance duplicate;
  GeometricDistance reorder;
  GeometricDistance corrupt;
  // Patterns of loss models: one for each link's own losses, one for a shared fate. Down times are
  // always each link's own, because they follow the clock and not the packets, and each link asks
  // at the times of its own queue.
  LossModel own_losses;
  LossModel shared_losses;
};

// The loss model of links that share their fate.
LossModel make_shared_fate(const LinkTables& tables, std::uint32_t fate, std::uint64_t seed);

class LinkLine {
 public:
  struct Names {
    std::uint64_t seed = 0;
    std::uint64_t link = 0;
  };
  // `tables` and `fate`, which may be null, outlive the line. The properties are valid.
  LinkLine(const LinkProperties& properties, const LinkTables& tables, LossModel* fate,
           Names names);

  struct Passage {
    // the event at the link's end, or the reason why the packet is lost
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

  // Decides the packet's fate and changes the packet accordingly: marks, cuts or corrupts it. Times
  // must not go back.
  Passage pass(std::int64_t now_ns, Packet& packet);

  // From now on packets are lost only in the queue, and nothing is copied, held back or damaged.
  void set_calm();

  // Returns true if packets leave in the order in which they came.
  bool in_order() const { return in_order_; }
  // Returns true if all packets leave when they come.
  bool at_once() const { return at_once_; }

  // Call these when a packet will come soon; the second finds in the cache what the first one
  // fetched.
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
