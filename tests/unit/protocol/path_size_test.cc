#include "protocol/path_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

constexpr Duration kRtt = 10ms;
constexpr Duration kTimeout = 15ms;

// A path that carries datagrams of up to `carries_` bytes, and answers probes a round trip later.
class PathSizeTest : public ::testing::Test {
 protected:
  void make(const SizeLimits& limits) { size_.configure(limits); }

  // Sends the probes that are due for `time`. Returns their lengths.
  std::vector<std::size_t> pass(Duration time) {
    std::vector<std::size_t> sent;
    for (const Instant end = now_ + time; now_ < end; now_ = now_ + Duration(1ms)) {
      while (size_.wake_at() <= now_) {
        const auto probe = size_.poll(now_, kTimeout);
        if (!probe) continue;
        sent.push_back(probe->bytes);
        if (probe->bytes <= carries_) answers_.push_back({now_ + kRtt, *probe});
      }
      while (!answers_.empty() && answers_.front().first <= now_) {
        EXPECT_TRUE(
            size_.on_answer(now_, answers_.front().second.number, answers_.front().second.bytes));
        answers_.erase(answers_.begin());
      }
    }
    return sent;
  }

  // Sends a train of `longs` long datagrams and a short one, and reports how many arrive.
  void train(std::uint32_t longs, std::uint32_t longs_arrive, std::uint32_t shorts_arrive = 1) {
    last_ += longs + 1;
    size_.on_sent(last_, longs + 1, 1472, 40);
    now_ = now_ + kRtt;
    size_.on_report(now_,
                    {last_, longs_arrive + shorts_arrive, longs_arrive * 1472 + shorts_arrive * 40},
                    kRtt);
  }

  Instant now_{1'000'000'000};
  std::size_t carries_ = 9000;
  PathSize size_;
  std::vector<std::pair<Instant, SizeProbe>> answers_;
  std::uint32_t last_ = 0;
};

TEST_F(PathSizeTest, IsUnlimitedWhereNothingIsMeasured) {
  make({});
  size_.begin(now_);
  EXPECT_EQ(size_.bytes(), SIZE_MAX);
  EXPECT_TRUE(size_.settled());
  EXPECT_TRUE(pass(1s).empty());
}

TEST_F(PathSizeTest, AShortInterfaceHasNothingToSearch) {
  make({.most = 1100});
  size_.begin(now_);
  EXPECT_EQ(size_.bytes(), 1100u);
  EXPECT_TRUE(size_.settled());
  EXPECT_TRUE(pass(1s).empty());
}

TEST_F(PathSizeTest, OneProbeFindsThatTheInterfacesLengthPasses) {
  make({.most = 1472});
  EXPECT_EQ(size_.bytes(), 1200u);
  EXPECT_FALSE(size_.settled());
  EXPECT_TRUE(pass(1s).empty()) << "nothing has been heard";
  size_.begin(now_);
  EXPECT_EQ(pass(100ms), std::vector<std::size_t>{1472});
  EXPECT_EQ(size_.bytes(), 1472u);
  EXPECT_TRUE(size_.settled());
  EXPECT_EQ(size_.wake_at(), Instant::infinite_future());
}

TEST_F(PathSizeTest, TriesEveryLengthThreeTimesAndRests) {
  make({.most = 8972});
  carries_ = 1460;
  size_.begin(now_);
  std::vector<std::size_t> sent = pass(200ms);
  const std::vector<std::size_t> first = {8972, 548, 952, 1200, 1400, 1452, 1472, 4000, 8972};
  EXPECT_EQ(std::vector<std::size_t>(sent.begin(), sent.begin() + 9), first);
  EXPECT_EQ(std::count(sent.begin(), sent.end(), 548u), 1) << "the base has passed";
  EXPECT_EQ(std::count(sent.begin(), sent.end(), 1472u), 3);
  EXPECT_EQ(std::count(sent.begin(), sent.end(), 8972u), 4) << "the first one alone";
  EXPECT_EQ(size_.bytes(), 1452u);
  EXPECT_TRUE(size_.settled());
  EXPECT_TRUE(pass(500s).empty());
}

TEST_F(PathSizeTest, APathMayCarryLessThanTheBase) {
  for (const auto& [carries, found] : {std::pair(972u, 952u), {600u, 548u}}) {
    size_ = PathSize();
    make({.most = 1472});
    carries_ = carries;
    size_.begin(now_);
    pass(200ms);
    EXPECT_TRUE(size_.settled());
    EXPECT_FALSE(size_.too_narrow());
    EXPECT_EQ(size_.bytes(), found);
    EXPECT_EQ(size_.base(), found);
    carries_ = 1472;
    pass(600s);
    EXPECT_EQ(size_.bytes(), 1472u);
  }
}

TEST_F(PathSizeTest, APathThatCarriesNothingUsefulIsTooNarrow) {
  make({.most = 1472});
  carries_ = 300;
  size_.begin(now_);
  EXPECT_FALSE(size_.too_narrow()) << "nothing has been asked";
  for (int i = 0; i < 10; ++i) {
    pass(20ms);
    train(/*longs=*/0, /*longs_arrive=*/0);
  }
  EXPECT_TRUE(size_.settled());
  EXPECT_TRUE(size_.too_narrow());
}

// A process that is stopped, or has no thread or descriptor left, answers no probe of any length.
TEST_F(PathSizeTest, SilenceSaysNothingOfLengths) {
  make({.most = 1472});
  carries_ = 0;
  size_.begin(now_);
  const std::size_t early = pass(2s).size();
  EXPECT_LT(pass(2s).size(), early / 2) << "pauses grow";
  EXPECT_FALSE(size_.settled());
  EXPECT_FALSE(size_.too_narrow());
  carries_ = 1472;
  pass(2s);
  EXPECT_EQ(size_.bytes(), 1472u);
}

TEST_F(PathSizeTest, LengthsAreLessWhatASealAdds) {
  make({.most = 1440, .around = 32});
  EXPECT_EQ(size_.bytes(), 1168u);
  carries_ = 1430;
  size_.begin(now_);
  pass(200ms);
  EXPECT_EQ(size_.bytes(), 1420u) << "1,452 less 32";
}

// A relay adds 44 bytes to each datagram, so all lengths become 44 less while it is used.
TEST_F(PathSizeTest, ThroughARelayLengthsAreLessWhatItAdds) {
  make({.most = 1440, .around = 32});
  size_.begin(now_);
  pass(1s);
  ASSERT_EQ(size_.bytes(), 1440u);
  carries_ = 1440 - 44;
  size_.begin_anew(now_, 44);
  EXPECT_EQ(size_.bytes(), 1200u - 32 - 44);
  const auto sent = pass(1s);
  EXPECT_EQ(size_.bytes(), 1440u - 44);
  for (const std::size_t bytes : sent) EXPECT_LE(bytes, 1440u - 44);
  size_.begin_anew(now_, 0);
  EXPECT_EQ(size_.base(), 1200u - 32);
  carries_ = 1440;
  pass(1s);
  EXPECT_EQ(size_.bytes(), 1440u);
}

// A path limited to 1,168 bytes needs no search, but its datagrams must still fit the relay.
TEST_F(PathSizeTest, ThroughARelayAShortInterfaceCarriesLess) {
  make({.most = 1168, .around = 32});
  size_.begin(now_);
  size_.begin_anew(now_, 44);
  EXPECT_EQ(size_.bytes(), 1124u);
  EXPECT_TRUE(pass(1s).empty());
  size_.begin_anew(now_, 0);
  EXPECT_EQ(size_.bytes(), 1168u);
}

// A length of 8,972 bytes must be found within 600 s after the network has become wider.
TEST_F(PathSizeTest, ANetworkThatBecomesWiderIsFoundByTheRaiseTimer) {
  make({.most = 8972});
  carries_ = 1472;
  size_.begin(now_);
  pass(1s);
  EXPECT_EQ(size_.bytes(), 1472u);
  carries_ = 8972;
  pass(600s);
  EXPECT_EQ(size_.bytes(), 8972u);
}

TEST_F(PathSizeTest, LossOfProbesCostsATry) {
  make({.most = 1472});
  carries_ = 0;
  size_.begin(now_);
  pass(20ms);
  carries_ = 1472;
  pass(100ms);
  EXPECT_EQ(size_.bytes(), 1472u);
}

TEST_F(PathSizeTest, BelievesNoAnswerToWhatWasNotAsked) {
  make({.most = 1472});
  EXPECT_FALSE(size_.on_answer(now_, 1, 1472));
  size_.begin(now_);
  const auto probe = size_.poll(now_, kTimeout);
  ASSERT_TRUE(probe);
  EXPECT_FALSE(size_.on_answer(now_, probe->number + 1, 1472));
  EXPECT_TRUE(size_.on_answer(now_, probe->number - 1, 1472)) << "of an earlier search";
  EXPECT_FALSE(size_.on_answer(now_, probe->number, 9000));
  EXPECT_EQ(size_.bytes(), 1200u);
  EXPECT_TRUE(size_.on_answer(now_, probe->number, 1472));
}

// Since the probe was sent, the path may lead through a relay, where lengths are shorter.
TEST_F(PathSizeTest, ALateAnswerToWhatIsTooLongNowIsNoForgery) {
  make({.most = 1472});
  size_.begin(now_);
  const auto probe = size_.poll(now_, kTimeout);
  ASSERT_TRUE(probe);
  size_.begin_anew(now_, 44);
  EXPECT_TRUE(size_.on_answer(now_, probe->number, probe->bytes));
  EXPECT_LE(size_.bytes(), 1200u);
}

class BlackHole : public PathSizeTest {
 protected:
  void SetUp() override {
    make({.most = 1472});
    size_.begin(now_);
    pass(100ms);
    EXPECT_EQ(size_.bytes(), 1472u);
    carries_ = 1300;
  }
};

TEST_F(BlackHole, IsFoundAsSoonAsThreeShortOnesHaveArrived) {
  train(20, 0);
  train(20, 0);
  EXPECT_EQ(size_.bytes(), 1472u) << "two short datagrams say too little";
  train(20, 0);
  EXPECT_EQ(size_.bytes(), 1200u);
  EXPECT_EQ(size_.falls(), 1u);
  EXPECT_EQ(size_.take_lost_for_length(), 60u);
  pass(100ms);
  EXPECT_EQ(size_.bytes(), 1200u) << "1,400 does not pass";
  EXPECT_TRUE(size_.settled());
}

TEST_F(BlackHole, IsSearchedAgainAtOnce) {
  carries_ = 1472;
  for (int i = 0; i < 3; ++i) train(20, 0);
  EXPECT_EQ(size_.bytes(), 1200u);
  pass(100ms);
  EXPECT_EQ(size_.bytes(), 1472u) << "it was a mistake";
}

TEST_F(BlackHole, OneLongDatagramThatArrivesIsEnough) {
  for (int i = 0; i < 20; ++i) train(20, i % 2);
  EXPECT_EQ(size_.bytes(), 1472u);
}

TEST_F(BlackHole, CopiesOfShortOnesAreNoLongOnes) {
  for (int i = 0; i < 20; ++i) train(1, 0, 2);
  EXPECT_EQ(size_.bytes(), 1200u);
  EXPECT_EQ(size_.falls(), 1u);
}

// Many copies in one report sum up to more bytes than one long datagram. They must neither look
// like a long datagram that arrived, nor hide that long ones are lost.
TEST_F(BlackHole, ManyCopiesAreNoLongOnesAndHideNone) {
  const auto burst = [&](std::uint32_t shorts, std::uint32_t arrive) {
    last_ += shorts;
    size_.on_sent(last_, shorts, 40, 40);
    train(3, 0, arrive);
  };
  burst(39, 50);
  EXPECT_EQ(size_.bytes(), 1472u);
  for (int i = 0; i < 4; ++i) burst(39, 40);
  EXPECT_EQ(size_.bytes(), 1200u);
}

TEST_F(BlackHole, SilenceIsNone) {
  for (int i = 0; i < 20; ++i) train(20, 0, 0);
  EXPECT_EQ(size_.bytes(), 1472u);
  EXPECT_EQ(size_.take_lost_for_length(), 0u);
}

TEST_F(BlackHole, AFewLostOnesAreNone) {
  for (int i = 0; i < 3; ++i) train(3, 0);
  EXPECT_EQ(size_.bytes(), 1472u);
  train(0, 0);
  EXPECT_EQ(size_.bytes(), 1472u);
  train(1, 0);
  EXPECT_EQ(size_.bytes(), 1200u) << "the tenth in a row";
}

TEST_F(BlackHole, ThreeLostOnesAreLookedInto) {
  train(3, 0);
  EXPECT_EQ(size_.bytes(), 1472u);
  const std::vector<std::size_t> sent = pass(3 * kTimeout + 5ms);
  EXPECT_EQ(std::vector<std::size_t>(sent.begin(), sent.begin() + 3),
            (std::vector<std::size_t>{1472, 1472, 1472}));
  EXPECT_EQ(size_.bytes(), 1200u);
}

TEST_F(BlackHole, ASuspicionThatAProbeRefutesIsDropped) {
  carries_ = 1472;
  for (int i = 0; i < 5; ++i) {
    train(3, 0);
    EXPECT_EQ(pass(60ms), std::vector<std::size_t>{1472});
    EXPECT_TRUE(size_.settled());
  }
  EXPECT_EQ(size_.bytes(), 1472u);
  EXPECT_EQ(size_.falls(), 0u);
}

TEST_F(BlackHole, AReportThatCutsATrainInTwoIsCountedRight) {
  last_ += 10;
  size_.on_sent(last_, 10, 1472, 1472);
  now_ = now_ + kRtt;
  size_.on_report(now_, {last_ - 6, 1, 1472}, kRtt);  // reports the first four; one arrived
  last_ += 3;
  size_.on_sent(last_, 3, 40, 40);
  now_ = now_ + kRtt;
  size_.on_report(now_, {last_, 3, 120}, kRtt);  // reports that six long ones were lost
  EXPECT_EQ(size_.bytes(), 1472u);
  train(4, 0);
  EXPECT_EQ(size_.bytes(), 1200u);
}

TEST_F(BlackHole, TheSystemsRefusalIsBelievedAtOnceOfWhatHadPassed) {
  size_.on_refused(now_, 1473);
  EXPECT_EQ(size_.bytes(), 1472u) << "that was a probe's length";
  size_.on_refused(now_, 1472);
  EXPECT_EQ(size_.bytes(), 1200u);
  EXPECT_EQ(pass(10ms).size(), 6u) << "and it is searched again at once";
}

}  // namespace
}  // namespace leeway::protocol
