// Exact calls of a communicator whose ranks all share memory. They go through an arena
// (src/runtime/near), without datagrams. This class runs them one at a time, in the order of the
// calls. In the arena ranks notice if one rank's call takes another route than its peers'.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "base/thread.h"
#include "communicator/channels.h"
#include "near/caller.h"

namespace leeway::internal {

class NearRoute final : public Route, public std::enable_shared_from_this<NearRoute> {
 public:
  // All ranks must make a NearRoute, or none. `parent` must live until close(). `side` is a
  // communicator of the same ranks, for calls that some rank cannot make in memory.
  NearRoute(near::ArenaFile file, Channels& parent, std::unique_ptr<Channels> side,
            const Options& options);
  ~NearRoute() override;

  // Returns true if this process may have another arena.
  static bool has_room();
  bool takes(const collective::OperationSpec& spec) const override { return near::takes(spec); }
  bool takes_places() const override { return true; }
  // Runs the call on this thread, if no other call is running; else queues it, and waits.
  Result<CollectiveReport> run(const collective::OperationSpec& spec,
                               Channel::Place place) override;
  // Runs the call on a thread of this object. If no such thread can be had, the call goes by
  // datagrams, and peers that wait for it in memory are told so.
  std::shared_ptr<WorkState> start(const collective::OperationSpec& spec,
                                   Channel::Place place) override;
  // Never called: memory is the first route, and only later routes hold places.
  StandIns hold(const collective::OperationSpec& /*spec*/, Channel::Place /*place*/) override {
    return {};
  }
  // Notes that this rank's collective at `place` takes another route and is the next to start.
  // Peers whose call at that place is in memory follow to that route. Earlier calls in memory may
  // yet have to follow as well, so that route holds their places. Call this under the lock of
  // CallOrder.
  void pass(std::uint64_t place);
  Result<std::shared_ptr<near::Region>> allocate(std::size_t bytes);
  // Returns true if a peer has said in the arena that it makes no more calls. Any thread.
  bool peer_left() const { return station_.anyone_gone(); }
  // Fails the current call and queued ones now. Their tensors are then free.
  void abort(const char* how) override;
  void add_counters(Channel::Counters& rows) override;
  // In the child of a fork close() does nothing, because the thread is the parent's.
  void close(std::vector<std::function<void()>>& closing) override;

 private:
  using Spec = collective::OperationSpec;
  struct Queued {
    std::shared_ptr<WorkState> work;
    std::uint64_t number = 0;
    Status overdue = Status();  // its outcome, if its deadline passed in the queue
  };
  struct Held {
    std::uint64_t number = 0;
    StandIns stand_ins;
  };

  std::uint64_t take_number();
  std::uint64_t take_turn(const Spec& spec);
  void end_turn();
  void hold(const Spec& spec, std::uint64_t number);
  Result<CollectiveReport> perform(const Spec& spec, std::uint64_t number, Instant submitted,
                                   const Status& overdue = Status());
  Result<CollectiveReport> perform_over(Channels& channels, const Spec& spec, std::uint64_t number,
                                        Instant submitted);
  Result<CollectiveReport> follow(const Spec& spec, std::uint64_t number, Instant submitted);
  void tell_observers(const Spec& spec, Instant submitted, const Result<CollectiveReport>& outcome);
  void end_overdue();
  Status look(Rank& about);
  void stop_looking();
  std::shared_ptr<WorkState> enqueue(const Spec& spec);
  std::shared_ptr<WorkState> new_work(const Spec& spec) const;
  // Returns true if no call runs or is queued. Call it under the lock.
  bool is_idle() const { return !taken_ && queue_.empty(); }
  bool begin_serving();
  void serve(const std::stop_token& stop);
  void cancel_queued();
  void cancel_calls();

  const near::ArenaFile file_;
  Channels& parent_;
  std::unique_ptr<Channels> side_;
  const Options options_;
  const std::uint32_t generation_;  // count of forks at its creation
  near::Station station_;
  // Used only by the thread that runs a call.
  near::Caller caller_;
  int looks_ = 0;  // in the current wait

  // The lock in CallOrder protects the members below. The CallOrder has shared owners, because a
  // callback may end the communicator while this object still needs the lock.
  const std::shared_ptr<CallOrder> order_;
  std::condition_variable turned_;
  bool taken_ = false;             // a call is running
  const Spec* current_ = nullptr;  // the running call, unless it is an allocation
  std::uint64_t current_number_ = 0;
  std::deque<Held> held_;  // in the order of their calls, none of which is over
  bool running_ = false;   // the running call is the thread's
  bool serving_ = false;   // the thread looks at the queue
  bool closed_ = false;
  const char* ended_ = nullptr;  // how it ended, if it was aborted
  std::deque<Queued> queue_;
  Thread thread_;  // for calls whose caller does not wait
};

// Opens an arena for a new communicator whose ranks said that they may share memory. Rank 0 makes
// the arena and tells its name, and the others find it. All ranks must call this function.
// `willing`: this rank knows no reason against an arena. The meeting uses up no number of the
// communicator's calls. Returns null if some rank cannot use the arena; `why` is then this rank's
// reason.
Result<std::shared_ptr<NearRoute>> meet_near(Channels& channels, const Options& options,
                                             bool willing, std::stop_token stop, std::string& why);

}  // namespace leeway::internal
