#include "rendezvous/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace leeway::rendezvous {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ParseLogLevel, KnowsEveryName) {
  EXPECT_EQ(*parse_log_level("trace"), LogLevel::trace);
  EXPECT_EQ(*parse_log_level("debug"), LogLevel::debug);
  EXPECT_EQ(*parse_log_level("info"), LogLevel::info);
  EXPECT_EQ(*parse_log_level("warn"), LogLevel::warn);
  EXPECT_EQ(*parse_log_level("error"), LogLevel::error);
  EXPECT_EQ(*parse_log_level("off"), LogLevel::off);
}

TEST(ParseLogLevel, QuotesWhatItDoesNotKnow) {
  const auto level = parse_log_level("WARN");
  ASSERT_FALSE(level.ok());
  EXPECT_THAT(level.status().c_str(), HasSubstr("\"WARN\""));
}

TEST(LogLimiter, PrintsTenLinesASecondAndCountsTheRest) {
  LogLimiter limiter;
  Instant now{0};
  for (int line = 0; line < 10; ++line) EXPECT_TRUE(limiter.admit("loss", now).print) << line;
  for (int line = 0; line < 7; ++line) EXPECT_FALSE(limiter.admit("loss", now + 999ms).print);
  const auto verdict = limiter.admit("loss", now + 1s);
  EXPECT_TRUE(verdict.print);
  EXPECT_EQ(verdict.held_back, 7u);
  EXPECT_EQ(limiter.admit("loss", now + 1s).held_back, 0u);
}

TEST(LogLimiter, KeepsCausesApart) {
  LogLimiter limiter;
  for (int line = 0; line < 11; ++line) (void)limiter.admit("loss", {0});
  EXPECT_FALSE(limiter.admit("loss", {0}).print);
  EXPECT_TRUE(limiter.admit("late", {0}).print);
}

TEST(LogPrint, ShowsRankLevelAndText) {
  ::testing::internal::CaptureStderr();
  Log log(LogLevel::info, 3);
  log.print(LogLevel::warn, "test", "lost %d of %s", 5, "ten");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("leeway[3] warning: lost 5 of ten\n"));
}

TEST(LogPrint, SendsTheTerminalNothingButText) {
  ::testing::internal::CaptureStderr();
  Log(LogLevel::info, 3)
      .print(LogLevel::warn, "test", "rank 1 says \"%s\"",
             "\x1b]0;title\x07\x9b"
             "2J\nleeway[0] error: made up\r\x7f");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("says \"?]0;title??2J?leeway[0] error: made up??\"\n"));
}

TEST(LogPrint, IsSilentBelowItsLevel) {
  ::testing::internal::CaptureStderr();
  Log(LogLevel::warn, 0).print(LogLevel::info, "test", "chatter");
  Log(LogLevel::off, 0).print(LogLevel::error, "test", "disaster");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(LogPrint, NamesNoRankBeforeItIsKnown) {
  ::testing::internal::CaptureStderr();
  Log(LogLevel::warn, kNoRank).print(LogLevel::warn, "test", "early");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("leeway warning: early"));
}

TEST(LogPrint, HoldsBackAFlood) {
  ::testing::internal::CaptureStderr();
  Log log(LogLevel::warn, 0);
  for (int line = 0; line < 100; ++line) log.print(LogLevel::warn, "flood", "line %d", line);
  const std::string printed = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(printed, HasSubstr("line 9\n"));
  EXPECT_THAT(printed, Not(HasSubstr("line 99\n")));
}

}  // namespace
}  // namespace leeway::rendezvous
