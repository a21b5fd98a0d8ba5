// Queues the answers of a process to datagrams for communicators of which it is no member (WIRE 6.7
// to 6.9), and to questions about datagram lengths (WIRE 10.2).
#pragma once

#include <vector>

#include "base/time.h"
#include "collective/paths.h"
#include "protocol/train_buffer.h"
#include "wire/packet.h"

namespace leeway::collective {

class AnswerQueue {
 public:
  // Limit on waiting answers. A full queue drops further answers; the peer then asks again.
  static constexpr std::size_t kPlaces = 64;

  AnswerQueue() { waiting_.reserve(kPlaces); }

  bool empty() const { return waiting_.empty(); }
  // Queues an answer, or drops it if the queue is full. `size` matters only to answers of type
  // `size`.
  void add(Rank slot, const wire::Prefix& prefix, const wire::Size& size = {}) {
    if (waiting_.size() < kPlaces) waiting_.push_back({prefix, slot, size});
  }
  // Writes the newest answer, and removes it. Requires !empty(), and a path to the answer's slot.
  // Returns true if the datagram got a sequence number of the path. All types except `alive` and
  // `size` get one.
  bool write(Instant now, Paths& paths, protocol::TrainBuffer& out);

 private:
  struct Answer {
    wire::Prefix prefix;
    Rank slot = 0;
    wire::Size size;
  };

  std::vector<Answer> waiting_;
};

}  // namespace leeway::collective
