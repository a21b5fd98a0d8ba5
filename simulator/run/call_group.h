// A further communicator, in which parts of the first communicator's calls run: legs of calls by
// sites, or slices of calls over lanes. This communicator's own checkers check each part like any
// other call.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checker/checkers.h"
#include "endpoint/core_endpoints.h"
#include "run/watchers.h"

namespace leeway::sim {

class CallGroup final : public Endpoints::Client {
 public:
  struct Setup {
    const scenario::Scenario& scenario;  // the run's scenario
    std::uint64_t seed;
    CoreEndpoints& core;
    Watchers& watchers;
    std::string name;  // for failures
    std::uint32_t epoch;
    std::uint32_t lane = 0;
    std::vector<Rank> processes;  // by rank
    Credit* credit;
    // Called when `process` has finished a part of its call.
    std::function<void(Instant now, std::uint32_t process, const CallResult& result)> on_done;
  };
  // All ranks of `setup.processes` join the communicator.
  explicit CallGroup(Setup setup);

  std::size_t size() const { return setup_.processes.size(); }
  const std::string& name() const { return setup_.name; }
  std::uint32_t communicator() const { return communicator_; }

  // Pass an event of a process to the checkers, if the process is a member.
  void on_pause(Instant now, std::uint32_t process);
  void on_resume(Instant now, std::uint32_t process);
  void on_death(std::uint32_t process);
  void on_faults_over(std::uint32_t first_round) { checkers_->on_faults_over(first_round); }
  // Adds the findings of this communicator's checkers to `into`.
  void finish(Instant now, const Network& network, std::vector<CheckRecord>& into);

 private:
  void on_done(Instant now, std::uint32_t rank, const CallResult& result) override {
    setup_.on_done(now, setup_.processes[rank], result);
  }

  const Setup setup_;
  scenario::Scenario scenario_;  // scenario of the group as if it were alone
  std::uint32_t communicator_ = 0;
  std::unique_ptr<Checkers> checkers_;
};

// Makes calls that the library splits into parts: by sites, or over lanes.
class PartedCalls {
 public:
  // References to parts of the run. They must outlive this object.
  struct Place {
    CoreEndpoints& core;
    Checkers& checkers;  // checkers of the first communicator: for promises of the whole call
    Watchers& watchers;  // the checkers of the further communicators are added to these
  };

  PartedCalls(Place place, std::size_t ranks) : place_(place), open_(ranks) {}
  PartedCalls(const PartedCalls&) = delete;
  PartedCalls& operator=(const PartedCalls&) = delete;
  virtual ~PartedCalls() = default;

  // Returns true if the library splits the rank's call `spec` into parts. For a call that the
  // library refuses this returns false: the call then goes to the engine, which refuses it, too.
  virtual bool takes(std::uint32_t rank, const collective::OperationSpec& spec) const = 0;
  // Submits a call. A rank has one call open at a time.
  virtual void submit(Instant now, std::uint32_t rank, const Call& call,
                      Endpoints::Client& client) = 0;

  // Returns the communicators in which parts run. The first communicator is not among them.
  const std::vector<std::unique_ptr<CallGroup>>& groups() const { return groups_; }

 protected:
  // A rank's open call as a whole.
  struct Open {
    Call call;
    Instant submitted{0};
    Endpoints::Client* client = nullptr;
  };
  const Open& open(std::uint32_t rank) const { return open_[rank]; }
  void begin_whole(Instant now, std::uint32_t rank, const Call& call, Endpoints::Client& client);
  // Ends the rank's open call. Gives the outcome to the checkers, and then to the client, which may
  // submit the next call at once.
  void end_whole(Instant now, std::uint32_t rank, const collective::Request& outcome);

  const Place place_;
  std::vector<std::unique_ptr<CallGroup>> groups_;

 private:
  std::vector<Open> open_;  // by rank
};

// Makes the call for one leg or slice, `spec`, of `whole`. Writes the lengths of its uneven blocks
// to `lengths`, where the checkers read them. `lengths` must outlive the call.
Call part_of(const Call& whole, const collective::OperationSpec& spec, std::size_t ranks,
             std::vector<std::size_t>& lengths);

// Returns the rank of a process in a communicator, or kNoRank if it is no member.
Rank rank_in(std::span<const Rank> processes, std::uint32_t process);

// Makes the epoch of a further communicator from a random number. The result is at least 2, because
// the first communicator has epoch 1.
inline std::uint32_t epoch_from(std::uint64_t hash) {
  return std::max(2u, static_cast<std::uint32_t>(hash));
}

}  // namespace leeway::sim
