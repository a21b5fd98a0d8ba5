// Scenarios whose results are checked bit for bit: every operation, many at once, two groups,
// several threads.
#include <algorithm>
#include <cstring>
#include <deque>
#include <fstream>
#include <sstream>
#include <thread>

#include "integration/every_operation.h"

namespace leeway::integration {
namespace {

Facts with_counters(Facts facts, const Communicator& group) {
  facts["rank"] = group.rank();
  facts["transport"] = to_string(group.transport());
  facts["datagram_bytes"] = group.datagram_bytes();
  for (const auto& [name, value] : group.counters()) facts["counters"][name] = value;
  return facts;
}

// An all_reduce in progress, with its right result.
struct Pending {
  Tensor data;
  Tensor expected;
  Work work;
};

Pending start_all_reduce(Communicator& group, std::size_t count, std::uint32_t salt) {
  Pending pending{
      Tensor(DataType::f32, count,
             [&](std::size_t i) { return contribution(group.rank(), i, salt); }),
      Tensor(DataType::f32, count,
             [&](std::size_t i) { return reduced(ReduceOp::sum, group.size(), i, salt); }),
      {}};
  pending.work = group.all_reduce_async(pending.data.view());
  return pending;
}

// Makes `calls` all-reduces of `count` elements, one after the other. Returns how many were right,
// wrong and failed, and the errors.
Facts outcomes_of(Communicator& group, std::size_t count, std::uint32_t calls) {
  Facts facts = {{"right", 0}, {"wrong", 0}, {"failed", Facts::array()}};
  for (std::uint32_t k = 0; k < calls; ++k) {
    Tensor data(DataType::f32, count,
                [&](std::size_t i) { return contribution(group.rank(), i, k); });
    const Tensor expected(DataType::f32, count, [&](std::size_t i) {
      return reduced(ReduceOp::sum, group.size(), i, k);
    });
    const auto outcome =
        group.all_reduce(data.view(), {.delivery = exact(std::chrono::seconds(1)),
                                       .confirm_use = true});  // only datagrams support it
    if (!outcome.ok()) {
      facts["failed"].push_back(facts_of(outcome.status()));
      continue;
    }
    const char* const what = data.wrong(expected) == 0 ? "right" : "wrong";
    facts[what] = facts[what].get<int>() + 1;
  }
  return facts;
}

// Overwrites the read and write positions of all shared-memory rings of this process. Returns the
// number of rings.
int scribble() {
  constexpr std::size_t kHeadsBytes = 4096;
  std::ifstream maps("/proc/self/maps");
  int scribbled = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/dev/shm/leeway-") == std::string::npos) continue;
    std::istringstream words(line);
    std::uintptr_t begin = 0;
    char dash = 0;
    std::uintptr_t end = 0;
    std::string rights;
    std::uint64_t offset = 0;
    words >> std::hex >> begin >> dash >> end >> rights >> offset;
    if (offset != 0 || end - begin < kHeadsBytes || rights[1] != 'w') continue;
    std::memset(reinterpret_cast<void*>(begin), 0xA5, kHeadsBytes);
    ++scribbled;
  }
  return scribbled;
}

}  // namespace

// Runs every exact operation. `elements_max`: the largest block, in float32 elements. `types=0`:
// float32 only. `late_ms`: how much later rank 0 begins, in ms; the others sleep in their calls
// then, and must be woken.
Facts collectives(const Arguments& arguments) {
  const auto group = join();
  if (group->rank() == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(arguments.number("late_ms", 0)));
  const auto largest = static_cast<std::size_t>(arguments.number("elements_max", 64 * 1024));
  Tally tally;
  EveryOperation every(*group, tally);
  for (std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{250}, std::size_t{16'384}}) {
    if (count < largest) every.run_all(DataType::f32, count);
  }
  every.run_all(DataType::f32, largest);
  if (arguments.number("types", 1) != 0) {
    for (int type = 0; type < kDataTypeCount; ++type)
      every.run_all(static_cast<DataType>(type), 1001);
  }
  every.all_reduce(DataType::f32, 4 * largest, ReduceOp::sum);
  return with_counters(tally.facts(), *group);
}

// Starts more operations than may be open at once (limits::kOpenCollectivesMax): all-reduces of
// different lengths, and a ring of messages.
Facts in_flight(const Arguments& arguments) {
  const auto group = join();
  const auto operations = static_cast<std::uint32_t>(arguments.number("operations", 40));
  Tally tally;
  std::deque<Pending> pending;
  for (std::uint32_t k = 0; k < operations; ++k)
    pending.push_back(start_all_reduce(*group, 1 + 977 * k, k));
  EveryOperation(*group, tally)
      // Messages and collectives are numbered separately, so these messages do not wait for the
      // collectives.
      .ring(DataType::f32, 5000);
  for (auto at = pending.rbegin(); at != pending.rend(); ++at) {
    const auto outcome = at->work.wait();
    tally.add("all_reduce_async", outcome, at->data.wrong(at->expected));
  }
  return with_counters(tally.facts(), *group);
}

std::uint64_t refused_epochs(const Communicator& group) {
  for (const auto& [name, value] : group.counters())
    if (name == "refused_epoch") return value;
  return 0;
}

// Runs operations on two groups at the same time. The second group meets at the port after the
// first group's.
Facts two_groups(const Arguments&) {
  const Options first_options = environment_options();
  const auto first = join(first_options);
  Options second_options = first_options;
  const std::size_t colon = second_options.rendezvous.rfind(':') + 1;
  const int next_port = std::stoi(second_options.rendezvous.substr(colon)) + 1;
  second_options.rendezvous.replace(colon, std::string::npos, std::to_string(next_port));
  second_options.communicator_name = "second";
  const auto second = join(second_options);
  // A datagram that arrived before this rank joined the datagram's group was refused then, and
  // rightly. Such datagrams are subtracted below.
  const std::uint64_t refused_before = refused_epochs(*first) + refused_epochs(*second);
  Tally first_tally;
  Tally second_tally;
  std::thread beside([&] { EveryOperation(*second, second_tally).run_all(DataType::f32, 20'000); });
  EveryOperation(*first, first_tally).run_all(DataType::f32, 20'000);
  beside.join();
  Facts facts = with_counters(first_tally.facts(), *first);
  facts["second"] = second_tally.facts();
  facts["refused_epoch"] = refused_epochs(*first) + refused_epochs(*second) - refused_before;
  return facts;
}

// Three threads use one group: one makes collectives, one sends messages around the ring of ranks,
// and one reads the counters.
Facts threads(const Arguments& arguments) {
  const auto group = join();
  const auto rounds = arguments.number("rounds", 30);
  Tally ring_tally;
  Tally collective_tally;
  std::jthread watcher([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      static_cast<void>(group->counters());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  std::thread ring([&] {
    EveryOperation every(*group, ring_tally);
    for (std::int64_t k = 0; k < rounds; ++k) every.ring(DataType::i32, 3000);
  });
  EveryOperation every(*group, collective_tally);
  for (std::int64_t k = 0; k < rounds; ++k) every.all_reduce(DataType::f32, 10'000, ReduceOp::sum);
  ring.join();
  watcher.request_stop();
  watcher.join();
  Facts facts = with_counters(collective_tally.facts(), *group);
  facts["ring"] = ring_tally.facts();
  return facts;
}

// Rank `scribbler` overwrites its shared-memory rings between calls. After that all ranks make two
// large calls, then five small ones.
Facts scribbled_memory(const Arguments& arguments) {
  const auto group = join();
  const bool scribbles = group->rank() == arguments.number("scribbler", 2);
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  constexpr std::size_t kSmall = 1000;
  Facts facts;
  facts["before"] = outcomes_of(*group, kLarge, 2);
  if (scribbles) facts["scribbled"] = scribble();
  facts["large"] = outcomes_of(*group, kLarge, 2);
  facts["small"] = outcomes_of(*group, kSmall, 5);
  return with_counters(std::move(facts), *group);
}

}  // namespace leeway::integration
