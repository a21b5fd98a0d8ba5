// Exact calls of a communicator whose ranks all share memory: they go through an arena (src/near),
// without datagrams. What this room adds is who runs them: one at a time, in the order of the
// calls. All collectives of the communicator are numbered here, so that ranks notice where one
// rank's call goes another way than its peers'.
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

class NearCalls final : public std::enable_shared_from_this<NearCalls> {
 public:
  // On all ranks or none. `parent` lives until close().
  // `side`: of the same ranks, for calls that some rank takes apart.
  NearCalls(near::ArenaFile file, Channels& parent, std::unique_ptr<Channels> side,
            const Options& options);
  ~NearCalls();
  NearCalls(const NearCalls&) = delete;
  NearCalls& operator=(const NearCalls&) = delete;

  // Whether this process may have another one.
  static bool has_room();
  static bool takes(const collective::OperationSpec& spec) { return near::takes(spec); }
  // On this thread, if no other call is under way.
  Result<CollectiveReport> run(const collective::OperationSpec& spec);
  // On a thread of this object's own. Any thread, also from a callback. Where no such thread can be
  // had, the call goes by datagrams, as ranks that are in it here hear.
  std::shared_ptr<WorkState> start(const collective::OperationSpec& spec);
  // A collective goes by datagrams: ranks that are in one here at this number follow. Its place
  // among all collectives is returned, from 0. Messages have no number, since ranks make different
  // numbers of them.
  std::uint64_t note_elsewhere();
  Result<std::shared_ptr<near::Region>> allocate(std::size_t bytes);
  // What is under way fails now, and its memory is free.
  void abort(const char* how = driving::kAborted);
  void add_counters(Channel::Counters& rows) const;
  // Lets calls end as Channel's destructor does, and leaves. False: that is the parent's business,
  // and this is the child of a fork.
  bool close();
  // After that: leaves the datagrams' side, which takes as long as there.
  void close_side() { side_.reset(); }

 private:
  using Spec = collective::OperationSpec;
  struct Queued {
    std::shared_ptr<WorkState> work;
    std::uint64_t number = 0;
  };

  std::uint64_t take_turn();
  void end_turn();
  Result<CollectiveReport> perform(const Spec& spec, std::uint64_t number, Instant submitted);
  Result<CollectiveReport> perform_over(Channels& channels, const Spec& spec, std::uint64_t number,
                                        Instant submitted);
  void tell_observers(const Spec& spec, Instant submitted, const Result<CollectiveReport>& outcome);
  Status look(Rank& about);
  void stop_looking();
  std::shared_ptr<WorkState> enqueue(const Spec& spec);
  bool begin_serving();
  void serve(const std::stop_token& stop);
  void cancel_queued();

  const near::ArenaFile file_;
  Channels& parent_;
  std::unique_ptr<Channels> side_;
  const Options options_;
  const std::uint32_t generation_;  // of forks
  near::Station station_;
  // Of whoever has the turn.
  near::Caller caller_;
  bool watches_ = false;

  std::mutex mutex_;
  std::condition_variable turned_;
  std::uint64_t issued_ = 0;  // collectives of the communicator, by either way
  bool taken_ = false;        // a call is under way
  bool running_ = false;      // it is the thread's
  bool serving_ = false;      // the thread looks at the queue
  bool closed_ = false;
  const char* ended_ = nullptr;  // how, where it was aborted
  std::deque<Queued> queue_;
  Thread thread_;  // for calls that nobody waits for
};

// Ranks of a new communicator that are said to share memory meet in an arena: the first one makes
// it and tells its name, the others find it. All call it. `willing`: this rank knows nothing
// against it. What they say to each other takes no number of the communicator's calls. Null where
// it is not there for all; `why` says what was in the way here.
Result<std::shared_ptr<NearCalls>> meet_near(Channels& channels, const Options& options,
                                             bool willing, std::stop_token stop, std::string& why);

}  // namespace leeway::internal
