// A communicator of some processes (scenario.communicator), beside the first one, which has all
// processes. Its members join, call, abort and leave at their own times.
//
// Members that have left or aborted may join again under a new epoch. Each such period is a life of
// the communicator and has checkers of its own. A `rank` is a rank in this communicator.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "checker/checkers.h"
#include "endpoint/core_endpoints.h"
#include "run/message_plan.h"
#include "run/operation_plan.h"
#include "run/uneven_plan.h"
#include "run/watchers.h"
#include "workload/workload.h"

namespace leeway::sim {

// What a rank gives to all others in a split: color, key, and a proposed epoch.
using Wish = std::array<std::int32_t, 3>;

class FurtherCommunicator final : private Endpoints::Client {
 public:
  struct Place {
    EventQueue& queue;
    CoreEndpoints& core;
    Credit* credit;      // credit of the first communicator's checkers
    Watchers& watchers;  // the communicator's checkers are added to these
    // Called when a member has nothing left to do.
    std::function<void(Instant now, std::uint32_t process)> on_finished;
  };

  // Makes the `number`-th communicator of the scenario, which must be valid. All arguments must
  // outlive the communicator.
  static Result<std::unique_ptr<FurtherCommunicator>> make(const scenario::Scenario& scenario,
                                                           std::uint64_t seed, int number,
                                                           Place place);

  const scenario::Communicator& entry() const { return entry_; }
  // Returns the process's rank in the communicator, or kNoRank if it is no member.
  Rank rank_of(std::uint32_t process) const;
  // Returns what the process gives to the others in the split that makes this communicator.
  Wish wish_of(std::uint32_t process) const;

  // Call it when the process may join.
  void begin(Instant now, std::uint32_t process);
  // Returns true if begin() was called for the process and it has something left to do.
  bool is_busy(std::uint32_t process) const;
  // Handles an event of EventKind::member.
  void on_event(const Event& event);
  void on_pause(Instant now, std::uint32_t process);
  void on_resume(Instant now, std::uint32_t process);
  void on_death(std::uint32_t process);
  void on_faults_over();

  // Adds the findings of this communicator's checkers to `into`.
  void finish(Instant now, const Network& network, std::vector<CheckRecord>& into);
  struct Counts {
    std::uint64_t opened = 0;  // members
    std::uint64_t calls = 0;   // calls that returned
    std::uint64_t failed = 0;
    std::uint64_t aborted = 0;  // members
  };
  const Counts& counts() const { return counts_; }

 private:
  enum class Step : std::uint32_t { open = 0, submit = 1, abort = 2, close = 3 };
  struct Life {
    std::uint32_t communicator = 0;  // number of the endpoints' communicator
    std::unique_ptr<Checkers> checkers;
    bool orderly = true;  // no member has aborted or died
  };
  struct Member {
    bool begun = false;
    bool finished = false;
    bool dead = false;
    bool paused = false;
    bool open = false;
    bool leaving = false;
    std::uint32_t life = 0;
    std::uint32_t round = 0;
    std::uint32_t failures = 0;  // failures in this life
    bool calling = false;
    bool aborting = false;
    std::unique_ptr<RankMemory> memory;
    collective::OperationSpec spec;
  };
  // The buffers of an aborted call. Nothing may write to them any more.
  struct Aborted {
    Rank rank = 0;
    std::uint32_t life = 0;
    std::unique_ptr<RankMemory> memory;
    std::uint32_t digest = 0;
  };

  FurtherCommunicator(const scenario::Scenario& scenario, std::uint64_t seed, int number,
                      Place place);
  Status set_up(const std::vector<std::uint32_t>& processes);
  std::uint32_t epoch_of(std::uint32_t life) const;
  std::unique_ptr<RankMemory> new_memory() const;
  void push(Instant at, Rank rank, Step step);
  Duration draw(Rank rank, double up_to_ms);
  void open(Instant now, Rank rank);
  void submit(Instant now, Rank rank);
  void abort(Instant now, Rank rank);
  void close(Instant now, Rank rank);
  void end_life(Instant now, Rank rank);
  void finish_member(Instant now, Rank rank);
  void arm_aborts(Instant now, Rank rank);
  void on_done(Instant now, std::uint32_t rank, const CallResult& result) override;
  void on_left(Instant now, std::uint32_t rank) override;

  const scenario::Scenario& whole_;
  const scenario::Communicator& entry_;
  const std::uint64_t seed_;
  const int number_;
  Place place_;
  scenario::Scenario scenario_;  // scenario of the communicator as if it were alone
  std::vector<Rank> processes_;  // by rank
  std::optional<OperationPlan> plan_;
  std::optional<MessagePlan> messages_;
  std::optional<UnevenPlan> uneven_;
  std::vector<Life> lives_;
  std::vector<Member> members_;
  std::vector<RandomStream> random_;  // by rank
  std::vector<Aborted> aborted_;
  Counts counts_;
};

}  // namespace leeway::sim
