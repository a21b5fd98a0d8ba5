// Draws random programs over the public API, runs them and judges each outcome. This finds faults
// that no test was written for.
//
//   program_swarm --seeds A..B [--jobs N] [--route R] [--front c++|c|nccl] [--idle SECONDS]
//                 [--seconds N] [--json PATH] [--keep-going] [--no-shrink] [--quiet]
//                 [--differing]      ranks differ in half of the calls
//                 [--cut]            deadlines end half of the calls, and ranks die
//   program_swarm --seed S [...]       that program alone
//   program_swarm --show S | --dump S  prints a program, as C++ source or JSON
//
// Exit status: 0 all right, 1 a program failed, 2 wrong arguments.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "programs/board.h"
#include "programs/runner.h"
#include "programs/shrink.h"

namespace leeway::programs {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::uint64_t from = 1;
  std::uint64_t to = 320;
  Limits limits;
  unsigned jobs = 1;
  std::chrono::milliseconds idle{15'000};
  double seconds = 1e9;  // after this time no further programs begin
  std::string json;
  bool keep_going = false;
  bool shrinks = true;
  bool quiet = false;
  int show = 0;  // 1: source, 2: JSON
};

bool parse_route(std::string_view name, Limits& limits) {
  for (int i = 0; i < kRouteCount; ++i) {
    if (to_string(static_cast<Route>(i)) != name) continue;
    limits.any_route = false;
    limits.route = static_cast<Route>(i);
    return true;
  }
  return false;
}

bool parse_front(std::string_view name, Limits& limits) {
  for (const Front front : {Front::cpp, Front::c, Front::nccl}) {
    if (to_string(front) != name) continue;
    limits.front = front;
    return true;
  }
  return false;
}

bool parse(int count, char** words, Arguments& out) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word(words[i]);
    if (word == "--keep-going") {
      out.keep_going = true;
      continue;
    }
    if (word == "--no-shrink") {
      out.shrinks = false;
      continue;
    }
    if (word == "--quiet") {
      out.quiet = true;
      continue;
    }
    if (word == "--differing") {
      out.limits.differing = true;
      continue;
    }
    if (word == "--cut") {
      out.limits.cut = true;
      continue;
    }
    if (++i == count) return false;
    const char* const value = words[i];
    if (word == "--seeds") {
      const char* const dots = std::strstr(value, "..");
      if (dots == nullptr) return false;
      out.from = std::strtoull(value, nullptr, 10);
      out.to = std::strtoull(dots + 2, nullptr, 10);
    } else if (word == "--seed" || word == "--show" || word == "--dump") {
      out.from = out.to = std::strtoull(value, nullptr, 10);
      out.show = word == "--show" ? 1 : word == "--dump" ? 2 : 0;
    } else if (word == "--jobs") {
      out.jobs = static_cast<unsigned>(std::max(1, std::atoi(value)));
    } else if (word == "--idle") {
      out.idle = std::chrono::seconds(std::atoi(value));
    } else if (word == "--seconds") {
      out.seconds = std::atof(value);
    } else if (word == "--json") {
      out.json = value;
    } else if (word == "--route") {
      if (!parse_route(value, out.limits)) return false;
    } else if (word == "--front") {
      if (!parse_front(value, out.limits)) return false;
    } else {
      return false;
    }
  }
  return out.from <= out.to;
}

struct Tally {
  std::uint64_t programs = 0;
  std::map<Verdict::What, std::uint64_t> failures;
};

struct Coverage {
  std::uint64_t calls = 0;
  double said = 0.0;
  double true_square = 0.0;
  double difference_square = 0.0;

  template <typename Error>
  void add(const Error& error) {
    calls += error.calls;
    said += error.said;
    true_square += error.true_square;
    difference_square += error.difference_square;
  }
  // Returns the difference of the predicted and the true sum, in standard errors.
  double sigmas() const {
    return difference_square > 0.0 ? std::abs(said - true_square) / std::sqrt(difference_square)
                                   : 0.0;
  }
  // Returns true if predictions are close enough. The predicted squared error may be wrong by a
  // fifth, which is a tenth of the error itself.
  bool holds() const {
    return calls < 100 || sigmas() < 4.0 || std::abs(said - true_square) < 0.2 * true_square;
  }
};

class Swarm {
 public:
  explicit Swarm(const Arguments& arguments) : arguments_(arguments) {}

  int run() {
    if ((arguments_.limits.any_route || arguments_.limits.route == Route::mixed) &&
        !can_hide_memory()) {
      std::fprintf(stderr, "nothing may be mounted here: all ranks of route mixed share memory\n");
    }
    std::uint64_t next = arguments_.from;
    std::vector<std::unique_ptr<Run>> runs;
    while (!runs.empty() || (next <= arguments_.to && !stops())) {
      while (runs.size() < arguments_.jobs && next <= arguments_.to && !stops()) {
        std::vector<Program> programs;
        const std::uint64_t group = next / kProgramsOfAGroup;
        for (; next <= arguments_.to && next / kProgramsOfAGroup == group; ++next)
          programs.push_back(draw(next, arguments_.limits));
        runs.push_back(std::make_unique<Run>(std::move(programs), arguments_.idle));
      }
      bool any = false;
      for (auto& one : runs) {
        if (!one->poll()) continue;
        any = true;
        take(*one);
        one = rest_of(*one);
      }
      runs.erase(std::remove(runs.begin(), runs.end(), nullptr), runs.end());
      if (!any) ::usleep(500);
      progress(false);
    }
    progress(true);
    judge_coverage();
    summarize();
    return failed_ == 0 ? 0 : 1;
  }

 private:
  bool stops() const {
    return (failed_ > 0 && !arguments_.keep_going) || seconds() > arguments_.seconds;
  }

  // Returns how many programs of the run are judged: all, or those up to the first that failed.
  static std::size_t judged(const Run& run) {
    const Verdict& verdict = run.verdict();
    if (verdict.right()) return run.programs().size();
    return static_cast<std::size_t>(std::max(0, verdict.program)) + 1;
  }

  // Returns a run of the programs behind one that failed, in new processes. Returns nullptr if
  // there are none, or if the search stops.
  std::unique_ptr<Run> rest_of(const Run& run) const {
    const auto& programs = run.programs();
    const std::size_t done = judged(run);
    if (stops() || done >= programs.size()) return nullptr;
    return std::make_unique<Run>(
        std::vector<Program>(programs.begin() + static_cast<std::ptrdiff_t>(done), programs.end()),
        arguments_.idle);
  }

  void take(const Run& run) {
    const Program& first = run.programs().front();
    Tally& tally = tallies_[std::string(to_string(first.route)) +
                            (first.processes ? " processes" : " threads")];
    const Verdict& verdict = run.verdict();
    const std::uint64_t done = judged(run);
    tally.programs += done;
    programs_ += done;
    for (std::size_t i = 0; i < coverage_.size(); ++i) coverage_[i].add(run.board().errors[i]);
    if (verdict.right()) return;
    ++failed_;
    ++tally.failures[verdict.what];
    report(run);
  }

  void report(const Run& run) {
    const Verdict& verdict = run.verdict();
    const auto at = static_cast<std::size_t>(
        std::clamp(verdict.program, 0, static_cast<int>(run.programs().size()) - 1));
    const Program& one = run.programs()[at];
    std::fprintf(stderr, "\nFAILED seed %llu (%s, %s, %d ranks): %s at step %d, rank %d: %s\n",
                 static_cast<unsigned long long>(one.seed),
                 std::string(to_string(one.route)).c_str(), one.processes ? "processes" : "threads",
                 one.ranks, to_string(verdict.what).c_str(), verdict.step, verdict.rank,
                 verdict.text.c_str());
    failures_.push_back({one.seed, verdict});
    if (!arguments_.shrinks) return;
    const auto idle = std::min(arguments_.idle, std::chrono::milliseconds(8'000));
    const auto since = Clock::now();
    const auto fails = [&](const Program& program) {
      if (Clock::now() - since > std::chrono::seconds(120)) return false;
      return programs::run({program}, idle).what == verdict.what;
    };
    Program small = one;
    if (!fails(small) && !fails(small)) {
      // The program did not fail alone, so it may need those that ran before it in its group.
      small = joined(
          {run.programs().begin(), run.programs().begin() + static_cast<std::ptrdiff_t>(at) + 1});
      if (!fails(small) && !fails(small)) {
        std::fprintf(stderr, "it does not fail again; the program:\n%s",
                     as_source(one, verdict.text).c_str());
        return;
      }
    }
    small = shrink(small, fails, 150);
    const Verdict last = programs::run({small}, idle);
    std::fprintf(stderr, "shrunk to %zu steps:\n%s", small.steps.size(),
                 as_source(small, last.right() ? verdict.text : last.text).c_str());
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

  void progress(bool last) {
    if (arguments_.quiet || (!last && Clock::now() - told_ < std::chrono::seconds(1))) return;
    told_ = Clock::now();
    std::fprintf(stderr, "\r%llu programs, %.0f/s, %llu failed ",
                 static_cast<unsigned long long>(programs_),
                 static_cast<double>(programs_) / std::max(0.001, seconds()),
                 static_cast<unsigned long long>(failed_));
    if (last) std::fprintf(stderr, "\n");
  }

  // Leaves out zero fill, which has index 0. It is biased, and reports predict only the variance,
  // so its error exceeds the prediction.
  void judge_coverage() {
    Coverage all;
    for (std::size_t i = 1; i < coverage_.size(); ++i) {
      all.add(coverage_[i]);
      judge_coverage(coverage_[i], std::string(to_string(static_cast<Estimator>(i))));
    }
    judge_coverage(all, "all of them");
  }
  void judge_coverage(const Coverage& one, const std::string& name) {
    if (one.calls > 0 && !arguments_.quiet)
      std::printf("%-16s %5llu lossy shards: predicted error / measured %.3f, %.1f sigma\n",
                  name.c_str(), static_cast<unsigned long long>(one.calls),
                  std::sqrt(std::max(0.0, one.said / one.true_square)), one.sigmas());
    if (one.holds()) return;
    ++failed_;
    failures_.push_back({arguments_.to, Verdict{.what = Verdict::What::wrong, .text = name}});
    std::fprintf(stderr, "FAILED: %s predicts an error of %.3f of the one measured, %.1f sigma\n",
                 name.c_str(), std::sqrt(std::max(0.0, one.said / one.true_square)), one.sigmas());
  }

  void summarize() {
    std::printf("%-22s %9s %6s %6s %6s %6s\n", "route", "programs", "wrong", "hangs", "deaths",
                "leaks");
    for (auto& [route, tally] : tallies_)
      std::printf("%-22s %9llu %6llu %6llu %6llu %6llu\n", route.c_str(),
                  static_cast<unsigned long long>(tally.programs),
                  static_cast<unsigned long long>(tally.failures[Verdict::What::wrong]),
                  static_cast<unsigned long long>(tally.failures[Verdict::What::hang]),
                  static_cast<unsigned long long>(tally.failures[Verdict::What::death]),
                  static_cast<unsigned long long>(tally.failures[Verdict::What::leak]));
    std::printf("%llu programs in %.1f s: %.0f a second; %llu failed\n",
                static_cast<unsigned long long>(programs_), seconds(),
                static_cast<double>(programs_) / std::max(0.001, seconds()),
                static_cast<unsigned long long>(failed_));
    if (arguments_.json.empty()) return;
    std::ofstream file(arguments_.json);
    file << "{\"programs\":" << programs_ << ",\"seconds\":" << seconds() << ",\"failures\":[";
    for (std::size_t i = 0; i < failures_.size(); ++i)
      file << (i > 0 ? "," : "") << "{\"seed\":" << failures_[i].first << ",\"check\":\""
           << to_string(failures_[i].second.what) << "\"}";
    file << "]}\n";
  }

  const Arguments& arguments_;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point told_ = begun_;
  std::uint64_t programs_ = 0;
  std::uint64_t failed_ = 0;
  std::map<std::string, Tally> tallies_;
  std::array<Coverage, kEstimatorCount> coverage_;
  std::vector<std::pair<std::uint64_t, Verdict>> failures_;
};

}  // namespace
}  // namespace leeway::programs

int main(int count, char** words) {
  using namespace leeway::programs;
  Arguments arguments;
  if (!parse(count, words, arguments)) {
    std::fprintf(stderr,
                 "usage: program_swarm --seeds A..B | --seed S | --show S | --dump S\n"
                 "         [--jobs N] [--route auto|near|shm|mixed|udp|inproc|sites|lanes|sealed|"
                 "faulted]\n         [--front c++|c|nccl] [--idle SECONDS] [--seconds N] "
                 "[--json PATH] [--keep-going] [--no-shrink] [--quiet] [--differing] [--cut]\n");
    return 2;
  }
  if (arguments.show != 0) {
    const Program program = draw(arguments.from, arguments.limits);
    const std::string text = arguments.show == 1 ? as_source(program, "") : as_json(program);
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  ::signal(SIGPIPE, SIG_IGN);
  return Swarm(arguments).run();
}
