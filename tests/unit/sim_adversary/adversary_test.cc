#include "adversary/adversary.h"

#include <gtest/gtest.h>

#include "adversary/job.h"

namespace leeway::sim::adversary {
namespace {

TEST(Adversary, BreaksNoneOfFourHundredSeeds) {
  std::uint64_t right = 0;
  std::uint64_t failed = 0;
  std::uint64_t refused = 0;
  std::uint64_t key_phases = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Job job(seed);
    EXPECT_EQ(job.run(), "") << "leeway sim swarm --adversary --seeds " << seed << ".." << seed;
    right += job.right_calls();
    failed += job.failed_calls();
    refused += job.refused_tables();
    key_phases += job.key_phases();
  }
  // The adversary must tamper with something, but not with so much that no call can be right.
  EXPECT_GT(right, 2000u);
  EXPECT_GT(failed, 10u);
  EXPECT_GT(refused, 10u);
  EXPECT_GT(key_phases, 1000u);
}

TEST(Adversary, DoesTheSameWithASeedTwice) {
  EXPECT_EQ(judge(16).trace_hash, judge(16).trace_hash);
  EXPECT_NE(judge(16).trace_hash, judge(17).trace_hash);
}

// The adversary's search finds out only from this record that a nonce was used twice.
TEST(WatchedCipher, NotesANonceThatIsUsedTwice) {
  SealBook book;
  const auto one = watched_cipher(book)(true);
  const auto other = watched_cipher(book)(true);
  for (const auto* cipher : {&one, &other}) (*cipher)->set_key({}, {});
  std::array<std::byte, seal::kOverheadBytes> out{};
  one->seal(1, {}, out);
  EXPECT_EQ(book.broken, "");
  other->seal(1, {}, out);
  EXPECT_EQ(book.broken, "a nonce was used twice under one key");
}

}  // namespace
}  // namespace leeway::sim::adversary
