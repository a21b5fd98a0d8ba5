#include "protocol/report_reader.h"

#include "endpoint_parts.h"

namespace leeway::protocol {
namespace {

class ReportReaderTest : public EndpointParts {
 protected:
  // A report that lists one collective.
  static wire::Report report_on(std::uint32_t number, StatusCode failure = StatusCode::kOk) {
    wire::Report report;
    report.opened_below = number + 1;
    report.open_count = 1;
    report.open[0].round = number;
    report.open[0].failure = failure;
    return report;
  }
  FakeClient client_{8, 8};
};

TEST_F(ReportReaderTest, AReportThatClaimsMoreThanWasSentIsRefused) {
  Round& round = open(client_, plan_of(FlowKind::reduce));
  wire::Report forged = report_on(0);
  forged.largest_sequence = 5;
  forged.open[0].reduce_settled = true;
  reports_.on_report(kNow, 1, forged);
  EXPECT_EQ(state_.counters.refused_report, 1u);
  forged = report_on(limits::kRoundsAheadMax + 1);
  reports_.on_report(kNow, 1, forged);
  EXPECT_EQ(state_.counters.refused_progress, 1u);
  EXPECT_TRUE(round.send(FlowKind::reduce, 1).open());
}

TEST_F(ReportReaderTest, SettlesWhatThePeerHasSettled) {
  Round& round = open(client_, plan_of(FlowKind::reduce));
  reports_.on_report(kNow, 1, report_on(0));
  EXPECT_TRUE(round.send(FlowKind::reduce, 1).open());
  wire::Report report = report_on(0);
  report.open[0].reduce_settled = true;
  reports_.on_report(kNow, 1, report);
  EXPECT_FALSE(round.send(FlowKind::reduce, 1).open());
}

TEST_F(ReportReaderTest, APeerThatListsItNoMoreHasLeftTheRound) {
  Round& round = open(client_, plan_of(FlowKind::reduce));
  wire::Report report;
  reports_.on_report(kNow, 1, report);
  EXPECT_FALSE(round.receive(FlowKind::reduce, 1).abandoned) << "it has not opened it yet";
  report.opened_below = 1;
  reports_.on_report(kNow, 1, report);
  EXPECT_TRUE(round.receive(FlowKind::reduce, 1).abandoned);
}

TEST_F(ReportReaderTest, RanksThatMeanDifferentOperationsFail) {
  open(client_, plan_of(FlowKind::reduce));
  wire::Report report = report_on(0);
  report.open[0].tag.count = 7;
  reports_.on_report(kNow, 1, report);
  EXPECT_EQ(client_.status.code(), StatusCode::kMismatch);
}

TEST_F(ReportReaderTest, AFailureIsRememberedUntilTheCollectiveOpens) {
  wire::Report report = report_on(0, StatusCode::kPeerLost);
  report.open[0].about = 3;
  reports_.on_report(kNow, 1, report);
  Round& round = open(client_, plan_of(FlowKind::reduce));
  reports_.recall(kNow, round);
  EXPECT_EQ(round.told.by, 1);
  EXPECT_EQ(round.told.about, 3);
  round.told = {};
  reports_.recall(kNow, round);
  EXPECT_EQ(round.told.by, kNoRank) << "once";
}

TEST_F(ReportReaderTest, APeerThatWaitsInVainIsTold) {
  Round& round = open(client_, plan_of(FlowKind::reduce));
  settling_.finish(kNow, round, Status::error(StatusCode::kCancelled, "closed"));
  opening_.reap_ended(kNow);
  reports_.on_report(kNow, 1, report_on(0));
  EXPECT_TRUE(link(1).report_due);
}

}  // namespace
}  // namespace leeway::protocol
