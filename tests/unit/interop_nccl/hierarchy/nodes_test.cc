#include "interop/nccl/hierarchy/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::nccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Rank i is on host hosts[i], with a GPU of its own.
std::vector<Site> sites_of(const std::vector<std::uint64_t>& hosts) {
  std::vector<Site> sites;
  for (const std::uint64_t host : hosts) sites.push_back({host, sites.size()});
  return sites;
}

TEST(NcclNodes, RanksThatFillOneHostAfterTheOther) {
  const auto nodes = nodes_of(sites_of({7, 7, 3, 3, 5, 5}), 3);
  ASSERT_TRUE(nodes.ok());
  EXPECT_EQ(nodes->count, 3);
  EXPECT_EQ(nodes->each, 2);
  EXPECT_EQ(nodes->node, 1);
  EXPECT_EQ(nodes->local, 1);
  EXPECT_TRUE(nodes->in_order());
  EXPECT_FALSE(nodes->single());
  EXPECT_EQ(nodes->rank_of(2, 1), 5);
}

TEST(NcclNodes, RanksThatAreDealtToHosts) {
  const auto nodes = nodes_of(sites_of({1, 2, 1, 2}), 2);
  ASSERT_TRUE(nodes.ok());
  EXPECT_THAT(nodes->ranks, ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(nodes->node, 0);
  EXPECT_EQ(nodes->local, 1);
  EXPECT_FALSE(nodes->in_order());
  EXPECT_EQ(nodes->local_of(0), 0);
  EXPECT_EQ(nodes->local_of(1), -1);
}

TEST(NcclNodes, OneHostIsOneNode) {
  const auto nodes = nodes_of(sites_of({4, 4, 4}), 1);
  ASSERT_TRUE(nodes.ok());
  EXPECT_TRUE(nodes->single());
  EXPECT_EQ(nodes->local, 1);
}

TEST(NcclNodes, UnequalNodesAreNone) {
  const auto nodes = nodes_of(sites_of({1, 1, 2}), 0);
  ASSERT_FALSE(nodes.ok());
  EXPECT_THAT(std::string(nodes.status().text()), HasSubstr("nodes 0 and 1 have 2 and 1 ranks"));
}

TEST(NcclNodes, AGpuHasOneRank) {
  std::vector<Site> sites = sites_of({1, 1, 2, 2});
  sites[3].gpu = sites[2].gpu;
  const auto nodes = nodes_of(sites, 0);
  ASSERT_FALSE(nodes.ok());
  EXPECT_THAT(std::string(nodes.status().text()), HasSubstr("ranks 2 and 3 have one GPU"));
  // GPUs of different hosts are different, whatever their numbers.
  sites = sites_of({1, 2});
  sites[1].gpu = sites[0].gpu;
  EXPECT_TRUE(nodes_of(sites, 0).ok());
}

TEST(NcclNodes, AHostIsKnownByItsId) {
  EXPECT_EQ(this_host("a"), this_host("a"));
  EXPECT_NE(this_host("a"), this_host("b"));
  EXPECT_EQ(this_host(""), this_host(""));
  EXPECT_NE(this_host(""), this_host("a"));
}

}  // namespace
}  // namespace leeway::nccl
