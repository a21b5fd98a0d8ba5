// Ranks that watch each other: each learns when another one has died, or has left without a word.
//
// NVIDIA's library does not tell a rank that its peer is gone, and a rank that fails between the
// nodes has peers inside its node that see nothing of that.
#pragma once

#include <functional>
#include <memory>

#include "leeway/communicator.h"

namespace leeway::nccl {

class Watch {
 public:
  // `team`: the ranks that watch each other.
  explicit Watch(std::unique_ptr<Communicator> team);
  // Without a word, if leave() was not called.
  ~Watch() { raise(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Some other rank raised an alarm, or died.
  bool alarmed() const;
  // From now on `alarm` is called, once at most and on any thread, when that happens; at once where
  // it has happened. It must not block.
  void arm(const std::function<void(const Status& why)>& alarm);
  // The others are alarmed.
  void raise();
  // The others are told that all is well; they have a fifth of a second to hear it.
  void leave();

 private:
  struct State;

  const std::unique_ptr<Communicator> team_;
  const std::shared_ptr<State> state_;
};

}  // namespace leeway::nccl
