// Answers of a process to datagrams that are for none of its members (WIRE 6.7 to 6.9), and to
// questions about lengths of datagrams (WIRE 10.2).
#pragma once

#include <vector>

#include "base/time.h"
#include "collective/paths.h"
#include "protocol/train_buffer.h"
#include "wire/packet.h"

namespace leeway::collective {

class AnswerQueue {
 public:
  // Answers that may wait. A question that finds no room is asked again.
  static constexpr std::size_t kPlaces = 64;

  AnswerQueue() { waiting_.reserve(kPlaces); }

  bool empty() const { return waiting_.empty(); }
  // Queues an answer, or drops it if there is no room. `size` is sent only with the type `size`.
  void add(Rank slot, const wire::Prefix& prefix, const wire::Size& size = {}) {
    if (waiting_.size() < kPlaces) waiting_.push_back({prefix, slot, size});
  }
  // Writes the latest answer, and removes it. One must wait, and its path must have been met.
  // Returns true if the datagram has a number of the path, as all but `alive` and `size` have.
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
