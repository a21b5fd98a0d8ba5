// A communicator that has parts of the first one's calls: legs of calls by sites, slices of calls
// over lanes. It has checkers of its own, for which a part is a call like any other.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checker/checkers.h"
#include "endpoint/core_endpoints.h"
#include "run/watchers.h"

namespace leeway::sim {

class CallGroup final : public Endpoints::Client {
 public:
  struct Setup {
    const scenario::Scenario& scenario;  // the whole one
    std::uint64_t seed;
    CoreEndpoints& core;
    Watchers& watchers;
    std::string name;  // for failures
    std::uint32_t epoch;
    std::uint32_t lane = 0;
    std::vector<Rank> processes;  // by rank
    Credit* credit;
    // Called when `process` has one part fewer in progress.
    std::function<void(Instant now, std::uint32_t process, const CallResult& result)> on_done;
  };
  // All ranks join it.
  explicit CallGroup(Setup setup);

  std::size_t size() const { return setup_.processes.size(); }
  const std::string& name() const { return setup_.name; }
  std::uint32_t communicator() const { return communicator_; }

  // Events of a process, if it is a member of the group.
  void on_pause(Instant now, std::uint32_t process);
  void on_resume(Instant now, std::uint32_t process);
  void on_death(std::uint32_t process);
  void on_faults_over(std::uint32_t first_round) { checkers_->on_faults_over(first_round); }
  // Adds what its checkers found.
  void finish(Instant now, const Network& network, std::vector<CheckRecord>& into);

 private:
  void on_done(Instant now, std::uint32_t rank, const CallResult& result) override {
    setup_.on_done(now, setup_.processes[rank], result);
  }

  std::optional<std::uint32_t> rank_of(std::uint32_t process) const;

  const Setup setup_;
  scenario::Scenario scenario_;  // scenario of the group as if it were alone
  std::uint32_t communicator_ = 0;
  std::unique_ptr<Checkers> checkers_;
};

// Calls that the library makes of several: by sites, or over lanes.
class PartedCalls {
 public:
  // The objects with which the calls work. All of them outlive the calls.
  struct Place {
    CoreEndpoints& core;
    Checkers& checkers;  // checkers of the first communicator: for promises of the whole call
    Watchers& watchers;  // the checkers of the further communicators are added to these
  };

  explicit PartedCalls(Place place) : place_(place) {}
  PartedCalls(const PartedCalls&) = delete;
  PartedCalls& operator=(const PartedCalls&) = delete;
  virtual ~PartedCalls() = default;

  // Returns true if the library splits the rank's call into parts. A call that the library refuses
  // is refused by the engine, too.
  virtual bool takes(std::uint32_t rank, const collective::OperationSpec& spec) const = 0;
  // Submits a call. A rank has one call open at a time.
  virtual void submit(Instant now, std::uint32_t rank, const Call& call,
                      Endpoints::Client& client) = 0;

  // Groups other than the first communicator.
  const std::vector<std::unique_ptr<CallGroup>>& groups() const { return groups_; }

 protected:
  const Place place_;
  std::vector<std::unique_ptr<CallGroup>> groups_;
};

// Makes the call of a part. `lengths` receives the uneven blocks for the checkers, and must outlive
// the call.
Call part_of(const Call& whole, const collective::OperationSpec& spec, std::size_t ranks,
             std::vector<std::size_t>& lengths);

// Returns the result of a whole call that is over.
CallResult result_of(const collective::Request& outcome, Instant submitted, Instant now);

}  // namespace leeway::sim
