// State that a forked child does not share. The child gets a new one and does not touch its
// parent's, whose locks may be held for ever by threads that do not exist in the child.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/fork.h"

namespace leeway {

template <typename State>
class PerProcess {
 public:
  // Any thread may call it.
  State& get() {
    Node* node = node_.load(std::memory_order_acquire);
    while (node->generation != fork_generation()) {
      auto made = std::make_unique<Node>();
      made->parents = node;
      if (node_.compare_exchange_strong(node, made.get(), std::memory_order_acq_rel))
        node = made.release();
    }
    return node->state;
  }

 private:
  struct Node {
    std::uint32_t generation = fork_generation();
    Node* parents = nullptr;  // keeps the parent's state reachable, for leak checkers
    State state;
  };
  std::atomic<Node*> node_ = new Node;  // never destroyed
};

}  // namespace leeway
