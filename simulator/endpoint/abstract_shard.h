// One rank's shard while its contributions arrive: how many of each packet are there, which chunks
// are summed, and which packets of the spread half that lets out. Follows
// collective::Reduction and collective::Spread, without contents.
#pragma once

#include <cstdint>
#include <vector>

#include "endpoint/abstract_plan.h"

namespace leeway::sim {

class AbstractShard {
 public:
  // `start`: the packet with which all senders begin.
  void begin(const AbstractPlan& plan, std::uint32_t self, std::uint32_t start);

  std::uint32_t start() const { return start_; }

  // The packet lies in a chunk that was summed without it.
  bool passed(std::uint32_t index) const {
    return sums_passed_ && chunk_passed_[index >> chunk_shift_] != 0;
  }
  // A first copy. `sender_passed` is the sender's progress, kept by the caller. True: chunks of the
  // spread half became available.
  bool accept(std::uint32_t index, bool first_pass, std::uint16_t& sender_passed);
  // The half is over: whatever is there is summed. True as above.
  bool settle();

  // Packets of the spread half that may be sent, in the order of sending; and which that is.
  std::uint32_t released() const { return released_; }
  std::uint32_t spread_index(std::uint32_t position) const;

  double contributors_mean() const;
  std::uint32_t contributors_min() const;

 private:
  void note_progress(std::uint32_t position, std::uint16_t& sender_passed);
  std::uint32_t chunks_passed(std::uint32_t position) const;
  void chunk_summed(std::uint32_t chunk);
  void release_spread_chunk(std::uint32_t chunk);

  const AbstractPlan* plan_ = nullptr;
  schedule::PacketGrid grid_;
  schedule::PacketGrid spread_grid_;
  std::uint32_t packets_ = 0;
  std::uint32_t start_ = 0;
  int chunk_shift_ = 0;
  bool sums_passed_ = false;
  std::vector<std::uint16_t> contributors_;  // arrived, by packet
  std::vector<std::uint32_t> chunk_left_;    // packets that are not summed yet
  std::vector<std::uint8_t> chunk_passed_;
  std::vector<std::uint16_t> senders_passed_;  // [n]: senders that have passed more than n chunks
  std::uint32_t chunks_settled_ = 0;

  std::vector<std::uint32_t> spread_waits_;  // reduction chunks that each of the spread waits for
  std::vector<std::uint32_t> spread_order_;  // chunks in the order of their release
  std::uint32_t short_place_ = 0;            // where in it the shorter last chunk stands
  std::uint32_t released_ = 0;
};

}  // namespace leeway::sim
