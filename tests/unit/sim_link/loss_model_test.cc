#include "link/loss_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace leeway::sim {
namespace {

LossModel model(std::vector<LossOptions> any_of, std::uint64_t seed = 1, std::uint64_t link = 0) {
  return LossModel::make(any_of, seed, link).value();
}

// Returns the fates of the first packets at time 0. '#' is lost, '.' is received.
std::string fates(LossModel loss, int packets) {
  std::string text;
  for (int i = 0; i < packets; ++i) text += loss.lost(0, 100) ? '#' : '.';
  return text;
}

TEST(LossModel, LosesNothingWithoutAModel) {
  EXPECT_EQ(fates(model({}), 5), ".....");
  EXPECT_EQ(fates(model({NoLoss{}}), 5), ".....");
  EXPECT_EQ(fates(model({RandomLoss{0}}), 5), ".....");
  EXPECT_EQ(fates(model({RandomLoss{0, 0.9}}), 5), ".....");
}

TEST(LossModel, LosesEverythingWithProbabilityOne) {
  EXPECT_EQ(fates(model({RandomLoss{1}}), 5), "#####");
  EXPECT_EQ(fates(model({RandomLoss{1, 0.5}}), 5), "#####");
  EXPECT_EQ(fates(model({GilbertElliott{0, 0, 0, 1}}), 5), "#####");
  EXPECT_EQ(fates(model({BurstLoss{1, 3}}), 5), "#####");
}

TEST(LossModel, LosesTheLastOfEveryN) {
  EXPECT_EQ(fates(model({EveryLoss{3}}), 9), "..#..#..#");
  EXPECT_EQ(fates(model({EveryLoss{1}}), 3), "###");
}

TEST(LossModel, LosesTheListedNumbersCountedFromZero) {
  EXPECT_EQ(fates(model({ListLoss{{0, 1, 5}}}), 8), "##...#..");
}

TEST(LossModel, RepeatsATrace) {
  EXPECT_EQ(fates(model({TraceLoss{{true, false, false, true}}}), 10), "#..##..##.");
}

TEST(LossModel, LosesWhileTheLinkIsDown) {
  LossModel loss = model({WindowLoss{{{10, 20}, {20, 21}, {30, 40}}}});
  std::string text;
  for (const std::int64_t now : {0, 9, 10, 10, 19, 20, 21, 29, 39, 40, 100}) {
    text += loss.lost(now, 1) ? '#' : '.';
  }
  EXPECT_EQ(text, "..####..#..");
}

TEST(LossModel, SkipsWindowsInWhichNothingWasSent) {
  LossModel loss = model({WindowLoss{{{10, 20}, {30, 40}, {50, 60}}}});
  EXPECT_FALSE(loss.lost(0, 1));
  EXPECT_TRUE(loss.lost(55, 1));
}

TEST(LossModel, LosesPacketsAboveTheSizeLimit) {
  LossModel loss = model({SizeLoss{1400}});
  EXPECT_FALSE(loss.lost(0, 1400));
  EXPECT_TRUE(loss.lost(0, 1401));
}

TEST(LossModel, LosesWhatAnyOfSeveralLoses) {
  EXPECT_EQ(fates(model({EveryLoss{2}, EveryLoss{3}}), 6), ".###.#");
}

// Like netem, the model draws the good state's loss before it leaves that state, so the first
// packet is never a bad one.
TEST(LossModel, GilbertElliottStartsGoodAndLosesBeforeItMoves) {
  EXPECT_EQ(fates(model({GilbertElliott{1, 1, 1, 0}}), 6), ".#.#.#");
  EXPECT_EQ(fates(model({GilbertElliott{1, 0, 1, 0}}), 6), ".#####");
}

// Like netem, the model changes its state before every packet, so the first may be lost.
TEST(LossModel, FourStatesMoveBeforeEveryPacket) {
  EXPECT_EQ(fates(model({FourState{1, 0, 1, 1, 0}}), 6), "#.#.#.");
  EXPECT_EQ(fates(model({FourState{1, 1, 0, 1, 0}}), 6), "#.#.#.");
  EXPECT_EQ(fates(model({FourState{0, 1, 0, 1, 1}}), 6), "#.#.#.");
  EXPECT_EQ(fates(model({FourState{1, 0, 0, 1, 0}}), 6), "######");
  EXPECT_EQ(fates(model({FourState{1, 0, 1, 0, 0}}), 6), "#.....");
}

// In doubles, 1 - 0.9 - 0.1 is below zero.
TEST(LossModel, TakesExitsThatSumToOneButForRounding) {
  EXPECT_EQ(fates(model({FourState{0.9, 0.1, 0.9, 1, 0.1}}), 1), "#");
}

TEST(LossModel, RepeatsItselfForTheSameSeedAndLink) {
  const std::vector<LossOptions> half = {RandomLoss{0.5}};
  EXPECT_EQ(fates(model(half, 1, 2), 100), fates(model(half, 1, 2), 100));
  EXPECT_NE(fates(model(half, 1, 2), 100), fates(model(half, 2, 2), 100));
  EXPECT_NE(fates(model(half, 1, 2), 100), fates(model(half, 1, 3), 100));
}

// Recorded runs depend on these values.
TEST(LossModel, LosesTheSamePacketsOnEveryMachine) {
  EXPECT_EQ(fates(model({RandomLoss{0.25}}, 3, 4), 40), "................#..#.#...#.....#........");
  EXPECT_EQ(fates(model({RandomLoss{0.5, 0.5}}, 3, 4), 40),
            ".######.....####.###..#........####.#.##");
  EXPECT_EQ(fates(model({GilbertElliott{0.2, 0.3, 0.8, 0.1}}, 3, 4), 40),
            "....##.#.....##.##..#.....#######.....#.");
  EXPECT_EQ(fates(model({FourState{0.1, 0.2, 0.3, 0.5, 0.1}}, 3, 4), 40),
            "....#.#..#..............#.##.##..###.#..");
}

TEST(LossModel, KeepsTheFatesOfOneModelWhenAnotherIsAdded) {
  const std::string alone = fates(model({RandomLoss{0.3}}), 200);
  const std::string joined = fates(model({RandomLoss{0.3}, RandomLoss{0.3}}), 200);
  int more = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_TRUE(alone[i] == '.' || joined[i] == '#') << "packet " << i;
    more += alone[i] != joined[i];
  }
  EXPECT_GT(more, 20);  // 42 are expected if the two are independent
}

struct Refusal {
  LossOptions options;
  std::string names;  // text that the error must contain
};

TEST(CheckLoss, NamesTheParameterItsValueAndItsRange) {
  const std::vector<Refusal> refusals = {
      {RandomLoss{1.5}, "random.loss=1.5: a probability lies between 0 and 1"},
      {RandomLoss{0.1, -1}, "random.correlation=-1"},
      {RandomLoss{std::nan("")}, "random.loss=nan"},
      {GilbertElliott{2, 0, 0, 0}, "gilbert_elliott.p=2"},
      {GilbertElliott{0, 2, 0, 0}, "gilbert_elliott.r=2"},
      {GilbertElliott{0, 0, 2, 0}, "gilbert_elliott.one_minus_h=2"},
      {GilbertElliott{0, 0, 0, 2}, "gilbert_elliott.one_minus_k=2"},
      {FourState{-1, 0, 0, 0, 0}, "four_state.p13=-1"},
      {FourState{0, -1, 0, 0, 0}, "four_state.p31=-1"},
      {FourState{0, 0, -1, 0, 0}, "four_state.p32=-1"},
      {FourState{0, 0, 0, -1, 0}, "four_state.p23=-1"},
      {FourState{0, 0, 0, 0, -1}, "four_state.p14=-1"},
      {FourState{0.6, 0, 0, 0, 0.6}, "four_state p13+p14=1.2: the exits"},
      {FourState{0, 0.6, 0.6, 0, 0}, "four_state p31+p32=1.2: the exits"},
      {BurstLoss{0.1, 0.5}, "bursts.burst=0.5: a mean burst is 1 to 1e+06 packets"},
      {BurstLoss{0.1, std::nan("")}, "bursts.burst=nan"},
      {BurstLoss{-0.1, 2}, "bursts.loss=-0.1"},
      {EveryLoss{0}, "every.n=0: expected 1 to 18446744073709551615"},
      {ListLoss{{3, 3}}, "list.numbers[1]=3: expected more than 3"},
      {WindowLoss{{{5, 5}}}, "windows[0]=5 to 5 ns"},
      {WindowLoss{{{5, 9}, {8, 12}}}, "windows[1]=8 to 12 ns: expected a start of 9 or later"},
      {WindowLoss{{{-5, 9}}}, "windows[0]=-5 to 9 ns"},
      {TraceLoss{}, "trace.lost is empty"},
      {SizeLoss{0}, "size.max_bytes=0: expected 1 to 4294967295"}};
  for (const auto& [options, names] : refusals) {
    const Status status = check_loss(options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << names;
    EXPECT_NE(std::string(status.text()).find(names), std::string::npos)
        << status.text() << " instead of " << names;
    EXPECT_FALSE(LossModel::make({&options, 1}, 0, 0).ok()) << names;
  }
}

TEST(CheckLoss, TakesTheEndsOfEveryRange) {
  EXPECT_TRUE(check_loss(RandomLoss{1, 1}).ok());
  EXPECT_TRUE(check_loss(GilbertElliott{1, 1, 1, 1}).ok());
  EXPECT_TRUE(check_loss(FourState{0.5, 0.5, 0.5, 1, 0.5}).ok());
  EXPECT_TRUE(check_loss(BurstLoss{1, kBurstMax}).ok());
  EXPECT_TRUE(check_loss(WindowLoss{{{0, 5}, {5, 6}}}).ok());
}

TEST(LossModel, AnotherLinksModelIsTheOneThatMakeGives) {
  const std::vector<LossOptions> all = {RandomLoss{0.1, 0},
                                        RandomLoss{0.2, 0.5},
                                        GilbertElliott{0.1, 0.3, 0.9, 0.01},
                                        EveryLoss{7},
                                        ListLoss{{3, 50}},
                                        WindowLoss{{{100, 120}}},
                                        SizeLoss{900},
                                        TraceLoss{{false, false, true}}};
  const LossModel pattern = LossModel::make(all, 0, 0).value();
  for (const LossOptions& one : all) {
    const LossModel single = LossModel::make({&one, 1}, 0, 0).value();
    LossModel made = LossModel::make({&one, 1}, 5, 9).value();
    LossModel again = single.for_link(5, 9);
    for (int i = 0; i < 500; ++i) EXPECT_EQ(again.lost(i, 800), made.lost(i, 800));
  }
  LossModel made = LossModel::make(all, 5, 9).value();
  LossModel again = pattern.for_link(5, 9);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(again.lost(i, 800), made.lost(i, 800));
}

}  // namespace
}  // namespace leeway::sim
