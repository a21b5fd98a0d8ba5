#include "train/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "train/sharded_adam.h"

namespace leeway::tools::train {
namespace {

constexpr GptShape kShape{.vocabulary = 13, .context = 12, .layers = 2, .width = 32, .heads = 2};

// Makes a pattern that can be learned: every token is its predecessor plus three.
std::vector<std::int64_t> windows_of(std::size_t count) {
  std::vector<std::int64_t> windows;
  for (std::size_t w = 0; w < count; ++w) {
    for (std::int64_t i = 0; i <= kShape.context; ++i) {
      windows.push_back((static_cast<std::int64_t>(w * 5) + 3 * i) % kShape.vocabulary);
    }
  }
  return windows;
}

TEST(GptParameters, HaveTheCountOfTheArchitecture) {
  Gpt model(kShape, 1);
  const std::size_t w = 32, vocabulary = 13;
  const std::size_t block =
      2 * w + (3 * w * w + 3 * w) + (w * w + w) + 2 * w + (4 * w * w + 4 * w) + (4 * w * w + w);
  EXPECT_EQ(model.parameters().size(),
            vocabulary * w + 2 * block + 2 * w + vocabulary * w + vocabulary);
  EXPECT_EQ(model.gradient().size(), model.parameters().size());
}

TEST(GptParameters, DependOnTheSeedOnly) {
  Gpt one(kShape, 7), same(kShape, 7), other(kShape, 8);
  EXPECT_TRUE(std::ranges::equal(one.parameters(), same.parameters()));
  EXPECT_FALSE(std::ranges::equal(one.parameters(), other.parameters()));
}

TEST(GptMeanLoss, StartsAtTheLogarithmOfTheVocabulary) {
  Gpt model(kShape, 1);
  EXPECT_NEAR(model.mean_loss(windows_of(8)), std::log(13.0), 0.1);
}

TEST(GptMeanLoss, IsTheMeanOverWindows) {
  Gpt model(kShape, 1);
  const auto windows = windows_of(4);
  const std::span all(windows);
  const std::size_t half = windows.size() / 2;
  EXPECT_NEAR(model.mean_loss(all),
              0.5 * (model.mean_loss(all.first(half)) + model.mean_loss(all.last(half))), 1e-5);
}

TEST(GptMeanLoss, DoesNotLookAhead) {
  // A model with equal parameters and a context shorter by one gives the losses of all predictions
  // but the last. If more text does not change these, the rest is -ln P(last token), and these P
  // must sum up to one.
  GptShape shorter = kShape;
  shorter.context -= 1;
  Gpt model(kShape, 3), prefix_model(shorter, 3);
  ASSERT_TRUE(std::ranges::equal(model.parameters(), prefix_model.parameters()));
  std::vector<std::int64_t> window = windows_of(1);
  const double prefix_nats =
      shorter.context * prefix_model.mean_loss(std::span(window).first(window.size() - 1));
  double probability = 0;
  for (std::int64_t token = 0; token < kShape.vocabulary; ++token) {
    window.back() = token;
    probability += std::exp(prefix_nats - kShape.context * model.mean_loss(window));
  }
  EXPECT_NEAR(probability, 1.0, 1e-4);
}

TEST(GptParameters, WritingToTheFlatRangeChangesTheModel) {
  Gpt model(kShape, 1);
  const auto windows = windows_of(4);
  const double before = model.mean_loss(windows);
  // The last tensor is the head's biases. One very likely token makes the loss of the others large.
  model.parameters().back() += 50.0F;
  EXPECT_GT(model.mean_loss(windows), before + 10.0);
  model.parameters().back() -= 50.0F;
  EXPECT_NEAR(model.mean_loss(windows), before, 1e-5);
}

TEST(GptComputeGradient, FillsTheFlatGradientAndForgetsTheLastOne) {
  Gpt model(kShape, 1);
  const auto windows = windows_of(4);
  model.compute_gradient(windows);
  const std::vector<float> first(model.gradient().begin(), model.gradient().end());
  EXPECT_TRUE(std::ranges::any_of(first, [](float g) { return g != 0.0F; }));
  const float* const data = model.gradient().data();
  model.compute_gradient(windows);
  EXPECT_EQ(model.gradient().data(), data);
  EXPECT_TRUE(std::ranges::equal(model.gradient(), first));
}

TEST(GptComputeGradient, IsTheDerivativeOfTheLoss) {
  // Takes the derivative along the gradient itself, where float32 differences are most accurate.
  Gpt model(kShape, 5);
  const auto windows = windows_of(6);
  model.compute_gradient(windows);
  const std::vector<float> gradient(model.gradient().begin(), model.gradient().end());
  const std::vector<float> start(model.parameters().begin(), model.parameters().end());
  double square = 0;
  for (const float g : gradient) square += static_cast<double>(g) * g;
  const auto loss_at = [&](double distance) {
    for (std::size_t i = 0; i < start.size(); ++i) {
      model.parameters()[i] =
          start[i] + static_cast<float>(distance * gradient[i] / std::sqrt(square));
    }
    return model.mean_loss(windows);
  };
  constexpr double kStep = 1e-2;
  EXPECT_NEAR((loss_at(kStep) - loss_at(-kStep)) / (2 * kStep), std::sqrt(square),
              0.01 * std::sqrt(square));
}

TEST(GptComputeGradient, OfAllWindowsIsTheMeanOfTheParts) {
  // Data-parallel training depends on this property.
  Gpt model(kShape, 2);
  const auto windows = windows_of(4);
  const std::size_t half = windows.size() / 2;
  const auto gradient_of = [&](std::span<const std::int64_t> part) {
    model.compute_gradient(part);
    return std::vector<float>(model.gradient().begin(), model.gradient().end());
  };
  const auto all = gradient_of(windows);
  const auto left = gradient_of(std::span(windows).first(half));
  const auto right = gradient_of(std::span(windows).last(half));
  for (std::size_t i = 0; i < all.size(); ++i)
    ASSERT_NEAR(all[i], 0.5F * (left[i] + right[i]), 1e-5F) << i;
}

TEST(GptAddGradient, SumsTheMicroBatchesOfAStep) {
  Gpt model(kShape, 2);
  const auto windows = windows_of(4);
  const std::size_t half = windows.size() / 2;
  const auto go_on = [] { return false; };
  const double all = model.compute_gradient(windows);
  const std::vector<float> mean(model.gradient().begin(), model.gradient().end());
  model.clear_gradient();
  const auto left = model.add_gradient(std::span(windows).first(half), go_on);
  const auto right = model.add_gradient(std::span(windows).last(half), go_on);
  ASSERT_TRUE(left && right);
  EXPECT_NEAR(*left + *right, 2.0 * all, 1e-5);
  for (std::size_t i = 0; i < mean.size(); ++i)
    ASSERT_NEAR(model.gradient()[i], 2.0F * mean[i], 2e-5F) << i;
}

TEST(GptAddGradient, AddsNothingWhereItIsAbandoned) {
  Gpt model(kShape, 2);
  const auto windows = windows_of(2);
  model.compute_gradient(windows);
  const std::vector<float> before(model.gradient().begin(), model.gradient().end());
  EXPECT_FALSE(model.add_gradient(windows, [] { return true; }).has_value());
  EXPECT_TRUE(std::ranges::equal(model.gradient(), before));
}

TEST(Gpt, LearnsAPatternWithTheFlatOptimizer) {
  use_one_compute_thread();
  Gpt model(kShape, 1);
  ShardedAdam adam(model.parameters().size());
  const auto windows = windows_of(8);
  constexpr std::uint64_t kSteps = 80;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    model.compute_gradient(windows);
    adam.step(model.parameters(), model.gradient(), learning_rate_at(step, kSteps, 1e-2));
  }
  EXPECT_LT(model.mean_loss(windows), 0.1);
}

}  // namespace
}  // namespace leeway::tools::train
