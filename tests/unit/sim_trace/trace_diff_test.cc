#include "trace/trace_diff.h"

#include <gtest/gtest.h>

#include "written_trace.h"

namespace leeway::sim::trace {
namespace {

struct Change {
  std::uint32_t at = UINT32_MAX;  // number of the packet that differs
  std::uint32_t bytes = 1500;
  LinkId link = 0;
  std::uint32_t index = 0;  // index of the datagram
};

class TraceDiff : public TraceFiles {
 protected:
  std::string write_trace(const std::string& name, std::uint32_t packets, const Change& change = {},
                          std::uint64_t seed = 1) {
    const auto writer = open(name, {.seed = seed});
    for (std::uint32_t i = 0; i < packets; ++i) {
      const bool other = i == change.at;
      writer->on_packet({i}, PacketStep::sent, other ? change.link : 0,
                        packet_of(0, 1, other ? change.bytes : 1500),
                        data_datagram(1, other ? change.index : 0));
    }
    EXPECT_TRUE(writer->close().ok());
    return path(name);
  }
};

TEST_F(TraceDiff, EqualTraces) {
  const auto compared = compare_traces(write_trace("a", 10), write_trace("b", 10), 3);
  ASSERT_TRUE(compared.ok());
  EXPECT_FALSE(compared->difference);
  EXPECT_EQ(compared->packets, 10u);
  EXPECT_TRUE(compared->notes.empty());
}

TEST_F(TraceDiff, TheFirstDifferenceWithWhatSurroundsIt) {
  const auto compared =
      compare_traces(write_trace("a", 10), write_trace("b", 10, {.at = 6, .bytes = 99}), 2);
  ASSERT_TRUE(compared.ok());
  ASSERT_TRUE(compared->difference);
  const TraceDifference& difference = *compared->difference;
  EXPECT_EQ(difference.index, 6u);
  EXPECT_EQ(difference.fields, "bytes");
  EXPECT_EQ(difference.before.size(), 2u);
  ASSERT_EQ(difference.first.size(), 3u);
  ASSERT_EQ(difference.second.size(), 3u);
  EXPECT_NE(difference.first[0].find("1500 B"), std::string::npos);
  EXPECT_NE(difference.second[0].find("99 B"), std::string::npos);
  EXPECT_EQ(difference.first[1], difference.second[1]);
}

TEST_F(TraceDiff, LinksAndContentsCount) {
  const std::string a = write_trace("a", 5);
  auto compared = compare_traces(a, write_trace("b", 5, {.at = 4, .link = 3}), 2);
  ASSERT_TRUE(compared.ok() && compared->difference);
  EXPECT_EQ(compared->difference->fields, "link");
  compared = compare_traces(a, write_trace("c", 5, {.at = 0, .index = 7}), 2);
  ASSERT_TRUE(compared.ok() && compared->difference);
  EXPECT_EQ(compared->difference->fields, "contents");
  EXPECT_TRUE(compared->difference->before.empty());
}

TEST_F(TraceDiff, AShorterTraceEnds) {
  const auto compared = compare_traces(write_trace("a", 5), write_trace("b", 3), 9);
  ASSERT_TRUE(compared.ok() && compared->difference);
  EXPECT_EQ(compared->packets, 3u);
  EXPECT_EQ(compared->difference->first.size(), 2u);
  EXPECT_TRUE(compared->difference->second.empty());
}

TEST_F(TraceDiff, OtherSeedsAreANote) {
  const auto compared = compare_traces(write_trace("a", 2), write_trace("b", 2, {}, 8), 1);
  ASSERT_TRUE(compared.ok());
  EXPECT_EQ(compared->notes, std::vector<std::string>{"seed: 1 and 8"});
}

TEST_F(TraceDiff, FilesThatCannotBeReadAreErrors) {
  const std::string a = write_trace("a", 2);
  EXPECT_FALSE(compare_traces(a, path("absent"), 1).ok());
  EXPECT_FALSE(compare_traces(path("absent"), a, 1).ok());
  write("cut", read("a").substr(0, read("a").size() - 3));
  EXPECT_FALSE(compare_traces(a, path("cut"), 1).ok());
}

}  // namespace
}  // namespace leeway::sim::trace
