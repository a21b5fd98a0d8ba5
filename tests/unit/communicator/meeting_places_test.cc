// Tests communicators whose ranks do not meet at rank 0's TCP port.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "leeway/communicator.h"
#include "leeway/rendezvous.h"
#include "unit/rendezvous/loopback_peer.h"
#include "unit/rendezvous/plain_store.h"

namespace leeway {
namespace {

// Rank `rank` of `size` meets, sums ones over all ranks, and returns its result, or 0 on an error.
float sum_of_ones(Options options, int rank, int size) {
  options.rank = rank;
  options.world_size = size;
  options.transport = TransportKind::udp;
  options.bind_address = "127.0.0.1";
  const auto communicator = Communicator::create(options);
  EXPECT_TRUE(communicator.ok()) << communicator.status().c_str();
  if (!communicator.ok()) return 0;
  std::vector<float> ones(100, 1.0f);
  const auto report = (*communicator)->all_reduce(std::span(ones), {.delivery = exact()});
  EXPECT_TRUE(report.ok()) << report.status().c_str();
  return report.ok() && std::count(ones.begin(), ones.end(), ones[0]) == 100 ? ones[0] : 0;
}

template <typename OptionsOf>
void expect_groups_to_sum(int groups, int size, const OptionsOf& options_of) {
  std::vector<float> sums(static_cast<std::size_t>(groups * size));
  {
    std::vector<std::jthread> ranks;
    for (int i = 0; i < groups * size; ++i) {
      ranks.emplace_back(
          [&, i] { sums[i] = sum_of_ones(options_of(i / size, i % size), i % size, size); });
    }
  }
  EXPECT_EQ(sums, std::vector<float>(sums.size(), static_cast<float>(size)));
}

TEST(CommunicatorCreate, MeetsInAFolder) {
  std::string folder = (std::filesystem::temp_directory_path() / "leeway-comm-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  expect_groups_to_sum(1, 8, [&](int, int) {
    Options options;
    options.store = std::make_shared<FileRendezvous>(folder);
    return options;
  });
  std::filesystem::remove_all(folder);
}

TEST(CommunicatorCreate, MeetsInAStoreOfTheCallers) {
  const auto store = std::make_shared<rendezvous::PlainStore>();
  expect_groups_to_sum(1, 8, [&](int, int) {
    Options options;
    options.store = store;
    return options;
  });
}

TEST(CommunicatorCreate, MeetsAtAPortThatTheStoreTells) {
  const auto store = std::make_shared<rendezvous::PlainStore>();
  expect_groups_to_sum(1, 4, [&](int, int) {
    Options options;
    options.store = store;
    options.rendezvous = "127.0.0.1:0";
    return options;
  });
}

TEST(CommunicatorCreate, SixteenGroupsMeetAtOneAddressAtOnce) {
  const std::string address = rendezvous::rendezvous_at(rendezvous::free_port());
  expect_groups_to_sum(16, 3, [&](int group, int) {
    Options options;
    options.rendezvous = address;
    options.communicator_name = "group " + std::to_string(group);
    return options;
  });
}

}  // namespace
}  // namespace leeway
