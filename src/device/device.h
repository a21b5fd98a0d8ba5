// What Leeway has on one device: staging memory, signals, and streams for copies.
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
  // The ring's length at first. Steps have 4 MiB at most (of ordinary operations), so that copies,
  // network and copies back of several overlap.
  static constexpr std::size_t kRingBytes = std::size_t{32} << 20;
  // What cannot be cut, a group's messages say, gets a longer ring; no longer than this.
  static constexpr std::size_t kRingBytesMax = std::size_t{8} << 30;

  Device(const Driver& driver, DeviceContext context)
      : driver_(driver), context_(context), signals_(driver) {}
  // Within a ContextScope, and by the stager's mutex, as all below. Streams may refuse to wait for
  // values: stream_waits() is false then.
  Status set_up(std::size_t ring_bytes);

  const Driver& driver() const { return driver_; }
  cuda::Context context() const { return context_.context; }
  int ordinal() const { return context_.ordinal; }
  // cuStreamWaitValue32 and its kin work.
  bool stream_waits() const { return stream_waits_; }
  // For one record and wait at a time.
  cuda::Event event() const { return event_; }

  // A step's part of the ring.
  struct Block {
    std::byte* memory = nullptr;
    cuda::Address mapped = 0;  // where streams see it
    Signal signal;
    std::size_t ring = 0;
    Ring::Lease lease;
  };
  // Nothing: as Ring::place(). The signal is of this block's use.
  Result<std::optional<Block>> place(std::size_t bytes, std::vector<Signal>& over);
  // The work that ends the use is enqueued.
  void close(const Block& block);
  // A new ring, for at least so many bytes at once, in place of the present one.
  Status grow(std::size_t bytes);
  std::size_t ring_bytes() const { return rings_.back().ring.bytes(); }

  // Memory and lines of an operation in a graph.
  Result<Pinned> keep(std::size_t bytes);
  // Any thread, without a call of CUDA: a later keep() gets it.
  void unkeep(const Pinned& memory);

  struct Streams {
    cuda::Stream inputs = nullptr;
    cuda::Event captured = nullptr;
  };
  Result<Streams> take_streams();
  // As unkeep().
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
  std::optional<Signal> spare_;  // taken for a block that found no place
  std::deque<Arena> rings_;      // new leases lie in the last; earlier ones end where they are
  std::mutex returned_mutex_;
  std::deque<Streams> returned_streams_;
  std::vector<Pinned> returned_memory_;
};

}  // namespace leeway::device
