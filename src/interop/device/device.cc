#include "device/device.h"

#include <algorithm>
#include <bit>

namespace leeway::device {

Status Device::set_up(std::size_t ring_bytes) {
  if (const auto code = driver_.call.cuEventCreate(&event_, cuda::kEventWithoutTiming);
      code != cuda::kSuccess)
    return driver_.error("cuEventCreate", code);
  if (Status status = grow(ring_bytes); !status.ok()) return status;
  auto streams = take_streams();
  if (!streams.ok()) return streams.status();
  auto signal = signals_.take();
  if (!signal.ok()) return signal.status();
  const auto write = [&](Word word) {
    return driver_.call.cuStreamWriteValue32(streams->inputs, signal->address(word),
                                             signal->value(),
                                             cuda::kWriteAfterEarlierWork) == cuda::kSuccess;
  };
  // Tries the functions, because older drivers have them but refuse them on some devices.
  stream_waits_ = write(&Words::ready) && write(&Words::released) &&
                  driver_.call.cuStreamWaitValue32(streams->inputs, signal->address(&Words::ready),
                                                   signal->value(),
                                                   cuda::kWaitGreaterOrEqual) == cuda::kSuccess;
  give_back(*streams);
  return Status();
}

Result<std::optional<Device::Block>> Device::place(std::size_t bytes, std::vector<Signal>& over) {
  if (!spare_) {
    auto signal = signals_.take();
    if (!signal.ok()) return signal.status();
    spare_ = *signal;
  }
  Arena& arena = rings_.back();
  const auto lease = arena.ring.place(bytes, *spare_, over);
  if (!lease) return std::optional<Block>();
  Block block{arena.pinned.memory + lease->offset, arena.pinned.mapped + lease->offset, *spare_,
              rings_.size() - 1, *lease};
  spare_.reset();
  return std::optional(block);
}

void Device::close(const Block& block) {
  rings_[block.ring].ring.close(block.lease);
}

Status Device::grow(std::size_t bytes) {
  const std::size_t before = rings_.empty() ? 0 : rings_.back().ring.bytes();
  if (bytes > kRingBytesMax || 2 * before > kRingBytesMax) {
    return Status::error(StatusCode::kResourceExhausted,
                         "a call needs %zu bytes of staging at once, more than %zu: give a group "
                         "fewer messages",
                         bytes, kRingBytesMax);
  }
  const std::size_t length = std::max(std::bit_ceil(bytes), 2 * before);
  const auto memory = allocate_pinned(driver_, length);
  if (!memory.ok()) return memory.status();
  rings_.emplace_back(*memory);
  return Status();
}

Result<Pinned> Device::keep(std::size_t bytes) {
  {
    const std::lock_guard lock(returned_mutex_);
    const auto fits = [&](const Pinned& one) { return one.bytes >= bytes; };
    const auto found = std::find_if(returned_memory_.begin(), returned_memory_.end(), fits);
    if (found != returned_memory_.end()) {
      const Pinned memory = *found;
      returned_memory_.erase(found);
      return memory;
    }
  }
  return allocate_pinned(driver_, std::bit_ceil(bytes));
}

void Device::unkeep(const Pinned& memory) {
  const std::lock_guard lock(returned_mutex_);
  returned_memory_.push_back(memory);
}

Result<Device::Streams> Device::take_streams() {
  {
    const std::lock_guard lock(returned_mutex_);
    if (!returned_streams_.empty()) {
      const Streams streams = returned_streams_.front();
      returned_streams_.pop_front();
      return streams;
    }
  }
  Streams made;
  // Kernels on this stream are short, and other ranks wait for them, so they have priority over the
  // program's kernels.
  auto code = driver_.call.cuStreamCreateWithPriority(&made.inputs, cuda::kStreamNonBlocking,
                                                      cuda::kHighestPriority);
  if (code == cuda::kSuccess)
    code = driver_.call.cuEventCreate(&made.captured, cuda::kEventWithoutTiming);
  if (code != cuda::kSuccess) return driver_.error("a stream for copies", code);
  return made;
}

void Device::give_back(const Streams& streams) {
  const std::lock_guard lock(returned_mutex_);
  returned_streams_.push_back(streams);
}

}  // namespace leeway::device
