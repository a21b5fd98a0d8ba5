// Everything that runs over one transport: the engine, the operations in flight, and the thread
// that moves datagrams between engine and transport.
//
// A caller that waits drives, so that a blocking call costs no thread switch. While nobody waits, a
// background thread drives. A thread that must touch the engine takes the role with a Session.
// Sources: driver.cc (driving, and a step), driver_operations.cc (what callers ask for),
// driver_paths.cc (proofs before the first call), driver_counters.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/time.h"
#include "collective/engine.h"
#include "driving/driving_role.h"
#include "driving/train_ring.h"
#include "leeway/options.h"
#include "leeway/transport.h"
#include "transport/fault/fault_transport.h"

namespace leeway::driving {
class Driver;
}  // namespace leeway::driving

namespace leeway::internal {

// Shared by the caller's Work and, until it is done, the driver.
struct WorkState {
  collective::Request request;
  std::atomic<bool> done{false};      // published: request is final and the caller's memory is free
  driving::Driver* driver = nullptr;  // valid until done

  // Once it is done.
  Result<CollectiveReport> outcome() const {
    if (!request.status.ok()) return request.status;
    return request.report;
  }
};

}  // namespace leeway::internal

namespace leeway::driving {

using internal::WorkState;

Instant steady_now();

class Driver final : private MemoryWatcher {
 public:
  using Counters = std::vector<std::pair<std::string, std::uint64_t>>;

  // `faults` is `transport` seen as what it is, or null.
  Driver(TransportKind kind, const protocol::EndpointConfig& config,
         std::unique_ptr<DatagramTransport> transport,
         const transport::FaultTransport* faults = nullptr);
  // Lets operations end for a while, cancels the rest, and leaves (protocol/departure.h): in a few
  // time-outs where peers answer, in some seconds where one is dead.
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  TransportKind kind() const { return kind_; }
  const protocol::EndpointConfig& config() const { return engine_.endpoint().config(); }

  // Hears from every peer over the data path, which also measures round trips; kUnavailable naming
  // those it cannot hear.
  Status prove_paths(Duration timeout);

  // After prove_paths(), where the transport has multicast: the ranks that do not report ours,
  // asked for up to a fifth of a second.
  std::vector<Rank> deaf_to_multicast();

  std::shared_ptr<WorkState> submit(const collective::OperationSpec& spec);
  // There is asynchronous work: the background thread need not wait for a pause of the callers.
  void nudge() { role_.nudge(); }
  Result<CollectiveReport> wait(WorkState& work);

  // As DatagramTransport's; any thread.
  Status register_memory(ByteSpan memory);
  void forget_memory(ByteSpan memory);

  // One row a name, `prefix` before each.
  void add_counters(const std::string& prefix, Counters& rows);

  // Exclusive access to the engine while it lives.
  class Session {
   public:
    explicit Session(Driver& driver) : driver_(driver) { driver_.role_.acquire(); }
    ~Session() { driver_.role_.release(); }
    collective::Engine& engine() { return driver_.engine_; }
    // Hands datagrams in and out once, without blocking.
    void pump() { driver_.step(steady_now()); }

   private:
    Driver& driver_;
  };

 private:
  static constexpr std::size_t kReceiveBatch = 64;

  // The engine's memory, which the transport may have to know. What it cannot register it copies.
  void on_allocated(ByteSpan memory) override { (void)transport_->register_memory(memory); }
  void before_freed(ByteSpan memory) override { transport_->forget_memory(memory); }

  // driver.cc
  // Drives until `done` (asked on the driving thread, between steps) or `deadline`. Whether it is
  // done.
  bool run_until(const std::function<bool()>& done, Instant deadline);
  bool step(Instant now);
  bool receive(Instant now);
  void fail(Instant now, const Status& status);
  void block(Instant now, Instant deadline);
  void drive_in_pauses();

  // driver_operations.cc
  // Gives callers back the memory of operations that are done. Only while no train is out: it may
  // refer to that memory.
  void publish();
  void leave();
  void flush();

  // driver_paths.cc
  void probe_all();

  const TransportKind kind_;
  const transport::FaultTransport* const faults_;
  // The driving thread alone touches these.
  std::vector<std::shared_ptr<WorkState>> active_;
  TrainRing trains_;
  collective::Engine engine_;
  std::unique_ptr<DatagramTransport> transport_;  // goes before the memory that it may be reading
  std::vector<Received> received_;

  DrivingRole role_;
  std::thread background_;  // last: it uses the rest
};

}  // namespace leeway::driving
