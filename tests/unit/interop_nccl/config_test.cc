#include "interop/nccl/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <cstddef>
#include <cstring>
#include <vector>

namespace leeway::nccl {
namespace {

using testing::HasSubstr;

leeway_nccl_config left_alone(unsigned version) {
  leeway_nccl_config config{};
  config.size = sizeof config;
  config.magic = 0xcafebeef;
  config.version = version;
  config.blocking = config.cga_cluster_size = config.min_ctas = config.max_ctas = INT_MIN;
  config.split_share = config.traffic_class = config.collnet_enable = config.cta_policy = INT_MIN;
  config.shrink_share = config.nvls_ctas = config.channels_per_net_peer = INT_MIN;
  config.nvlink_centric_sched = config.graph_usage_mode = config.rma_contexts = INT_MIN;
  config.p2p_peers_max = config.graph_stream_ordering = INT_MIN;
  return config;
}

const Config kParent{.blocking = false, .name = "parent"};

TEST(NcclConfig, NoneIsTheParents) {
  const auto config = read_config(nullptr, kParent);
  ASSERT_TRUE(config.ok());
  EXPECT_FALSE(config->blocking);
  EXPECT_EQ(config->name, "parent");
}

TEST(NcclConfig, WhatWasLeftAloneIsTheParents) {
  leeway_nccl_config asked = left_alone(23007);
  asked.comm_name = "child";
  const auto config = read_config(&asked, kParent);
  ASSERT_TRUE(config.ok());
  EXPECT_FALSE(config->blocking);
  EXPECT_EQ(config->name, "child");
}

TEST(NcclConfig, WithoutMagicItIsRefused) {
  leeway_nccl_config asked = left_alone(22809);
  asked.magic = 0;
  EXPECT_THAT(read_config(&asked, kParent).status().c_str(), HasSubstr("NCCL_CONFIG_INITIALIZER"));
  asked = left_alone(22809);
  asked.size = 8;
  EXPECT_FALSE(read_config(&asked, kParent).ok());
}

// A header of 2.18 had no commName, so its struct ends where the library's continues.
TEST(NcclConfig, NothingIsReadBehindAnOlderStruct) {
  leeway_nccl_config newest = left_alone(21800);
  newest.blocking = 1;
  std::vector<std::byte> older(offsetof(leeway_nccl_config, traffic_class));
  newest.size = older.size();
  // The struct is on the heap, so that the address sanitizer sees reads behind its end.
  std::memcpy(older.data(), &newest, older.size());
  const auto config =
      read_config(reinterpret_cast<const leeway_nccl_config*>(older.data()), kParent);
  ASSERT_TRUE(config.ok());
  EXPECT_TRUE(config->blocking);
  EXPECT_EQ(config->name, "parent");
}

// A program may be compiled with a new size and an old version. NCCL goes by the version.
TEST(NcclConfig, MembersNewerThanTheVersionAreNotLookedAt) {
  leeway_nccl_config asked = left_alone(21700);
  asked.comm_name = reinterpret_cast<const char*>(1);
  asked.nvls_ctas = -5;
  const auto config = read_config(&asked, kParent);
  ASSERT_TRUE(config.ok()) << config.status().c_str();
  EXPECT_EQ(config->name, "parent");
}

TEST(NcclConfig, WrongValuesAreNamed) {
  leeway_nccl_config asked = left_alone(22809);
  asked.blocking = 2;
  EXPECT_THAT(read_config(&asked, kParent).status().c_str(),
              HasSubstr("Invalid config blocking attribute value 2"));
  asked = left_alone(22809);
  asked.min_ctas = 8;
  asked.max_ctas = 4;
  EXPECT_THAT(read_config(&asked, kParent).status().c_str(), HasSubstr("value 8/4"));
  asked = left_alone(22809);
  asked.split_share = 7;
  EXPECT_THAT(read_config(&asked, kParent).status().c_str(), HasSubstr("splitShare"));
}

}  // namespace
}  // namespace leeway::nccl
