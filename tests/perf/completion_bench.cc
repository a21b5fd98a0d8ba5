// Time until a caller knows that its operation is done, by wait() and by on_done(), and the time of
// abort() while a peer is dead. Two ranks over UDP on loopback: this process and a child.
//
// The ways to wait take turns, so that other load on the machine disturbs all alike.
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <semaphore>
#include <string>
#include <vector>

#include "leeway/communicator.h"
#include "leeway/rendezvous.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kElements = 1024;  // 4 KiB
constexpr int kTurns = 30;
constexpr int kCallsOfTurn = 200;
constexpr int kInFlight = 32;
constexpr int kAborts = 5;

double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

double median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

std::unique_ptr<Communicator> join(const std::string& folder, const std::string& name, int rank) {
  Options options;
  options.store = std::make_shared<FileRendezvous>(folder);
  options.communicator_name = name;
  options.transport = TransportKind::udp;
  options.bind_address = "127.0.0.1";
  options.rank = rank;
  options.world_size = 2;
  auto made = Communicator::create(options);
  if (made.ok()) return std::move(*made);
  std::fprintf(stderr, "%s\n", made.status().c_str());
  std::exit(1);
}

// Returns how often this process's other threads slept, and so had to be woken.
long sleeps_of_others() {
  long sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(gettid())) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("voluntary_ctxt_switches:")) sum += std::atol(line.c_str() + 24);
    }
  }
  return sum;
}

struct Way {
  const char* name;
  std::vector<double> times;  // us from the call until the caller knew
  long sleeps = 0;
};

void call_and_block(Communicator& group, std::span<float> data, Way& way) {
  const auto start = Clock::now();
  (void)group.all_reduce(data);
  way.times.push_back(microseconds(Clock::now() - start));
}

void wait_by_himself(Communicator& group, std::span<float> data, Way& way) {
  const auto start = Clock::now();
  (void)group.all_reduce_async(data).wait();
  way.times.push_back(microseconds(Clock::now() - start));
}

// Records when a callback came. A callback may come after wait() has returned, so this object
// outlives all calls.
struct Told {
  Clock::time_point at;
  std::binary_semaphore over{0};
};
Told told;

void tell() {
  told.at = Clock::now();
  told.over.release();
}

void be_called_while_waiting(Communicator& group, std::span<float> data, Way& way) {
  const auto start = Clock::now();
  Work work = group.all_reduce_async(data);
  work.on_done(tell);
  (void)work.wait();
  told.over.acquire();
  way.times.push_back(microseconds(told.at - start));
}

void be_called(Communicator& group, std::span<float> data, Way& way) {
  const auto start = Clock::now();
  group.all_reduce_async(data).on_done(tell);
  told.over.acquire();
  way.times.push_back(microseconds(told.at - start));
}

void measure_completion(Communicator& group) {
  std::vector<float> data(kElements);
  Way blocked{.name = "blocking call"};
  Way waited{.name = "wait()"};
  Way called_waiting{.name = "on_done(), and wait()"};
  Way called{.name = "on_done(), nobody waits"};
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto take = [&](Way& way, auto&& call) {
      const long before = sleeps_of_others();
      for (int i = 0; i < kCallsOfTurn; ++i) call(group, std::span(data), way);
      way.sleeps += sleeps_of_others() - before;
    };
    take(blocked, call_and_block);
    take(waited, wait_by_himself);
    take(called_waiting, be_called_while_waiting);
    take(called, be_called);
  }
  const double base = median(waited.times);
  for (Way* way : {&blocked, &waited, &called_waiting, &called}) {
    std::printf("%-25s %8.2f us, %+6.2f beyond wait(); %.3f sleeps of other threads a call\n",
                way->name, median(way->times), median(way->times) - base,
                static_cast<double>(way->sleeps) / static_cast<double>(way->times.size()));
  }
}

void serve(const std::string& folder) {
  {
    const auto group = join(folder, "completion", 1);
    std::vector<float> data(kElements);
    for (int i = 0; i < 4 * kTurns * kCallsOfTurn; ++i) (void)group->all_reduce(std::span(data));
  }
  for (int i = 0; i < kAborts; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const auto group = join(folder, "abort" + std::to_string(i), 1);
      std::vector<float> data(kElements);
      (void)group->all_reduce(std::span(data));
      kill(getpid(), SIGKILL);
    }
    waitpid(child, nullptr, 0);
  }
}

void measure_abort(const std::string& folder, int number) {
  auto group = join(folder, "abort" + std::to_string(number), 0);
  std::vector<float> first(kElements);
  (void)group->all_reduce(std::span(first));
  std::vector<std::vector<float>> data(kInFlight, std::vector<float>(1 << 18, 1.0f));
  std::vector<Work> works;
  for (auto& one : data)
    works.push_back(group->all_reduce_async(std::span(one), {.delivery = exact(no_deadline)}));
  usleep(100'000);  // time until all that may go out has gone out
  const auto start = Clock::now();
  group->abort();
  int cancelled = 0;
  for (Work& work : works)
    cancelled += work.done() && work.wait().status().code() == StatusCode::kCancelled;
  const double ms = microseconds(Clock::now() - start) / 1000;
  for (auto& one : data) std::fill(one.begin(), one.end(), 2.0f);
  data.clear();
  const auto closing = Clock::now();
  group.reset();
  std::printf("abort() with %d in flight and a dead peer: %.3f ms, %d cancelled; closed in %.3f\n",
              kInFlight, ms, cancelled, microseconds(Clock::now() - closing) / 1000);
}

}  // namespace
}  // namespace leeway

int main() {
  char folder[] = "/tmp/completion_bench.XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  const pid_t child = fork();
  if (child == 0) {
    leeway::serve(folder);
    _exit(0);
  }
  leeway::measure_completion(*leeway::join(folder, "completion", 0));
  for (int i = 0; i < leeway::kAborts; ++i) leeway::measure_abort(folder, i);
  waitpid(child, nullptr, 0);
  std::filesystem::remove_all(folder);
  return 0;
}
