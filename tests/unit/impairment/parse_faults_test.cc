#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "leeway/options.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string refusal(std::string_view text) {
  const auto result = parse_faults(text);
  return result.ok() ? "accepted" : std::string(result.status().text());
}

TEST(ParseFaults, ReadsEveryKey) {
  const FaultOptions faults =
      parse_faults(
          "loss=0.1,burst=8,dup=0.01,reorder=0.02,corrupt=0.001,delay=5ms,seed=3,list=0>1/*/0/3")
          .value();
  EXPECT_EQ(faults.loss, 0.1);
  EXPECT_EQ(faults.burst, 8.0);
  EXPECT_EQ(faults.duplicate, 0.01);
  EXPECT_EQ(faults.reorder, 0.02);
  EXPECT_EQ(faults.corrupt, 0.001);
  EXPECT_EQ(faults.delay, Duration(5ms));
  EXPECT_EQ(faults.seed, 3u);
  EXPECT_EQ(faults.list, "0>1/*/0/3");
}

TEST(ParseFaults, AnEmptyTextMeansNoFaults) {
  EXPECT_FALSE(parse_faults("").value().any());
}

TEST(ParseFaults, ItemsWithoutAKeyBelongToTheOneBefore) {
  const FaultOptions faults =
      parse_faults("list=0>1/*/0/3,1>2/*/0/4,link=0,0.1,0.5,seed=9").value();
  EXPECT_EQ(faults.list, "0>1/*/0/3,1>2/*/0/4");
  EXPECT_THAT(faults.link_loss, testing::ElementsAre(0.0, 0.1, 0.5));
  EXPECT_EQ(faults.seed, 9u);
}

TEST(ParseFaults, DelaysNeedAUnit) {
  EXPECT_EQ(parse_faults("delay=250us").value().delay, Duration(250us));
  EXPECT_EQ(parse_faults("delay=1.5s").value().delay, Duration(1500ms));
  EXPECT_EQ(parse_faults("delay=7ns").value().delay, Duration(7ns));
  EXPECT_THAT(refusal("delay=5"), HasSubstr("unit"));
  EXPECT_THAT(refusal("delay=5min"), HasSubstr("unit"));
}

TEST(ParseFaults, AnUnknownKeyIsToldWhichKeysThereAre) {
  EXPECT_THAT(refusal("los=0.1"), AllOf(HasSubstr("los=0.1"), HasSubstr("loss, burst, dup")));
  EXPECT_THAT(refusal("0.1"), HasSubstr("unknown key"));
  EXPECT_THAT(refusal(",loss=0.1"), HasSubstr("unknown key"));
}

TEST(ParseFaults, AValueThatIsNoNumberIsQuoted) {
  for (const char* wrong :
       {"loss=", "loss=ten", "loss=0.1x", "loss=0.1,", "burst=0.1,0.2", "seed=-1", "link=0,,1"}) {
    EXPECT_THAT(refusal(wrong), AllOf(HasSubstr("not a number"), HasSubstr("fault"))) << wrong;
  }
}

TEST(ParseFaults, ValuesOutOfRangeAreNamed) {
  EXPECT_THAT(refusal("loss=1.5"), HasSubstr("loss=1.5"));
  EXPECT_THAT(refusal("loss=-0.1"), HasSubstr("loss=-0.1"));
  EXPECT_THAT(refusal("loss=nan"), HasSubstr("loss=nan"));
  EXPECT_THAT(refusal("dup=2"), HasSubstr("dup=2"));
  EXPECT_THAT(refusal("reorder=2"), HasSubstr("reorder=2"));
  EXPECT_THAT(refusal("corrupt=2"), HasSubstr("corrupt=2"));
  EXPECT_THAT(refusal("link=0,7"), HasSubstr("link=7"));
  EXPECT_THAT(refusal("burst=0.5"), HasSubstr("burst=0.5"));
  EXPECT_THAT(refusal("burst=inf"), HasSubstr("burst=inf"));
  EXPECT_THAT(refusal("delay=-1ms"), HasSubstr("delay"));
  EXPECT_THAT(refusal("delay=61s"), HasSubstr("60 s"));
}

TEST(ParseFaults, AWrongListIsQuoted) {
  EXPECT_THAT(refusal("list=0>1/2"), HasSubstr("0>1/2"));
}

}  // namespace
}  // namespace leeway
