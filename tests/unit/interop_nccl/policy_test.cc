#include "interop/nccl/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace leeway::nccl {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t kMiB = 1 << 20;

Policy parsed(const char* text) {
  auto policy = Policy::parse(text);
  EXPECT_TRUE(policy.ok()) << policy.status().c_str();
  return policy.ok() ? std::move(*policy) : Policy();
}

const CollectiveOptions* sum_of(const Policy& policy, std::size_t bytes,
                                DataType type = DataType::f32) {
  return policy.find(Kind::all_reduce, ReduceOp::sum, type, bytes);
}

TEST(NcclPolicy, NoneIsExact) {
  EXPECT_TRUE(parsed("").empty());
  EXPECT_TRUE(parsed("  \n# nothing\n;;").empty());
  EXPECT_EQ(sum_of(parsed(""), kMiB), nullptr);
}

TEST(NcclPolicy, ARuleHasDeliveryCodecAndEstimator) {
  const Policy policy =
      parsed("all_reduce | f32 | >=1MiB | * -> bounded(0.01,250ms) nvfp4:nearest zero_fill");
  const CollectiveOptions* const found = sum_of(policy, kMiB);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->delivery.kind, Delivery::Kind::bounded);
  EXPECT_EQ(found->delivery.loss_max, 0.01);
  EXPECT_EQ(found->delivery.deadline, 250ms);
  EXPECT_EQ(found->codec.codec, Codec::nvfp4);
  EXPECT_EQ(found->codec.rounding, Rounding::nearest);
  EXPECT_EQ(found->estimator, Estimator::zero_fill);
  EXPECT_EQ(sum_of(policy, kMiB - 1), nullptr);
}

TEST(NcclPolicy, TheFirstMatchDecides) {
  const Policy policy = parsed(
      "* | * | >=4MiB -> best_effort(1s); all_reduce | bf16 f16 -> exact bf16 # slow\n"
      "* -> best_effort(2s)");
  EXPECT_EQ(sum_of(policy, 4 * kMiB, DataType::bf16)->delivery.deadline, 1s);
  EXPECT_EQ(sum_of(policy, kMiB, DataType::bf16)->delivery.kind, Delivery::Kind::exact);
  EXPECT_EQ(sum_of(policy, kMiB, DataType::f32)->delivery.deadline, 2s);
}

TEST(NcclPolicy, SaysWhichRulesDecideNothing) {
  const auto idle = [](const char* text) { return parsed(text).idle_rules(); };
  EXPECT_THAT(idle("all_gather -> best_effort(1s)"),
              ElementsAre(AllOf(HasSubstr("rule 1, \"all_gather -> best_effort(1s)\""),
                                HasSubstr("only all_reduce, reduce_scatter and reduce"))));
  EXPECT_THAT(idle("all_reduce | f64 -> best_effort(1s)"), ElementsAre(HasSubstr("only f32")));
  EXPECT_THAT(idle("* | * | <64KiB -> best_effort(1s)"), ElementsAre(HasSubstr("64 KiB")));
  EXPECT_THAT(idle("* | * | >=2MiB <=1MiB -> exact"), ElementsAre(HasSubstr("no size")));
  EXPECT_THAT(idle("* -> exact; all_reduce -> best_effort(1s)"),
              ElementsAre(HasSubstr("rule 1 takes all its calls")));
  EXPECT_THAT(idle("* | * | >=1KiB | comm=dp* -> exact\nall_reduce | * | * | comm=dp* -> exact\n"
                   "* | * | * | comm=dp*,size=4 -> best_effort(1s)"),
              ElementsAre(AllOf(HasSubstr("rule 3"), HasSubstr("rule 1 takes all its calls"))));
}

TEST(NcclPolicy, ARuleThatDecidesSomethingIsNotIdle) {
  for (const char* const rules :
       {"", "* -> best_effort(1s)", "all_gather -> exact; * -> best_effort(1s)",
        "all_reduce | f32 -> exact; all_reduce -> best_effort(1s)",
        "* | * | * | comm=dp* -> exact; * | * | * | comm=tp* -> best_effort(1s)",
        "* | * | * | size=4 -> exact; * | * | * | size=world -> best_effort(1s)"})
    EXPECT_THAT(parsed(rules).idle_rules(), IsEmpty()) << rules;
}

TEST(NcclPolicy, SomeThingsStayExactWhateverARuleSays) {
  const Policy policy = parsed("* -> best_effort(1s)");
  EXPECT_NE(sum_of(policy, kMiB), nullptr);
  EXPECT_NE(policy.find(Kind::reduce_scatter, ReduceOp::avg, DataType::f16, kMiB), nullptr);
  EXPECT_EQ(sum_of(policy, Policy::kLossyBytesMin - 1), nullptr);
  for (const DataType type : {DataType::i32, DataType::u64, DataType::f64, DataType::f8e4m3})
    EXPECT_EQ(sum_of(policy, kMiB, type), nullptr);
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::min, ReduceOp::prod})
    EXPECT_EQ(policy.find(Kind::all_reduce, op, DataType::f32, kMiB), nullptr);
  for (const Kind kind : {Kind::broadcast, Kind::all_gather, Kind::all_to_all, Kind::send})
    EXPECT_EQ(policy.find(kind, ReduceOp::sum, DataType::f32, kMiB), nullptr);
}

TEST(NcclPolicy, RulesAreOfCommunicators) {
  const auto applies = [](const char* rule, const Policy::Group& group) {
    return !parsed((std::string("* | * | * | ") + rule + " -> best_effort(1s)").c_str())
                .of(group)
                .empty();
  };
  const Policy::Group group{.name = "dp_1", .size = 4, .world = 8, .ordinal = 3};
  EXPECT_TRUE(applies("comm=dp*", group));
  EXPECT_FALSE(applies("comm=tp*", group));
  EXPECT_TRUE(applies("size=4", group));
  EXPECT_FALSE(applies("size=world", group));
  EXPECT_TRUE(applies("size=world", {.name = "", .size = 8, .world = 8, .ordinal = 0}));
  EXPECT_TRUE(applies("comm=dp*, ordinal=3", group));
  EXPECT_FALSE(applies("comm=dp*, ordinal=2", group));
}

TEST(NcclPolicy, FingerprintsTellWhatACallWouldSee) {
  const auto fingerprint = [](const char* text, const char* name) {
    return parsed(text).of({.name = name, .size = 2, .world = 2, .ordinal = 0}).fingerprint();
  };
  const char* const rule = "all_reduce | * | * | comm=a -> best_effort(1s)";
  EXPECT_EQ(fingerprint(rule, "a"), fingerprint("all_reduce -> best_effort(1000ms)", "b"));
  EXPECT_EQ(fingerprint(rule, "b"), fingerprint("", "a"));
  EXPECT_NE(fingerprint(rule, "a"), fingerprint("", "a"));
  EXPECT_NE(fingerprint(rule, "a"), fingerprint("all_reduce -> best_effort(2s)", "a"));
  EXPECT_NE(fingerprint(rule, "a"), fingerprint("all_reduce -> best_effort(1s) nvfp4", "a"));
}

TEST(NcclPolicy, ErrorsNameLineAndColumn) {
  const struct {
    const char* text;
    const char* where;
  } kWrong[] = {
      {"all_reduce", "line 1, column 1: \"all_reduce\" has no"},
      {"* -> exact\n  allreduce -> exact", "line 2, column 3: \"allreduce\""},
      {"* | f33 -> exact", "column 5: \"f33\""},
      {"* | * | 1MiB -> exact", "column 9: \"1MiB\""},
      {"* | * | >=1Mib -> exact", "\">=1Mib\""},
      {"* | * | * | rank=3 -> exact", "column 13: \"rank=3\""},
      {"* | * | * | size=0 -> exact", "\"size=0\""},
      {"* | * | * | * | x -> exact", "column 17: \"x\" is a fifth part"},
      {"* ->", "is no delivery"},
      {"* -> best_effort", "\"best_effort\""},
      {"* -> best_effort(200)", "\"best_effort(200)\""},
      {"* -> bounded(2,1s)", "\"bounded(2,1s)\""},
      {"* -> exact fp3", "column 12: \"fp3\""},
      {"* -> exact nvfp4 ratio more", "column 24: \"more\""},
      {"* -> exact; nothing", "column 13: \"nothing\""},
  };
  for (const auto& wrong : kWrong) {
    const auto policy = Policy::parse(wrong.text);
    ASSERT_FALSE(policy.ok()) << wrong.text;
    EXPECT_EQ(policy.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(policy.status().c_str(), HasSubstr(wrong.where));
  }
}

TEST(NcclPolicy, IsReadFromAFileToo) {
  const std::string name = testing::TempDir() + "leeway_policy_test";
  std::ofstream(name) << "all_reduce -> best_effort(1s)\n";
  const auto policy = Policy::read(name);
  std::remove(name.c_str());
  ASSERT_TRUE(policy.ok()) << policy.status().c_str();
  EXPECT_NE(sum_of(*policy, kMiB), nullptr);
  EXPECT_THAT(Policy::read(name).status().c_str(), HasSubstr("neither a rule"));
}

}  // namespace
}  // namespace leeway::nccl
