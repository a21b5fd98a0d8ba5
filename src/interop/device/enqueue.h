// Enqueues one call's work.
//
// Row i has the i-th step of every lane, and rows are enqueued one after the other, so that lanes
// go side by side. Inputs of as many rows as the ring holds come first, so that the copies of
// several steps overlap. Then the output of the oldest row makes room for the input of the next.
// Kernels that sum are enqueued for all open rows before the first output, because outputs wait for
// other ranks' sums.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "device/stager.h"

namespace leeway::device {

class Enqueue {
 public:
  explicit Enqueue(Stager& stager) : stager_(stager), lock_(stager.mutex_) {}
  Status run(std::span<const Transfer> transfers);

 private:
  // A step whose input is enqueued, and whose output is not.
  struct Open {
    const Transfer* transfer = nullptr;
    const Step* step = nullptr;
    Device::Block block;

    Site site() const { return {block.memory, block.mapped, block.signal}; }
  };
  using Row = std::vector<Open>;

  Status wait_for_streams(const Transfer& transfer);
  Status begin(Row row);
  Result<Device::Block> place(const Lane& lane, std::size_t bytes);
  Status input(const Open& open);
  Status reduce(const Open& open);
  Status reduce_all();
  Status output(const Open& open);
  Status close_oldest();
  Status close_all();
  Status wait_for_room(Lane& lane);
  Status let_streams_wait(const Transfer& transfer);
  Status wait_until_settled(Lane& lane, const Signal& earlier);
  // Releases the mutex, and waits until the condition is true.
  template <typename Condition>
  void wait_here(const Condition& condition);
  // Makes the lane's device current, and returns it.
  Device& enter(const Lane& lane);

  Stager& stager_;
  std::unique_lock<std::mutex> lock_;
  std::optional<ContextScope> scope_;
  const Device* current_ = nullptr;
  std::deque<Row> rows_;      // open, oldest first
  std::size_t reduced_ = 0;   // leading rows whose sums are enqueued
  std::vector<Signal> over_;  // signals of the leases that had the step's block before
};

}  // namespace leeway::device
