// A communicator that has parts of the first one's calls: legs of calls by sites, slices of calls
// over lanes. It has checkers of its own, for which a part is a call like any other.
#pragma once

#include <functional>
#include <memory>
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
    // `process` has a part less under way.
    std::function<void(Instant now, std::uint32_t process, const CallResult& result)> on_done;
  };
  // All ranks join it.
  explicit CallGroup(Setup setup);

  std::size_t size() const { return setup_.processes.size(); }
  const std::string& name() const { return setup_.name; }
  std::uint32_t communicator() const { return communicator_; }
  Checkers& checkers() { return *checkers_; }

 private:
  void on_done(Instant now, std::uint32_t rank, const CallResult& result) override {
    setup_.on_done(now, setup_.processes[rank], result);
  }

  const Setup setup_;
  scenario::Scenario scenario_;  // as if it were alone
  std::uint32_t communicator_ = 0;
  std::unique_ptr<Checkers> checkers_;
};

// A part as a call. `lengths`: what the checkers are told of uneven blocks, which must outlive it.
Call part_of(const Call& whole, const collective::OperationSpec& spec, std::size_t ranks,
             std::vector<std::size_t>& lengths);

// Of a whole call that is over.
CallResult result_of(const collective::Request& outcome, Instant submitted, Instant now);

}  // namespace leeway::sim
