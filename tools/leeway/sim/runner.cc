#include "sim/runner.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "base/contracts.h"

namespace leeway::tools::simulation {
namespace {

class Pool {
 public:
  Pool(const Plan& plan, const RunnerOptions& options, std::vector<Outcome>& outcomes,
       RunnerObserver& observer)
      : plan_(plan), options_(options), outcomes_(outcomes), observer_(observer) {}

  Status work() {
    std::vector<std::thread> threads;
    const unsigned jobs = jobs_for(options_.jobs, plan_.runs());
    for (unsigned i = 1; i < jobs; ++i) threads.emplace_back([this] { make_runs(); });
    make_runs();
    for (std::thread& thread : threads) thread.join();
    return refusal_;
  }

 private:
  void make_runs() {
    for (std::size_t index = next_++; index < plan_.runs() && !*options_.stop; index = next_++) {
      if (!outcomes_[index].record) make_run(index);
    }
  }

  void make_run(std::size_t index) {
    const RunName name = plan_.run(index);
    const sim::scenario::Scenario& scenario = plan_.grid[name.cell].scenario;
    Result<sim::RunRecord> record = options_.run(scenario, name.seed, options_for(scenario));
    if (!record.ok()) {
      // Each run writes its own place only.
      if (record.status().code() != StatusCode::kCancelled) {
        outcomes_[index].failure = record.status();
      }
      return;
    }
    outcomes_[index].record = std::move(*record);
    const std::scoped_lock lock(observer_mutex_);
    const Status kept = observer_.on_finished(name, *outcomes_[index].record);
    if (kept.ok() || !refusal_.ok()) return;
    refusal_ = kept;
    *options_.stop = true;
  }

  sim::RunOptions options_for(const sim::scenario::Scenario& scenario) {
    sim::RunOptions options = options_.run_options;
    options.stop = options_.stop;
    options.progress = [this, rounds = scenario.rounds()](std::uint32_t done, std::int64_t) {
      const std::scoped_lock lock(observer_mutex_);
      observer_.on_round(done, rounds);
    };
    return options;
  }

  const Plan& plan_;
  const RunnerOptions& options_;
  std::vector<Outcome>& outcomes_;
  RunnerObserver& observer_;
  std::atomic<std::size_t> next_{0};
  std::mutex observer_mutex_;
  Status refusal_;
};

}  // namespace

Status run_all(const Plan& plan, const RunnerOptions& options, std::vector<Outcome>& outcomes,
               RunnerObserver& observer) {
  LEEWAY_ASSERT(options.stop != nullptr && outcomes.size() == plan.runs());
  return Pool(plan, options, outcomes, observer).work();
}

unsigned jobs_for(unsigned asked, std::size_t runs) {
  const unsigned wanted = asked > 0 ? asked : std::max(1U, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::clamp<std::size_t>(runs, 1, wanted));
}

}  // namespace leeway::tools::simulation
