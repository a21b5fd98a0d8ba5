#include "device_codec/orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace leeway::device_codec {
namespace {

EncodeJob job_of(std::uint32_t packets, std::uint64_t mark) {
  return {.packets = {.count = packets}, .place = {.seed = mark}};
}

// For each job, by its mark: how often each of its packets was given to a warp.
using Shares = std::map<std::uint64_t, std::vector<int>>;

Shares shares_of(const Orders<EncodeJob>& orders, unsigned warps, std::vector<unsigned>& work) {
  Shares shares;
  work.assign(warps, 0);
  for (unsigned warp = 0; warp < warps; ++warp) {
    JobBuffer<EncodeJob> buffer;
    for_each_job(Warp(), orders, warp, warps, buffer, [&](const EncodeJob& job, unsigned first) {
      auto& packets = shares[job.place.seed];
      packets.resize(job.packets.count);
      for (unsigned packet = first; packet < job.packets.count; packet += warps) {
        ++packets[packet];
        ++work[warp];
      }
    });
  }
  return shares;
}

TEST(LaunchOrders, OneJobIsDividedAmongWarps) {
  std::vector<unsigned> work;
  const Shares shares = shares_of({job_of(10, 7), {}}, 4, work);
  ASSERT_EQ(shares.size(), 1u);
  EXPECT_EQ(shares.at(7), std::vector<int>(10, 1));
  EXPECT_EQ(work, (std::vector<unsigned>{3, 3, 2, 2}));
}

// Many short jobs must keep all warps busy.
TEST(LaunchOrders, JobsOfAListGoOnWhereTheOneBeforeEnded) {
  const std::vector<EncodeJob> jobs = {job_of(3, 1), job_of(0, 2), job_of(6, 3), job_of(2, 4),
                                       job_of(5, 5)};
  const auto count = static_cast<std::uint32_t>(jobs.size());
  const std::uint32_t word = 8;
  const JobList<EncodeJob> list{jobs.data(), &count, &word, 8};
  for (const unsigned warps : {1u, 3u, 4u, 7u, 40u}) {
    std::vector<unsigned> work;
    const Shares shares = shares_of({{}, list}, warps, work);
    ASSERT_EQ(shares.size(), jobs.size());
    for (const EncodeJob& job : jobs)
      EXPECT_EQ(shares.at(job.place.seed), std::vector<int>(job.packets.count, 1)) << warps;
    const auto [least, most] = std::minmax_element(work.begin(), work.end());
    EXPECT_LE(*most - *least, 1u) << warps << " warps";
  }
}

TEST(LaunchOrders, NothingIsDoneWhereTheWordSaysSo) {
  const std::vector<EncodeJob> jobs = {job_of(3, 1)};
  const std::uint32_t count = 1;
  std::vector<unsigned> work;
  for (const std::uint32_t word : {0u, 7u, 9u}) {
    const JobList<EncodeJob> list{jobs.data(), &count, &word, 8};
    EXPECT_TRUE(shares_of({{}, list}, 2, work).empty()) << word;
  }
}

TEST(LaunchOrders, OfASumTheContributionsThatItHasAreCopied) {
  SumJob sum;
  sum.contributions_count = 2;
  for (Contribution& one : sum.contributions) one.encoded = false;
  JobBuffer<SumJob> buffer;
  std::fill(std::begin(buffer.bytes), std::end(buffer.bytes), std::byte{1});
  copy_job(Warp(), sum, buffer);
  EXPECT_EQ(buffer.job().contributions_count, 2u);
  EXPECT_FALSE(buffer.job().contributions[1].encoded);
  EXPECT_EQ(buffer.bytes[used_bytes(sum)], std::byte{1}) << "more of it was read than is there";
}

}  // namespace
}  // namespace leeway::device_codec
