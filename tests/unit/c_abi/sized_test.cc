// Structs that are shorter or longer than the library's, as programs with older and newer headers
// have them.
#include "c_abi/sized.h"

#include <gmock/gmock.h>

#include <cstddef>

#include "c_abi/options.h"
#include "unit/c_abi/group.h"

namespace leeway::c_abi {
namespace {

using testing::Group;
using ::testing::HasSubstr;

// The options of a program with a newer header, in which the struct has one more member.
struct NewerOptions {
  leeway_collective_options known = LEEWAY_COLLECTIVE_OPTIONS_INIT;
  std::uint64_t of_tomorrow = 0;
  NewerOptions() { known.size = sizeof *this; }
};

TEST(SizedStruct, AShorterOneHasDefaultsForWhatItLacks) {
  leeway_collective_options old = LEEWAY_COLLECTIVE_OPTIONS_INIT;
  old.op = LEEWAY_MAX;
  old.weight = 0.25;                                       // beyond the end
  old.owner_weight_count = 7;                              // beyond the end
  old.size = offsetof(leeway_collective_options, weight);  // ends here
  const auto read = call_of(&old);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->options.op, ReduceOp::max);
  EXPECT_EQ(read->options.weight, 1.0);
  EXPECT_TRUE(read->options.owner_weights.empty());
}

TEST(SizedStruct, ANewerOneIsTakenIfItSaysNothingNew) {
  Group group(1);
  std::vector<float> values(10, 2.0f);
  NewerOptions newer;
  EXPECT_DONE(leeway_all_reduce(group.ranks[0], testing::input_of(values),
                                testing::output_of(values), &newer.known, nullptr));
}

TEST(SizedStruct, ANewerOneThatSaysSomethingNewIsRefused) {
  Group group(1);
  std::vector<float> values(10, 2.0f);
  NewerOptions newer;
  newer.of_tomorrow = 1;
  EXPECT_FAILS(leeway_all_reduce(group.ranks[0], testing::input_of(values),
                                 testing::output_of(values), &newer.known, nullptr),
               LEEWAY_INVALID_ARGUMENT, "leeway_collective_options");
  EXPECT_THAT(leeway_last_error(), HasSubstr(std::to_string(sizeof newer)));
  EXPECT_THAT(leeway_last_error(), HasSubstr(std::to_string(sizeof newer.known)));
}

TEST(SizedStruct, SizesOfNoVersionAreRefused) {
  leeway_options options = LEEWAY_OPTIONS_INIT;
  leeway_communicator* communicator = nullptr;
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, sizeof options - 1,
                                 std::size_t{1} << 20, ~std::size_t{0}}) {
    options.size = size;
    EXPECT_FAILS(leeway_create(&options, &communicator), LEEWAY_INVALID_ARGUMENT,
                 "leeway_options.size");
    EXPECT_EQ(communicator, nullptr);
  }
}

TEST(SizedStruct, AShorterResultIsFilledUpToItsEnd) {
  leeway_report* report = nullptr;
  ASSERT_DONE(leeway_report_create(&report));
  leeway_report_summary summary = LEEWAY_REPORT_SUMMARY_INIT;
  summary.size = offsetof(leeway_report_summary, loss);
  summary.peer_count = 99;
  summary.loss = 99.0;
  EXPECT_DONE(leeway_report_get(report, &summary));
  EXPECT_EQ(summary.peer_count, 0u);
  EXPECT_EQ(summary.loss, 99.0) << "beyond the caller's end";
  EXPECT_EQ(summary.size, offsetof(leeway_report_summary, loss));
  leeway_report_free(report);
}

TEST(SizedStruct, ALongerResultIsZeroBeyondWhatIsKnown) {
  struct {
    leeway_report_summary known = LEEWAY_REPORT_SUMMARY_INIT;
    std::uint64_t of_tomorrow = 99;
  } newer;
  newer.known.size = sizeof newer;
  leeway_report* report = nullptr;
  ASSERT_DONE(leeway_report_create(&report));
  EXPECT_DONE(leeway_report_get(report, &newer.known));
  EXPECT_EQ(newer.of_tomorrow, 0u);
  EXPECT_EQ(newer.known.size, sizeof newer);
  newer.known.size = 3;
  EXPECT_FAILS(leeway_report_get(report, &newer.known), LEEWAY_INVALID_ARGUMENT,
               "leeway_report_summary.size is 3");
  leeway_report_free(report);
}

TEST(SizedStruct, MessagesOfANewerHeaderLieFurtherApart) {
  struct Newer {
    leeway_message known = LEEWAY_MESSAGE_INIT;
    std::uint64_t of_tomorrow = 0;
  };
  Group group(1);
  float out = 5.0f, in = 0.0f;
  Newer messages[2];
  for (Newer& message : messages) message.known.size = sizeof message;
  messages[0].known.data = &out;
  messages[1].known.data = &in;
  messages[0].known.count = messages[1].known.count = 1;
  messages[1].known.kind = LEEWAY_RECV;
  EXPECT_DONE(leeway_exchange(group.ranks[0], &messages[0].known, 2, nullptr, nullptr));
  EXPECT_EQ(in, 5.0f);
  messages[1].known.size = sizeof(leeway_message);
  EXPECT_FAILS(leeway_exchange(group.ranks[0], &messages[0].known, 2, nullptr, nullptr),
               LEEWAY_INVALID_ARGUMENT, "message 1 has size");
}

}  // namespace
}  // namespace leeway::c_abi
