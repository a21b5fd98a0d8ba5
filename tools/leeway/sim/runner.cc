#include "sim/runner.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/contracts.h"

namespace leeway::tools::simulation {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTriesMax = 12;
constexpr double kTrySeconds = 0.25;  // tries a run for this time, once it has finished two rounds
// time limit of all tries (struct Try) together
constexpr std::chrono::milliseconds kTriesTogether{3000};
constexpr std::chrono::milliseconds kInterruptCheck{50};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A run that is tried for a moment, for the forecast of the total time.
struct Try {
  std::size_t index = 0;  // index of the run
  std::atomic<bool> stop{false};
  Beginning beginning;
  double finished_seconds = 0;  // 0 for a run that was stopped

  void on_round(double seconds, std::uint32_t rounds, std::int64_t simulated_ns) {
    if (rounds == 1) beginning = {seconds, seconds, 1, simulated_ns, simulated_ns};
    beginning.seconds = seconds;
    beginning.rounds = rounds;
    beginning.simulated_ns = simulated_ns;
    if (rounds > 1 && seconds > kTrySeconds) stop = true;
  }
};

class Pool {
 public:
  Pool(const Plan& plan, const RunnerOptions& options, std::vector<Outcome>& outcomes,
       RunnerObserver& observer)
      : plan_(plan), options_(options), outcomes_(outcomes), observer_(observer) {}

  Status work() {
    std::vector<std::thread> threads;
    const unsigned jobs = jobs_for(options_.jobs, plan_.runs());
    if (options_.forecast) look_ahead(jobs);
    for (unsigned i = 1; i < jobs; ++i) threads.emplace_back([this] { make_runs(); });
    make_runs();
    for (std::thread& thread : threads) thread.join();
    return refusal_;
  }

 private:
  // Tries some runs for a moment each, and forecasts the total time. Results of tries that finish
  // are kept.
  void look_ahead(unsigned jobs) {
    std::vector<std::unique_ptr<Try>> tries;
    for (const std::size_t cell : cells_to_try(plan_.grid.size(), kTriesMax)) {
      const std::optional<std::size_t> index = first_unmade(cell);
      if (!index) continue;
      tries.push_back(std::make_unique<Try>());
      tries.back()->index = *index;
    }
    std::atomic<std::size_t> next{0};
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < jobs; ++i) {
      threads.emplace_back([&] {
        for (std::size_t at = next++; at < tries.size() && !over; at = next++) make_try(*tries[at]);
        const std::scoped_lock lock(look_ahead_mutex_);
        ++looked_ahead_;
        looked_ahead_changed_.notify_one();
      });
    }
    wait_for_tries(jobs);
    over = true;
    for (const auto& attempt : tries) attempt->stop = true;
    for (std::thread& thread : threads) thread.join();
    std::vector<double> whole_runs;
    for (const auto& attempt : tries) {
      const RunName name = plan_.run(attempt->index);
      const double seconds =
          attempt->finished_seconds > 0
              ? attempt->finished_seconds
              : whole_run_seconds(attempt->beginning, plan_.grid[name.cell].scenario);
      if (seconds > 0) whole_runs.push_back(seconds);
    }
    const auto left = std::count_if(outcomes_.begin(), outcomes_.end(), [](const Outcome& outcome) {
      return !outcome.record && outcome.failure.ok();
    });
    if (left == 0 || *options_.stop) return;
    observer_.on_forecast(forecast_of(whole_runs, static_cast<std::size_t>(left), jobs), jobs);
  }

  std::optional<std::size_t> first_unmade(std::size_t cell) const {
    for (std::size_t index = 0; index < plan_.runs(); ++index) {
      const RunName name = plan_.run(index);
      if (name.cell == cell && !outcomes_[index].record) return index;
      if (name.cell > cell) break;
    }
    return std::nullopt;
  }

  void wait_for_tries(unsigned jobs) {
    const Clock::time_point end = Clock::now() + kTriesTogether;
    std::unique_lock lock(look_ahead_mutex_);
    while (looked_ahead_ < jobs && Clock::now() < end && !*options_.stop) {
      looked_ahead_changed_.wait_for(lock, kInterruptCheck);
    }
  }

  void make_try(Try& attempt) {
    const Clock::time_point begin = Clock::now();
    sim::RunOptions options = options_.run_options;
    options.stop = &attempt.stop;
    options.progress = [&attempt, begin](std::uint32_t done, std::int64_t simulated_ns) {
      attempt.on_round(seconds_since(begin), done, simulated_ns);
    };
    make_run(attempt.index, options);
    if (outcomes_[attempt.index].record) attempt.finished_seconds = seconds_since(begin);
  }

  void make_runs() {
    for (std::size_t index = next_++; index < plan_.runs() && !*options_.stop; index = next_++) {
      if (outcomes_[index].record || !outcomes_[index].failure.ok()) continue;
      make_run(index, options_for(plan_.grid[plan_.run(index).cell].scenario));
    }
  }

  void make_run(std::size_t index, const sim::RunOptions& options) {
    const RunName name = plan_.run(index);
    const sim::scenario::Scenario& scenario = plan_.grid[name.cell].scenario;
    Result<sim::RunRecord> record = options_.run(scenario, name.seed, options);
    if (!record.ok()) {
      // Threads need no lock here, because each run has an element of its own.
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
  std::mutex look_ahead_mutex_;
  std::condition_variable looked_ahead_changed_;
  unsigned looked_ahead_ = 0;  // threads that are done looking ahead
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
