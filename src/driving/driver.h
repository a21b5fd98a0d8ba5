// Everything that runs over one transport: the node of all communicators that share it, and the
// thread that moves datagrams between the two.
//
// A caller that waits drives, so that a blocking call costs no thread switch. Other callers sleep
// meanwhile until what they wait for is done. While nobody waits, a background thread drives. A
// thread that must touch the node takes the role with a Session.
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

#include "base/thread.h"
#include "base/time.h"
#include "collective/node.h"
#include "driving/callback.h"
#include "driving/driving_role.h"
#include "driving/fork.h"
#include "driving/snapshot.h"
#include "driving/train_ring.h"
#include "driving/work_state.h"
#include "leeway/options.h"
#include "leeway/transport.h"
#include "transport/fault/fault_transport.h"
#include "transport/length_refusals.h"
#include "transport/mixed/mixed_transport.h"
#include "transport/sealed/sealed_transport.h"

namespace leeway::driving {

using internal::Callback;
using internal::WorkState;

class Channel;

Instant steady_now();

// Layers of a transport seen as what they are, or null. Where `lengths` is there and no faults
// are, the sizes of paths are measured.
struct Layers {
  const transport::FaultTransport* faults = nullptr;
  transport::SealedTransport* sealed = nullptr;
  transport::LengthRefusals* lengths = nullptr;
  transport::MixedTransport* mixed = nullptr;
  transport::Whereabouts* where = nullptr;
};

class Driver final {
 public:
  // kResourceExhausted: no thread can be had.
  static Result<std::shared_ptr<Driver>> start(TransportKind kind,
                                               std::unique_ptr<DatagramTransport> transport,
                                               const congestion::Settings& congestion = {},
                                               const Layers& layers = {});
  // All its channels are gone.
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  TransportKind kind() const { return kind_; }
  const TransportLimits& limits() const { return transport_->limits(); }
  // This process is the child of a fork, and has none of the threads.
  bool forked() const { return generation_ != fork_generation(); }
  // Whether peers may share memory with this process.
  bool is_mixed() const { return mixed_ != nullptr; }
  bool measures_sizes() const { return lengths_ != nullptr; }

  // Drives, or sleeps while another does, until it is done.
  static Result<CollectiveReport> wait(WorkState& work);
  // The same, for so long at most. Whether it is done; in a callback it only looks.
  static bool wait_for(WorkState& work, Duration patience);
  // Drives until one of them is done: the index of the first that is. Null: no operation. All on
  // drivers of this process; those that this thread does not drive have their own.
  static std::size_t wait_any(std::span<WorkState* const> works);
  // The work is no operation of a channel's, and is over: whoever waits for it is woken, and its
  // callbacks are called. Not by a thread that has the role.
  static void finish(WorkState& work);
  // Ends an operation of a channel (collective::Engine::end()), unless it is done by then. Any
  // thread; it does not wait.
  static void end(const std::shared_ptr<WorkState>& work, const Status& status,
                  const protocol::Blame& blame = {});
  // Takes one step, if nobody else is driving.
  static void help(WorkState& work);
  // Something that operations wait for is there: whoever drives looks at all of them. Any thread;
  // never blocks for long.
  void ring();

  // From now on what this driver sends goes into the share of the line that `first` has, if it is
  // paced: this one is a further lane of the process. Before any channel is opened on it.
  void pace_with(Driver& first);

  // Who hears of this driver from now on; null: nobody. Any thread.
  void observe(std::shared_ptr<Observer> observer);
  bool observed();

  // As DatagramTransport's; any thread.
  Status register_memory(ByteSpan memory);
  void forget_memory(ByteSpan memory);

  // Exclusive access to the node while it lives.
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
    // Null: nothing is sealed.
    transport::SealedTransport* sealed() { return driver_.sealed_; }
    // Null: no peer shares memory.
    transport::MixedTransport* mixed() { return driver_.mixed_; }
    // As DatagramTransport's, of a slot.
    const TransportLimits& limits_to(Rank slot) { return driver_.transport_->limits_to(slot); }
    // Hands datagrams in and out once, without blocking.
    void pump() { driver_.step(steady_now()); }

   private:
    Driver& driver_;
  };

 private:
  friend class Channel;
  static constexpr std::size_t kReceiveBatch = 64;
  // Polls before blocking. Yielding rather than pausing: ranks may outnumber cores, and the
  // datagram that is waited for may need this very core to be sent.
  static constexpr Duration kSpin = std::chrono::microseconds(50);
  // A yield takes long where other ranks have the core, and kSpin holds few polls then. This many
  // are made at least: they cost about as much processor time, and less than a sleep and a wake.
  // They end after kPollsLast. Beside a program that computes, a yield takes milliseconds, and a
  // sleeper is woken earlier.
  static constexpr int kPolls = 80;
  static constexpr Duration kPollsLast = std::chrono::milliseconds(1);

  // Since something happened.
  struct Idle {
    Instant since;
    int polls = 0;
  };

  // An operation that begins, or is to end by this outcome.
  struct Started {
    Channel* channel = nullptr;  // null: it is to end
    std::shared_ptr<WorkState> work;
    Status outcome;
    protocol::Blame blame;
  };

  Driver(TransportKind kind, std::unique_ptr<DatagramTransport> transport,
         const congestion::Settings& congestion, const Layers& layers);

  // As wait(), until then at most; not ok: this thread must not wait for it.
  static Status await(WorkState& work, Instant until = Instant::infinite_future());
  // Of a caller that waits: begins the operation and drives until it is done.
  Status run(Channel& channel, const std::shared_ptr<WorkState>& work);
  // Of a caller that does not wait: whoever drives takes it up, or this thread in passing.
  void start(Channel& channel, std::shared_ptr<WorkState> work);
  void take_up(Started started);
  void admit_started(Instant now);
  void end_started(Instant now, const Started& ending);

  // Drives until `done` (asked on the driving thread, between steps) or `deadline`. Whether it is
  // done.
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
  // Nothing was to be done.
  void rest(Instant now, Instant deadline, Idle& idle);
  void block(Instant now, Instant deadline);
  bool flush(const collective::Member& member, Duration patience);
  bool drop_trains();
  void interrupt(const std::atomic<bool>& done);
  void drive_in_pauses(const std::weak_ptr<Driver>& self);

  const TransportKind kind_;
  const transport::FaultTransport* const faults_;
  transport::SealedTransport* const sealed_;
  transport::LengthRefusals* const lengths_;  // null: sizes are not measured
  transport::MixedTransport* const mixed_;
  const transport::Whereabouts* const where_;  // null: peers have no network addresses
  const std::uint32_t generation_;             // of forks
  // The driving thread alone touches these.
  std::vector<Channel*> channels_;
  std::vector<Callback> callbacks_;  // of operations that are done: called when the role is free
  TrainRing trains_;
  collective::Node node_;
  std::vector<std::unique_ptr<collective::Member>> former_;  // whose memory is still being read
  std::unique_ptr<DatagramTransport> transport_;  // goes before the memory that it may be reading
  std::vector<Received> received_;
  std::shared_ptr<Observer> observer_;  // null: nobody looks
  Snapshot snapshot_;                   // the latest
  Instant look_at_ = Instant::infinite_future();
  bool unseen_ = false;    // something happened since
  Duration spin_ = kSpin;  // none where every peer is far: trains come one by one, all the time

  // Operations that were started and that no driving thread has seen yet.
  std::mutex started_mutex_;
  std::vector<Started> started_;
  std::atomic<bool> any_started_{false};
  std::atomic<bool> blocked_{false};  // who drives sleeps in the transport, or is about to
  std::atomic<bool> rung_{false};

  DrivingRole role_;
  Thread background_;
  // exit() stops the background thread. Callers who wait drive on.
  std::optional<std::stop_callback<std::function<void()>>> on_exit_;
};

}  // namespace leeway::driving
