// Everything that runs over one transport: the node of all communicators that share it, and the
// thread that moves datagrams between node and transport.
//
// A caller that waits drives, so that a blocking call costs no thread switch. Other callers sleep
// meanwhile until their own operation is done. While nobody waits, a background thread drives. A
// thread that must touch the node takes the driving role with a Session.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/fork.h"
#include "base/steady_now.h"
#include "base/thread.h"
#include "base/time.h"
#include "collective/node.h"
#include "driving/callback.h"
#include "driving/driving_role.h"
#include "driving/snapshot.h"
#include "driving/train_ring.h"
#include "driving/work_state.h"
#include "leeway/options.h"
#include "leeway/transport.h"
#include "transport/fault/fault_transport.h"
#include "transport/mixed/mixed_transport.h"
#include "transport/sealed/sealed_transport.h"
#include "transport/whereabouts.h"

namespace leeway::driving {

using internal::Callback;
using internal::WorkState;

class Channel;

using leeway::steady_now;

// The layers of a transport, each by its own type. A pointer is null if the transport lacks that
// layer.
struct Layers {
  const transport::FaultTransport* faults = nullptr;
  transport::SealedTransport* sealed = nullptr;
  transport::Whereabouts* lengths = nullptr;  // where sizes of paths may be measured
  transport::MixedTransport* mixed = nullptr;
  const transport::Whereabouts* where = nullptr;  // where peers have network addresses
};

// start() makes a driver, and channels are opened on it. It lives as long as any of its channels.
class Driver final {
 public:
  // Returns kResourceExhausted if no thread can be started. Sizes of paths are measured if `layers`
  // has `lengths` and no `faults`.
  static Result<std::shared_ptr<Driver>> start(TransportKind kind,
                                               std::unique_ptr<DatagramTransport> transport,
                                               const congestion::Settings& congestion = {},
                                               Layers layers = {});
  // Destroyed after all its channels.
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  TransportKind kind() const { return kind_; }
  const TransportLimits& limits() const { return transport_->limits(); }
  // Returns true in the child of a fork, which has none of the driver's threads.
  bool forked() const { return generation_ != fork_generation(); }

  // Drives, or sleeps while another thread does, until the operation is done.
  static Result<CollectiveReport> wait(WorkState& work);
  // Like wait(), but for at most `patience`. Returns true if the operation is done. In a callback
  // it does not wait, and only checks.
  static bool wait_for(WorkState& work, Duration patience);
  // Drives until one of the works is done, and returns the index of the first that is. Null entries
  // are skipped. All works are on drivers of this process. This thread drives one of these drivers,
  // and background threads drive the others.
  static std::size_t wait_any(std::span<WorkState* const> works);
  // Ends a work that is not an operation of a channel: wakes the threads that wait for it, and
  // calls its callbacks. Must not be called by a thread that has the role.
  static void finish(WorkState& work);
  // Like finish(), but the driving thread makes the callbacks later. So the caller of this function
  // may hold locks that callbacks take. Any thread.
  static void finish_later(const std::shared_ptr<WorkState>& work, const Status& status);
  // Lets the driving thread end an operation of a channel (collective::Engine::end()), unless the
  // operation is done by then. Any thread; it does not wait.
  static void end(const std::shared_ptr<WorkState>& work, const Status& status,
                  const protocol::Blame& blame = {});
  // Takes one step, if no other thread is driving.
  static void help(WorkState& work);
  // Call it when a payload source or sink for which operations wait has progressed. The driving
  // thread then looks at all operations. Any thread; never blocks for long.
  void ring();

  // Makes this driver share the pace of `first`, the driver of the process's first lane: together
  // they send no more than one driver would. Does nothing if `first` is not paced. Call it before
  // any channel is opened on this driver.
  void pace_with(Driver& first);

  // Sets the observer that hears of this driver from now on; null removes it. Any thread.
  void observe(std::shared_ptr<Observer> observer);
  bool observed();

  // These call the transport's functions of the same names (DatagramTransport). Any thread.
  Status register_memory(ByteSpan memory);
  void forget_memory(ByteSpan memory);

  // Gives its thread exclusive access to the node while this object lives.
  class Session {
   public:
    explicit Session(Driver& driver) : driver_(driver) {
      driver_.role_.acquire();
      driver_.admit_started(steady_now());
    }
    ~Session() { driver_.release(); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    collective::Node& node() { return driver_.node_; }
    // Returns null if nothing is sealed.
    transport::SealedTransport* sealed() { return driver_.layers_.sealed; }
    // Returns null if no peer shares memory.
    transport::MixedTransport* mixed() { return driver_.layers_.mixed; }
    // Returns DatagramTransport::limits_to() of the slot.
    const TransportLimits& limits_to(Rank slot) { return driver_.transport_->limits_to(slot); }
    // Hands datagrams in and out once, without blocking.
    void pump() { driver_.step(steady_now()); }

   private:
    Driver& driver_;
  };

 private:
  friend class Channel;
  static constexpr std::size_t kReceiveBatch = 64;
  // Time for which an idle driver polls before it blocks. Polls yield rather than pause: ranks may
  // outnumber cores, and the peer may need this very core to send the datagram that is waited for.
  static constexpr Duration kSpin = std::chrono::microseconds(50);
  // If other ranks use the core, a yield takes long, and kSpin has time for few polls. So at least
  // kPolls are made. They cost about as much processor time as a sleep and a wake-up, and end
  // sooner. But polls end after kPollsLast: beside a program that computes, a yield takes
  // milliseconds, and a sleeping thread would be woken earlier.
  static constexpr int kPolls = 80;
  static constexpr Duration kPollsLast = std::chrono::milliseconds(1);

  // When something last happened, and the number of polls since then.
  struct Idle {
    Instant since;
    int polls = 0;
  };

  // An operation that begins, or that is to end with `outcome`.
  struct Started {
    Channel* channel = nullptr;  // the operation's channel; null to end it
    std::shared_ptr<WorkState> work;
    Status outcome;
    protocol::Blame blame;
    bool of_channel = true;  // the work to end is an operation of a channel
  };

  Driver(TransportKind kind, std::unique_ptr<DatagramTransport> transport,
         const congestion::Settings& congestion, const Layers& layers);

  // Like wait(), but at most until `until`. Returns an error if this thread must not wait (in a
  // callback).
  static Status await(WorkState& work, Instant until = Instant::infinite_future());
  // For a caller that waits: begins the operation and drives until it is done.
  Status run(Channel& channel, const std::shared_ptr<WorkState>& work);
  // For a caller that does not wait: the driving thread takes the operation up, or this thread does
  // if the role is free.
  void take_up(Started started);
  void note(Started started);
  void admit_started(Instant now);
  void end_started(Instant now, const Started& ending);

  // Drives until `done` returns true or `deadline` passes. Asks `done` on the driving thread,
  // between steps. Returns true if `done` did.
  bool run_until(const std::function<bool()>& done, Instant deadline);
  bool drive_until(const std::function<bool()>& done, Instant deadline);
  bool drive_until(const WorkState& work, Instant deadline);
  void release();
  bool step(Instant now);
  void look(Instant now);
  void look_at_relays();
  std::size_t around() const;
  bool send(Instant now);
  bool receive(Instant now);
  void fail(Instant now, const Status& status);
  // Called after a step that did nothing. Yields, or blocks once polls have lasted long enough.
  void rest(Instant now, Instant deadline, Idle& idle);
  void block(Instant now, Instant deadline);
  bool flush(const collective::Member& member, Duration patience);
  bool drop_trains();
  void interrupt(const std::atomic<bool>& done);
  void drive_in_pauses(const std::weak_ptr<Driver>& self);

  const TransportKind kind_;
  const Layers layers_;
  const std::uint32_t generation_ = fork_generation();
  // Only the driving thread uses these members.
  std::vector<Channel*> channels_;
  // Callbacks of operations that are done. They are called when the role is free
  std::vector<Callback> callbacks_;
  TrainRing trains_;
  collective::Node node_;
  // members that left, and whose memory is still being read
  std::vector<std::unique_ptr<collective::Member>> former_;
  // Destroyed before the members above, whose memory it may be reading
  std::unique_ptr<DatagramTransport> transport_;
  std::vector<Received> received_;
  std::shared_ptr<Observer> observer_;  // may be null
  Snapshot snapshot_;                   // the latest
  Instant look_at_ = Instant::infinite_future();
  bool unseen_ = false;    // something happened since the latest look
  Duration spin_ = kSpin;  // 0 where every peer is far, since trains then come one by one

  // Operations that were started and that no driving thread has seen yet.
  std::mutex started_mutex_;
  std::vector<Started> started_;
  std::atomic<bool> any_started_{false};
  std::atomic<bool> blocked_{false};  // the driving thread sleeps in the transport, or is about to
  std::atomic<bool> rung_{false};

  DrivingRole role_;
  Thread background_;
  // exit() stops the background thread. Callers that wait go on driving.
  std::optional<std::stop_callback<std::function<void()>>> on_exit_;
};

}  // namespace leeway::driving
