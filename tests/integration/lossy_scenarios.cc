// Lossy scenarios: statistics of their errors, behaviour when a rank stops, and loss that nobody
// injected.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/crc32c.h"
#include "integration/scenario.h"

namespace leeway::integration {
namespace {

// Returns one rank's noise for element i: uniform, mean 0, variance 1.
float noise(int rank, std::size_t i, std::uint32_t step) {
  std::uint64_t x =
      i * 0x9E3779B97F4A7C15ull + static_cast<std::uint64_t>(rank) * 0xD1B54A32D192ED03ull + step;
  x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 29)) * 0x94D049BB133111EBull;
  const double unit = static_cast<double>(x >> 11) * 0x1p-53;
  return static_cast<float>((unit - 0.5) * std::sqrt(12.0));
}

double true_average(int ranks, std::size_t i, std::uint32_t step) {
  double sum = 0.0;
  for (int rank = 0; rank < ranks; ++rank) sum += 1.0 + noise(rank, i, step);
  return sum / ranks;
}

struct ErrorSums {
  double error = 0.0;
  double squared = 0.0;
  double signal = 0.0;
  double count = 0.0;

  void add(double got, double truth) {
    error += got - truth;
    squared += (got - truth) * (got - truth);
    signal += truth * truth;
    count += 1.0;
  }
};

Delivery delivery_of(const Arguments& arguments) {
  const auto deadline = std::chrono::milliseconds(arguments.number("deadline_ms", 20'000));
  const std::string kind = arguments.text("delivery", "best_effort");
  if (kind == "exact") return exact(deadline);
  if (kind == "bounded")
    return bounded(static_cast<double>(arguments.number("loss_ppm", 1000)) / 1e6, deadline);
  return best_effort(deadline);
}

// The spread half is lossy if the reduce half is, so that no call waits for data that a stopped
// rank does not send.
Delivery::Kind spread_of(const Arguments& arguments) {
  const bool lossy = delivery_of(arguments).kind != Delivery::Kind::exact;
  return lossy ? Delivery::Kind::best_effort : Delivery::Kind::exact;
}

struct Call {
  bool ok = false;
  bool cut = false;
  double wall_ms = 0.0;   // measured by the clock around the call
  double total_ms = 0.0;  // by the report
  std::uint64_t arrived_from_watched = 0;
  std::uint64_t expected_from_watched = 0;
};

Facts facts_of(const std::vector<Call>& calls) {
  Facts rows = Facts::array();
  for (const Call& call : calls) {
    rows.push_back({{"ok", call.ok},
                    {"cut", call.cut},
                    {"wall_ms", call.wall_ms},
                    {"total_ms", call.total_ms},
                    {"arrived", call.arrived_from_watched},
                    {"expected", call.expected_from_watched}});
  }
  return rows;
}

Call timed_call(Communicator& group, std::span<float> data, const CollectiveOptions& options,
                Rank watched, Status& first_error) {
  Call call;
  const auto start = std::chrono::steady_clock::now();
  const auto outcome = group.all_reduce(data, options);
  call.wall_ms = milliseconds(std::chrono::steady_clock::now() - start);
  call.ok = outcome.ok();
  if (!outcome.ok()) {
    if (first_error.ok()) first_error = outcome.status();
    return call;
  }
  call.cut = outcome->deadline_cut;
  call.total_ms = milliseconds(outcome->times.total);
  for (const PeerReport& peer : outcome->peers) {
    if (peer.rank != watched) continue;
    call.arrived_from_watched = peer.arrived;
    call.expected_from_watched = peer.expected;
  }
  return call;
}

}  // namespace

// Averages contributions of 1 plus noise that is independent between ranks. Returns the mean error,
// squared error and loss over `rounds` calls.
Facts lossy_average(const Arguments& arguments) {
  const auto group = join();
  const auto count = static_cast<std::size_t>(arguments.number("elements", 256 * 1024));
  const auto rounds = static_cast<std::uint32_t>(arguments.number("rounds", 20));
  const CollectiveOptions options{.op = ReduceOp::avg,
                                  .delivery = delivery_of(arguments),
                                  .codec = parse_codec(arguments.text("codec", "native")).value(),
                                  .estimator = Estimator::ratio};
  ErrorSums sums;
  double noise_variance = 0.0;
  std::vector<float> data(count);
  double lost = 0.0;
  double lost_first_pass = 0.0;
  std::uint32_t digest = 0;
  std::uint64_t cuts = 0;
  std::uint64_t disagreed = 0;
  for (std::uint32_t step = 0; step < rounds; ++step) {
    for (std::size_t i = 0; i < count; ++i) data[i] = 1.0f + noise(group->rank(), i, step);
    const auto outcome = group->all_reduce(std::span(data), options);
    if (!outcome.ok()) return {{"error", facts_of(outcome.status())}, {"step", step}};
    for (std::size_t i = 0; i < count; ++i) sums.add(data[i], true_average(group->size(), i, step));
    lost += outcome->loss / rounds;
    noise_variance +=
        (outcome->noise.quantisation_variance + outcome->noise.loss_variance) / rounds;
    lost_first_pass += outcome->loss_first_pass / rounds;
    cuts += outcome->deadline_cut;
    disagreed += !outcome->complete;
    digest = crc32c(std::as_bytes(std::span(data)), digest);
  }
  return {{"rank", group->rank()},
          {"datagram_bytes", group->datagram_bytes()},
          {"mean_error", sums.error / sums.count},
          {"standard_error", std::sqrt(sums.squared) / sums.count},
          {"mse", sums.squared / sums.count},
          {"nmse", sums.squared / sums.signal},
          {"noise_variance", noise_variance},
          {"loss", lost},
          {"loss_first_pass", lost_first_pass},
          {"deadline_cuts", cuts},
          {"disagreed", disagreed},
          {"digest", digest}};
}

// Makes all_reduces back to back while the test stops or kills rank `watched`. Prints the mark
// "looping" when calls have begun. Prints the mark "cut" when `cuts` calls were cut by the deadline
// or have failed, and with `leave=1` ends there. Otherwise ends after `rounds` calls.
Facts endless_rounds(const Arguments& arguments) {
  const auto group = join();
  const auto rounds = static_cast<std::size_t>(arguments.number("rounds", 80));
  const auto cuts_wanted = arguments.number("cuts", 3);
  const bool leave = arguments.number("leave", 0) != 0;
  const auto watched = static_cast<Rank>(arguments.number("watched", 2));
  const CollectiveOptions options{.delivery = delivery_of(arguments),
                                  .spread = spread_of(arguments)};
  std::vector<float> data(static_cast<std::size_t>(arguments.number("elements", 1 << 20)), 0.0f);
  std::vector<Call> calls;
  Status first_error;
  std::int64_t cuts = 0;
  while (calls.size() < rounds) {
    calls.push_back(timed_call(*group, data, options, watched, first_error));
    if (calls.size() == 3) mark("looping");
    const bool ended_by_deadline = calls.back().cut || !calls.back().ok;
    if (!ended_by_deadline || ++cuts != cuts_wanted) continue;
    mark("cut");
    if (leave) break;
  }
  return {
      {"rank", group->rank()}, {"calls", facts_of(calls)}, {"first_error", facts_of(first_error)}};
}

// Makes `rounds` equal all_reduces one after the other. Returns the loss and the time of each.
Facts repeat(const Arguments& arguments) {
  const auto group = join();
  const auto rounds = static_cast<std::size_t>(arguments.number("rounds", 100));
  const CollectiveOptions options{.delivery = delivery_of(arguments)};
  std::vector<float> data(static_cast<std::size_t>(arguments.number("elements", 4 << 20)));
  MemoryRegistration registration;
  if (arguments.number("registered", 0) == 1) {
    auto registered = group->register_memory(std::as_bytes(std::span(data)));
    if (!registered.ok()) end_with(registered.status());
    registration = std::move(*registered);
  }
  std::vector<double> times;
  std::uint64_t lossy_calls = 0;
  std::uint64_t lost_packets = 0;
  std::uint64_t wrong = 0;
  for (std::size_t k = 0; k < rounds; ++k) {
    std::fill(data.begin(), data.end(), static_cast<float>(group->rank() + 1));
    const auto outcome = group->all_reduce(std::span(data), options);
    if (!outcome.ok()) return {{"error", facts_of(outcome.status())}, {"call", k}};
    const auto expected = static_cast<float>(group->size() * (group->size() + 1) / 2);
    wrong += static_cast<std::uint64_t>(
        std::count_if(data.begin(), data.end(), [&](float x) { return x != expected; }));
    lossy_calls += outcome->loss > 0.0 || outcome->loss_first_pass > 0.0;
    for (const PeerReport& peer : outcome->peers)
      lost_packets += peer.expected - (peer.arrived - peer.repaired);
    times.push_back(milliseconds(outcome->times.total));
  }
  std::sort(times.begin(), times.end());
  Facts facts = {{"rank", group->rank()},
                 {"calls", times.size()},
                 {"lossy_calls", lossy_calls},
                 {"lost_packets", lost_packets},
                 {"wrong", wrong},
                 {"median_ms", times[times.size() / 2]},
                 {"longest_ms", times.back()}};
  for (const auto& [name, value] : group->counters()) facts["counters"][name] = value;
  return facts;
}

}  // namespace leeway::integration
