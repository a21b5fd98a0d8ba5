// Moves datagrams between one engine and one transport, on whichever thread drives.
//
// There is one driver at a time. A caller that waits drives, so that a blocking call costs no
// thread switch; when nobody waits, a background thread drives. Threads that must touch the engine
// ask for the role with Session.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/time.h"
#include "collective/engine.h"
#include "leeway/transport.h"

namespace leeway::driving {

Instant steady_now();

class Driver final : private MemoryWatcher {
 public:
  // `after_step` runs on the driving thread after steps that left nothing half-sent: only then is
  // it safe to let callers have their memory back, since trains that wait for the transport refer
  // to it.
  Driver(const protocol::EndpointConfig& config, std::unique_ptr<DatagramTransport> transport,
         std::function<void()> after_step);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Exclusive access to the engine while it lives.
  class Session {
   public:
    explicit Session(Driver& driver);
    ~Session();
    collective::Engine& engine() { return driver_.engine_; }
    // Starts a request, or queues it while trains of finished operations still wait for the
    // transport.
    void submit(collective::Request& request) {
      driver_.engine_.submit(steady_now(), request, /*may_start=*/!driver_.trains_out());
    }
    DatagramTransport& transport() { return *driver_.transport_; }
    // Hands datagrams in and out once, without blocking.
    void pump() { driver_.step(steady_now()); }
    // Sends what is ready, waiting for the transport at most a tick.
    void flush();

   private:
    Driver& driver_;
  };

  // Drives until `done` (asked on a driving thread, between steps) or `deadline`. Whether it is
  // done.
  bool run_until(const std::function<bool()>& done, Instant deadline);

  // For predicates of run_until(), which run on the driving thread.
  // Whether leave() has come to its end, or the transport to its own.
  bool left() const { return engine_.endpoint().left() || !transport_->status().ok(); }
  int peers_heard() const { return engine_.endpoint().peers_heard(); }
  bool hears_multicast(Rank peer) const { return engine_.endpoint().hears_multicast(peer); }

  // There is asynchronous work: the background thread need not wait for a pause of the callers.
  void nudge();

  const DatagramTransport& transport() const { return *transport_; }

 private:
  // Trains prepared at a time. While they are handed to the system, nothing is received: keep it
  // short.
  static constexpr std::size_t kTrains = 4;
  // Trains prepared or still being read by the transport's device.
  static constexpr std::size_t kTrainsOut = 16;
  static constexpr std::size_t kReceiveBatch = 64;

  // The engine's memory, which the transport may have to know. What it cannot register it copies.
  void on_allocated(ByteSpan memory) override { (void)transport_->register_memory(memory); }
  void before_freed(ByteSpan memory) override { transport_->forget_memory(memory); }

  bool step(Instant now);
  bool receive(Instant now);
  bool send(Instant now);
  void prepare(Instant now);
  void fail(Instant now, const Status& status);
  bool trains_out() const { return released_ != prepared_; }
  void block(Instant now, Instant deadline);
  void acquire();
  void release();
  void background();

  // A ring of kTrainsOut. Those that were never needed are null: a transport that copies needs
  // kTrains of them.
  std::vector<std::unique_ptr<protocol::TrainBuffer>> trains_;
  std::vector<Train> ready_;  // of the trains in trains_
  std::size_t prepared_ = 0;  // trains since the ring was last empty
  std::size_t taken_ = 0;     // of these, by the transport
  std::size_t released_ = 0;  // of these, no longer borrowed by it
  collective::Engine engine_;
  std::unique_ptr<DatagramTransport> transport_;  // goes before the memory that it may be reading
  std::function<void()> after_step_;
  std::vector<Received> received_;

  std::mutex mutex_;
  std::condition_variable role_free_;        // for threads in requests_
  std::condition_variable background_wake_;  // for the background thread
  bool driving_ = false;
  std::atomic<int> requests_{0};  // threads that want the role
  std::atomic<std::uint64_t> activity_{0};
  bool nudged_ = false;
  bool stop_ = false;
  std::thread background_;
};

}  // namespace leeway::driving
