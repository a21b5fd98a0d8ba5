#include "swarm/verdict.h"

#include <gtest/gtest.h>

namespace leeway::sim::swarm {
namespace {

scenario::Scenario two_rounds() {
  scenario::Scenario scenario;
  scenario.set_rounds(2);
  return scenario;
}

RunRecord complete_record() {
  RunRecord record;
  record.rounds.resize(2);
  record.checks = {{"i1", "one", sim::Verdict::passed, 1, 0, ""},
                   {"i3", "three", sim::Verdict::skipped, 0, 0, "told so"}};
  return record;
}

Verdict judge_record(const RunRecord& record) {
  return judge(two_rounds(), 7, {.run = [&](const auto&, std::uint64_t, const RunOptions&) {
                 return Result<RunRecord>(record);
               }});
}

TEST(JudgeRun, PassesWhatIsAsItMustBe) {
  const Verdict verdict = judge_record(complete_record());
  EXPECT_FALSE(verdict.failure);
  EXPECT_FALSE(verdict.stopped);
  EXPECT_EQ(verdict.rounds, 2u);
}

TEST(JudgeRun, NamesTheFirstCheckThatFailed) {
  RunRecord record = complete_record();
  record.checks.push_back({"i5", "five", sim::Verdict::failed, 3, 1, "here"});
  record.checks.push_back({"i6", "six", sim::Verdict::failed, 3, 1, "there"});
  const Verdict verdict = judge_record(record);
  ASSERT_TRUE(verdict.failure);
  EXPECT_EQ(verdict.failure->check, "i5");
  EXPECT_EQ(verdict.failure->text, "five: here");
}

TEST(JudgeRun, ARunThatStopsShortFails) {
  RunRecord record = complete_record();
  record.rounds.pop_back();
  const Verdict verdict = judge_record(record);
  ASSERT_TRUE(verdict.failure);
  EXPECT_EQ(verdict.failure->check, "end");
}

TEST(JudgeRun, ARunWithoutEndFailsAndAStoppedOneDoesNot) {
  const auto failing = [](StatusCode code) {
    return judge(two_rounds(), 7, {.run = [code](const auto&, std::uint64_t, const RunOptions&) {
                   return Result<RunRecord>(Status::error(code, "why"));
                 }});
  };
  EXPECT_EQ(failing(StatusCode::kResourceExhausted).failure->check, "end");
  EXPECT_EQ(failing(StatusCode::kInvalidArgument).failure->check, "run");
  EXPECT_TRUE(failing(StatusCode::kCancelled).stopped);
  EXPECT_FALSE(failing(StatusCode::kCancelled).failure);
}

TEST(JudgeRun, RepeatedRunsMustBeTheSame) {
  int runs = 0;
  const auto run = [&](const auto&, std::uint64_t, const RunOptions&) {
    RunRecord record = complete_record();
    record.trace_hash = static_cast<std::uint64_t>(++runs);
    return Result<RunRecord>(record);
  };
  EXPECT_FALSE(judge(two_rounds(), 7, {.run = run}).failure);
  EXPECT_EQ(runs, 1);
  const Verdict verdict = judge(two_rounds(), 7, {.run = run, .twice = true});
  ASSERT_TRUE(verdict.failure);
  EXPECT_EQ(verdict.failure->check, "i12");
}

TEST(JudgeRun, EventsAreBounded) {
  scenario::Scenario scenario = two_rounds();
  RunOptions options;
  options.events_max = 100;
  const auto record = sim::run(scenario, 1, options);
  ASSERT_FALSE(record.ok());
  EXPECT_EQ(record.status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace leeway::sim::swarm
