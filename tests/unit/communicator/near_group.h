// Groups whose ranks are threads. Over real memory, their exact calls go through the arena.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "communicator/memory_sharing.h"
#include "leeway/communicator.h"
#include "leeway/rendezvous.h"

namespace leeway::internal {

using Group = std::vector<std::unique_ptr<Communicator>>;

inline void on_each(std::size_t size, const std::function<void(std::size_t)>& body) {
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

// Makes a group. `adapt` may change each rank's options.
inline Group group_over(TransportKind transport, std::size_t size, Options options = {},
                        const std::function<void(std::size_t, Options&)>& adapt = {}) {
  options.transport = transport;
  options.store = std::make_shared<InprocRendezvous>();
  options.world_size = static_cast<int>(size);
  options.bind_address = "127.0.0.1";
  Group group(size);
  on_each(size, [&](std::size_t rank) {
    Options own = options;
    own.rank = static_cast<int>(rank);
    if (adapt) adapt(rank, own);
    auto made = Communicator::create(own);
    ASSERT_TRUE(made.ok()) << made.status().c_str();
    group[rank] = std::move(*made);
  });
  return group;
}

inline Group near_group(std::size_t size, const Options& options = {}) {
  return group_over(TransportKind::shm, size, options);
}

inline std::uint64_t counter(const Communicator& communicator, const std::string& name) {
  for (const auto& [key, value] : communicator.counters()) {
    if (key == name) return value;
  }
  return UINT64_MAX;
}

class NearCallsOfAGroup : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!check_memory().ok()) GTEST_SKIP() << check_memory().c_str();
  }
  void expect_sums(Group& group, std::size_t elements = 50'000) {
    const auto n = static_cast<float>(group.size());
    on_each(group.size(), [&](std::size_t rank) {
      std::vector<float> values(elements, static_cast<float>(rank + 1));
      const auto report = group[rank]->all_reduce(std::span(values));
      ASSERT_TRUE(report.ok()) << report.status().c_str();
      for (const float value : values) ASSERT_EQ(value, n * (n + 1) / 2);
    });
  }
};

}  // namespace leeway::internal
