// Sends tensors of more than 2^32 bytes and elements between two ranks of this process, and checks
// every byte. Needs 9 GiB of memory and some minutes, so ctest does not run it. Exits with 1 if a
// byte is wrong.
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "leeway/communicator.h"

namespace {

using namespace leeway;

constexpr std::size_t kElements = (std::size_t{1} << 32) + 12'345;

// Returns a value that also depends on the bits of `i` above 2^32.
std::uint8_t value_of(std::size_t i) {
  return static_cast<std::uint8_t>((i * 0x9E3779B97F4A7C15) >> 56);
}

struct Memory {
  std::span<std::uint8_t> span() { return {data.get(), kElements}; }
  std::unique_ptr<std::uint8_t[]> data = std::make_unique_for_overwrite<std::uint8_t[]>(kElements);
};

void fill(std::span<std::uint8_t> memory) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = value_of(i);
}

std::size_t wrong_in(std::span<const std::uint8_t> memory) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) wrong += memory[i] != value_of(i);
  return wrong;
}

bool report(const char* what, const Status& status, std::size_t wrong) {
  std::printf("%-12s %s, %zu bytes wrong\n", what, status.ok() ? "ok" : status.c_str(), wrong);
  std::fflush(stdout);
  return status.ok() && wrong == 0;
}

// Rank 0 has all elements but the last 100, in place. Rank 1 has these 100, and receives the rest.
bool all_gather(Communicator& communicator, Memory& memory) {
  const std::vector<std::size_t> counts = {kElements - 100, 100};
  const std::vector<std::size_t> places = {0, kElements - 100};
  const Rank self = communicator.rank();
  const auto own = memory.span().subspan(places[self], counts[self]);
  fill(memory.span());
  auto other = memory.span().subspan(places[1 - self], counts[1 - self]);
  std::fill(other.begin(), other.end(), std::uint8_t{0});
  CollectiveOptions options;
  options.delivery = exact(std::chrono::minutes(5));
  const auto outcome = communicator.all_gather(own, memory.span(), Blocks(counts, places), options);
  return report("all_gather", outcome.status(), wrong_in(memory.span()));
}

bool message(Communicator& communicator, Memory& memory) {
  CollectiveOptions options;
  options.delivery = exact(std::chrono::minutes(5));
  if (communicator.rank() == 0) {
    fill(memory.span());
    return report("send", communicator.send(memory.span(), 1, options).status(), 0);
  }
  std::fill(memory.span().begin(), memory.span().end(), std::uint8_t{0});
  const Status status = communicator.recv(memory.span(), 0, options).status();
  return report("recv", status, wrong_in(memory.span()));
}

}  // namespace

int main() {
  const Options options;
  auto group = Communicator::create_inproc(2, options);
  if (!group.ok()) {
    std::printf("%s\n", group.status().c_str());
    return 1;
  }
  bool good[2] = {};
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Memory memory;
      good[rank] = all_gather(*(*group)[rank], memory) && message(*(*group)[rank], memory);
    });
  }
  for (auto& thread : threads) thread.join();
  return good[0] && good[1] ? 0 : 1;
}
