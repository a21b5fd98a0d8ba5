#include "interop/nccl/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::nccl {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;

Operation all_reduce() {
  Operation operation;
  operation.kind = Kind::all_reduce;
  operation.count = 1000;
  operation.options.delivery = best_effort(1s);
  return operation;
}

TEST(NcclTrace, ALineHasTheCallAndItsReport) {
  CollectiveReport report;
  report.loss = 0.25;
  report.bytes_sent = 77;
  report.times.total = 1500us;
  report.codec = Codec::nvfp4;
  const std::string line = trace_line({"dp", 4, 1, 8}, all_reduce(), report);
  for (const char* part : {"\"comm\":\"dp\"", "\"ordinal\":4", "\"rank\":1", "\"size\":8",
                           "\"operation\":\"all_reduce\"", "\"type\":\"float\"", "\"count\":1000",
                           "\"op\":\"sum\"", "\"delivery\":\"best_effort\"", "\"us\":1500.0",
                           "\"bytes_sent\":77", "\"loss\":0.25", "\"codec\":\"nvfp4\""})
    EXPECT_THAT(line, HasSubstr(part));
  EXPECT_THAT(line, EndsWith("}\n"));
}

TEST(NcclTrace, AFailureHasItsText) {
  Operation send;
  send.kind = Kind::send;
  send.peer = 3;
  const std::string line =
      trace_line({"a\"b\\\n", 0, 0, 2}, send, Status::error(StatusCode::kPeerLost, "rank 3 died"));
  EXPECT_THAT(line, HasSubstr("\"peer\":3"));
  EXPECT_THAT(line, HasSubstr("\"error\":\"rank 3 died\""));
  EXPECT_THAT(line, HasSubstr("\"comm\":\"a\\\"b\\\\?\""));
}

TEST(NcclTrace, AFileThatCannotBeWrittenIsNamed) {
  Trace trace;
  EXPECT_TRUE(trace.open("").ok());
  EXPECT_FALSE(trace.active());
  EXPECT_THAT(trace.open("/nowhere/trace").c_str(), HasSubstr("/nowhere/trace"));
}

TEST(NcclTrace, SaysOnceThatTheDiskIsFull) {
  Trace trace;
  ASSERT_TRUE(trace.open("/dev/full").ok());
  ::testing::internal::CaptureStderr();
  for (int line = 0; line < 3; ++line)
    trace.write({"dp", 4, 1, 8}, all_reduce(), CollectiveReport());
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said,
              HasSubstr("LEEWAY_NCCL_TRACE lacks lines from now on: No space left on device"));
  EXPECT_EQ(said.find("lacks"), said.rfind("lacks"));
}

}  // namespace
}  // namespace leeway::nccl
