#include "codec/magnitude_histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace leeway::tools::codecs {
namespace {

using testing::HasSubstr;
using Limits = std::numeric_limits<float>;

MagnitudeHistogram histogram_of(const std::vector<float>& values) {
  MagnitudeHistogram histogram;
  histogram.add(values);
  return histogram;
}

TEST(MagnitudeHistogram, CountsByBinade) {
  const auto histogram = histogram_of({1.0f, -1.999f, 2.0f, 0.5f});
  EXPECT_EQ(histogram.count(0), 2u);
  EXPECT_EQ(histogram.count(1), 1u);
  EXPECT_EQ(histogram.count(-1), 1u);
  EXPECT_EQ(histogram.total(), 4u);
}

TEST(MagnitudeHistogram, KnowsTheEndsOfFloat) {
  const auto histogram =
      histogram_of({Limits::denorm_min(), 0x1p-127f, Limits::min(), Limits::max()});
  EXPECT_EQ(histogram.count(-149), 1u);
  EXPECT_EQ(histogram.count(-127), 1u);
  EXPECT_EQ(histogram.count(-126), 1u);
  EXPECT_EQ(histogram.count(127), 1u);
}

TEST(MagnitudeHistogram, EveryPowerOfTwoHasItsBinade) {
  for (int e = MagnitudeHistogram::kBinadeMin; e <= MagnitudeHistogram::kBinadeMax; ++e) {
    EXPECT_EQ(histogram_of({std::ldexp(1.0f, e)}).count(e), 1u) << e;
  }
}

TEST(MagnitudeHistogram, LeavesOutZerosAndWhatIsNotFinite) {
  const auto histogram =
      histogram_of({0.0f, -0.0f, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()});
  EXPECT_EQ(histogram.total(), 0u);
  EXPECT_EQ(histogram.magnitude_min(), 0.0f);
  EXPECT_EQ(histogram.magnitude_max(), 0.0f);
  EXPECT_TRUE(histogram_bars(histogram, 10).empty());
}

TEST(MagnitudeHistogram, FindsTheSmallestAndLargest) {
  const auto histogram = histogram_of({0.0f, -3.5f, 0.25f, 1.0f});
  EXPECT_EQ(histogram.magnitude_min(), 0.25f);
  EXPECT_EQ(histogram.magnitude_max(), 3.5f);
}

TEST(HistogramBars, OneBinadeEachWhereTheyFit) {
  const auto bars = histogram_bars(histogram_of({1.0f, 1.0f, 8.0f, 2.0f}), 4);
  ASSERT_EQ(bars.size(), 4u);
  EXPECT_EQ(bars[0].first, 0);
  EXPECT_EQ(bars[0].share, 0.5);
  EXPECT_EQ(bars[2].share, 0.0);  // between 4 and 8 there is no value
  EXPECT_EQ(bars[3].last, 3);
}

TEST(HistogramBars, NeverMoreThanAllowedAndNothingIsLost) {
  std::vector<float> values;
  for (int e = -140; e <= 120; ++e) {
    values.insert(values.end(), static_cast<std::size_t>(1 + (e + 140) % 7), std::ldexp(1.5f, e));
  }
  for (const std::size_t most : {3u, 4u, 10u, 24u, 300u}) {
    const auto bars = histogram_bars(histogram_of(values), most);
    EXPECT_LE(bars.size(), most);
    EXPECT_EQ(bars.front().first, -140);
    EXPECT_EQ(bars.back().last, 120);
    double shares = 0.0;
    for (std::size_t i = 0; i < bars.size(); ++i) {
      shares += bars[i].share;
      EXPECT_EQ(bars[i].first, i == 0 ? -140 : bars[i - 1].last + 1);
    }
    EXPECT_NEAR(shares, 1.0, 1e-12);
  }
}

TEST(HistogramBars, ThinTailsShareABar) {
  std::vector<float> values(10'000, 1.0f);
  values.insert(values.end(), 5000, 3.0f);
  values.push_back(0x1p-100f);
  values.push_back(0x1p100f);
  const auto bars = histogram_bars(histogram_of(values), 10);
  ASSERT_EQ(bars.size(), 4u);
  EXPECT_EQ(bars[0].first, -100);
  EXPECT_EQ(bars[0].last, -1);
  EXPECT_EQ(bars[1].last, 0);
  EXPECT_EQ(bars[3].first, 2);
}

TEST(HistogramText, DrawsSharesInEighthsOfACharacter) {
  const std::vector<HistogramBar> bars = {{-3, -2, 0.25}, {-1, -1, 0.5}, {0, 0, 0.0}, {1, 1, 1e-9}};
  // The indented label takes 10 columns and "   25.00 % " takes 11, so 4 of 25 are left for the
  // bar.
  EXPECT_EQ(histogram_text(bars, 25),
            "  -3 .. -2   25.00 % ██\n"
            "        -1   50.00 % ████\n"
            "         0    0.00 % \n"
            "         1    0.00 % ▏\n");
}

}  // namespace
}  // namespace leeway::tools::codecs
