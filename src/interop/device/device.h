// Leeway's resources on one device: staging memory, signals, and streams for copies.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "device/driver.h"
#include "device/ring.h"
#include "device/signal.h"

namespace leeway::device {

class Device {
 public:
  // First length of the ring. An ordinary step has at most 4 MiB, so several fit and their copies
  // and network transfers overlap.
  static constexpr std::size_t kRingBytes = std::size_t{32} << 20;
  // Longest ring. The ring grows for steps that cannot be divided, such as a group's messages.
  static constexpr std::size_t kRingBytesMax = std::size_t{8} << 30;

  Device(const Driver& driver, DeviceContext context)
      : driver_(driver), context_(context), signals_(driver) {}
  // Call set_up() and all functions below within a ContextScope and with the stager's mutex. Sets
  // stream_waits() to false if streams refuse to wait for values.
  Status set_up(std::size_t ring_bytes);

  const Driver& driver() const { return driver_; }
  cuda::Context context() const { return context_.context; }
  int ordinal() const { return context_.ordinal; }
  // Returns whether cuStreamWaitValue32 and cuStreamWriteValue32 work on the device.
  bool stream_waits() const { return stream_waits_; }
  // Returns an event that a call may record and wait for. The next call records it anew.
  cuda::Event event() const { return event_; }

  // A step's memory in the ring, and its signal.
  struct Block {
    std::byte* memory = nullptr;
    cuda::Address mapped = 0;  // its address for streams
    Signal signal;
    std::size_t ring = 0;
    Ring::Lease lease;
  };
  // Returns nullopt if the ring has no room. `over` gets the signals of steps that had the memory
  // before (Ring::place()).
  Result<std::optional<Block>> place(std::size_t bytes, std::vector<Signal>& over);
  // Call it when the last work that uses the block is enqueued; other steps may then take its
  // memory.
  void close(const Block& block);
  // Replaces the ring by a new one that can hold a block of at least this many bytes.
  Status grow(std::size_t bytes);
  std::size_t ring_bytes() const { return rings_.back().ring.bytes(); }

  // Returns memory for the staging and words of an operation in a graph.
  Result<Pinned> keep(std::size_t bytes);
  // Takes memory back, for a later keep(). May be called from any thread; makes no call of CUDA.
  void unkeep(const Pinned& memory);

  struct Streams {
    cuda::Stream inputs = nullptr;
    cuda::Event captured = nullptr;
  };
  Result<Streams> take_streams();
  // Takes streams back for later use, in the way in which unkeep() takes memory back.
  void give_back(const Streams& streams);

 private:
  struct Arena {
    explicit Arena(const Pinned& memory) : pinned(memory), ring(memory.bytes) {}
    Pinned pinned;
    Ring ring;
  };

  const Driver& driver_;
  const DeviceContext context_;
  bool stream_waits_ = false;
  cuda::Event event_ = nullptr;
  Signals signals_;
  std::optional<Signal> spare_;  // signal taken for a block that found no place
  std::deque<Arena> rings_;      // new leases are in the last; earlier leases end where they are
  std::mutex returned_mutex_;
  std::deque<Streams> returned_streams_;
  std::vector<Pinned> returned_memory_;
};

}  // namespace leeway::device
