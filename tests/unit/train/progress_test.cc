#include "train/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace leeway::tools::train {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Captures the text that is written to `stream()`.
class CapturedStream {
 public:
  CapturedStream() : stream_(open_memstream(&text_, &size_)) {}
  ~CapturedStream() {
    std::fclose(stream_);
    std::free(text_);
  }
  CapturedStream(const CapturedStream&) = delete;
  CapturedStream& operator=(const CapturedStream&) = delete;
  std::FILE* stream() { return stream_; }
  std::string text() {
    std::fflush(stream_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

StepStatus status_at(std::uint64_t step, std::uint64_t steps) {
  return {.step = step, .steps = steps, .loss = 1.5, .step_ms = 10.0, .loss_observed = 0.0987};
}

std::string run(bool terminal, std::uint64_t steps, std::chrono::milliseconds step_time) {
  CapturedStream captured;
  Progress progress(captured.stream(), "run", terminal);
  for (std::uint64_t step = 1; step <= steps; ++step) {
    progress.on_step(status_at(step, steps), Progress::Clock::time_point(step * step_time));
  }
  progress.finish();
  return captured.text();
}

TEST(FormatProgress, NamesStepLossTimeLossOfPacketsAndWhatIsLeft) {
  EXPECT_EQ(format_progress("lossy run, seed 1", status_at(300, 1500)),
            "lossy run, seed 1: step 300/1500, loss 1.50, 10.0 ms a step, 9.87 % of packets lost, "
            "12 s left");
}

TEST(ProgressOnStep, WritesALineEveryTenthOfTheWayToAFile) {
  const std::string text = run(false, 1500, 1ms);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  EXPECT_THAT(text, HasSubstr("step 150/1500"));
  EXPECT_THAT(text, HasSubstr("step 1500/1500"));
}

TEST(ProgressOnStep, SaysNoTenthTwiceWhenMoreStepsAreExpected) {
  CapturedStream captured;
  Progress progress(captured.stream(), "run", false);
  progress.on_step(status_at(20, 100), {});
  progress.on_step(status_at(21, 120), {});
  progress.on_step(status_at(24, 120), {});
  const std::string text = captured.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(ProgressOnStep, WritesNoControlCharactersToAFile) {
  const std::string text = run(false, 100, 1ms);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(ProgressOnStep, WritesALineAStepAtMostInShortRuns) {
  const std::string text = run(false, 3, 1ms);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(ProgressOnStep, RewritesOneLineOnATerminalAFewTimesASecond) {
  const std::string text = run(true, 1000, 1ms);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  // Progress is written at 1 ms, then every 200 ms, and at the end. finish() adds one more return.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 5 + 1 + 1);
}

TEST(ProgressFinish, LeavesATerminalLineClean) {
  const std::string text = run(true, 10, 1ms);
  EXPECT_TRUE(text.ends_with("\r\x1b[K"));
}

TEST(Progress, SaysNothingWithoutAStream) {
  Progress progress(nullptr, "quiet", true);
  progress.on_step(status_at(1, 1), {});
  progress.finish();
}

}  // namespace
}  // namespace leeway::tools::train
