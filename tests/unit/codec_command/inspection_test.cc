#include "codec/inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numbers>

#include "codec/standard_data.h"

namespace leeway::tools::codecs {
namespace {

Result<Inspection> inspection_of(const std::vector<float>& values) {
  const std::string path = testing::TempDir() + "/leeway_inspection_" +
                           testing::UnitTest::GetInstance()->current_test_info()->name();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(float)));
  auto source = FloatSource::open(path);
  auto inspection = inspect(*source, path, {{0.5, 0.9}, 4}, [](const std::string&) {});
  std::filesystem::remove(path);
  return inspection;
}

const FormatError& error_of(const Inspection& inspection, const std::string& codec) {
  return *std::find_if(inspection.formats.begin(), inspection.formats.end(),
                       [&](const FormatError& format) { return format.codec == codec; });
}

TEST(Inspect, FindsTheSpreadOfALognormal) {
  const auto inspection = inspection_of(lognormal_values(1 << 15, 2.0, 3));
  ASSERT_TRUE(inspection.ok());
  // The tolerances are five standard errors. With sigma = 2 / ln 2 and n = 2^15, the standard error
  // of the mean is sigma/sqrt(n) = 0.016, and that of the estimated sigma is sigma/sqrt(2n) =
  // 0.011.
  EXPECT_NEAR(inspection->fit.mean_log2(), 0.0, 0.08);
  EXPECT_NEAR(inspection->fit.sigma_log2(), 2.0 / std::numbers::ln2, 0.06);
}

TEST(Inspect, PredictionHoldsForALognormal) {
  const auto inspection = inspection_of(lognormal_values(1 << 15, 1.0, 3));
  ASSERT_TRUE(inspection.ok());
  for (const FormatError& format : inspection->formats) {
    if (format.nearest) {
      EXPECT_NEAR(*format.nearest, *format.nearest_predicted, 1.0) << format.codec;
    }
    EXPECT_NEAR(*format.stochastic, *format.stochastic_predicted, 1.0) << format.codec;
  }
}

TEST(Inspect, FormatsStandByTheirBits) {
  const auto inspection = inspection_of(normal_values(4096, 1));
  EXPECT_TRUE(std::is_sorted(inspection->formats.begin(), inspection->formats.end(),
                             [](const auto& a, const auto& b) { return a.bits < b.bits; }));
}

TEST(Inspect, NonFiniteElementsAreCountedAndOtherwiseLeftOut) {
  auto values = normal_values(1 << 14, 1);
  const auto clean = inspection_of(values);
  values.push_back(std::numeric_limits<float>::infinity());
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  const auto inspection = inspection_of(values);
  EXPECT_EQ(inspection->fit.non_finite(), 2.0);
  EXPECT_NEAR(*error_of(*inspection, "nvfp4").nearest, *error_of(*clean, "nvfp4").nearest, 0.01);
}

TEST(Inspect, ZerosHaveNoErrorToSpeakOf) {
  const auto inspection = inspection_of(std::vector<float>(1000, 0.0f));
  ASSERT_TRUE(inspection.ok());
  EXPECT_EQ(inspection->fit.zeros(), 1000.0);
  for (const FormatError& format : inspection->formats) {
    EXPECT_FALSE(format.stochastic.has_value()) << format.codec;
  }
  EXPECT_TRUE(inspection->pruning.empty());
}

TEST(Inspect, OverflowOfHalfIsNoRatio) {
  auto values = normal_values(4096, 1);
  values[7] = 1e6f;
  const auto inspection = inspection_of(values);
  EXPECT_FALSE(error_of(*inspection, "fp16").nearest.has_value());
  EXPECT_TRUE(error_of(*inspection, "bf16").nearest.has_value());
}

TEST(Inspect, PruningThresholdPrunesWhatIsWanted) {
  const auto values = lognormal_values(1 << 15, 1.0, 5);
  const auto inspection = inspection_of(values);
  ASSERT_EQ(inspection->pruning.size(), 2u);
  for (const PruningPoint& point : inspection->pruning) {
    double zeros =
        0.0;  // expected value: |x| below the threshold survives with probability |x|/threshold
    for (const float x : values) zeros += std::max(0.0, 1.0 - std::abs(x) / point.threshold);
    EXPECT_NEAR(zeros / static_cast<double>(values.size()), point.sparsity, 0.02);
  }
}

TEST(Inspect, WeakerGradientsGetMoreBits) {
  const auto inspection = inspection_of(normal_values(1 << 14, 1));
  ASSERT_EQ(inspection->automatic.size(), 4u);
  EXPECT_EQ(inspection->automatic.front().codec, "nvfp4");
  EXPECT_NE(inspection->automatic.back().codec, "nvfp4");
}

TEST(Inspect, AnEmptyFileIsRefused) {
  const auto inspection = inspection_of({});
  ASSERT_FALSE(inspection.ok());
  EXPECT_THAT(std::string(inspection.status().text()), testing::HasSubstr("is empty"));
}

TEST(BestFormat, IsTheLeastErrorWithinTheBits) {
  const std::vector<FormatError> formats = {{"a", 4.0, 10.0, std::nullopt, {}, {}},
                                            {"b", 4.5, 20.0, 8.0, {}, {}},
                                            {"c", 8.0, 30.0, 7.0, {}, {}}};
  EXPECT_EQ(best_format(formats, 4.5, &FormatError::nearest), 1u);
  EXPECT_EQ(best_format(formats, 16.0, &FormatError::nearest), 2u);
  EXPECT_EQ(best_format(formats, 16.0, &FormatError::stochastic), 1u);
  EXPECT_EQ(best_format(formats, 4.0, &FormatError::stochastic), std::nullopt);
}

}  // namespace
}  // namespace leeway::tools::codecs
