#include "protocol/report_contents.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>

#include "no_client.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

constexpr Instant kNow{1'000'000'000};

class Contents : public ::testing::Test {
 protected:
  Round& collective() {
    RoundPlan& plan = plans_.emplace_back();
    plan.phase(FlowKind::reduce).active = true;
    return with_flows(*table_.open(plan, client_, kNow), FlowKind::reduce);
  }
  Round& message(Rank peer, bool send) {
    RoundPlan& plan = plans_.emplace_back();
    plan.phase(FlowKind::point).active = true;
    plan.point_peer = peer;
    plan.point_send = send;
    return with_flows(*table_.open(plan, client_, kNow), FlowKind::point);
  }
  static Round& with_flows(Round& round, FlowKind kind) {
    for (ReceiveFlow& flow : round.phase(kind).receive) flow.packets = 10;
    return round;
  }
  wire::Report report() const { return contents().report; }
  ReportContents contents() const {
    return report_contents(kNow, 1, link_, table_, failures_, room_);
  }
  static int receives(const wire::Report& report) {
    int count = 0;
    for (std::uint32_t i = 0; i < report.open_count; ++i)
      count += report.open[i].point_to_point && !report.open[i].sending;
    return count;
  }

  NoClient client_;
  std::deque<RoundPlan> plans_;  // the plans live as long as their rounds
  Contents() {
    path_.configure(64, std::chrono::milliseconds(10));
    link_.attach(path_);
  }
  Path path_;
  Link link_;
  std::size_t room_ = limits::kDatagramBytesMin;
  RoundTable table_{3};
  Failures failures_;
};

TEST_F(Contents, SaysWhichFlowsAreSettled) {  // WIRE 3.1, 3.4
  Round& round = collective();
  EXPECT_FALSE(report().open[0].reduce_settled);
  EXPECT_TRUE(report().open[0].spread_settled) << "there is no such half";
  round.receive(FlowKind::reduce, 1).abandoned = true;
  EXPECT_TRUE(report().open[0].reduce_settled) << "the peer has left";
  EXPECT_EQ(report().opened_below, 1u);
}

TEST_F(Contents, ListsTheMessagesOfThePeerAlone) {
  message(2, false);
  Round& round = message(1, false);
  round.receive(FlowKind::point, 1).finished = true;
  const wire::Report said = report();
  ASSERT_EQ(said.open_count, 1u);
  EXPECT_TRUE(said.open[0].point_to_point && said.open[0].spread_settled);
  EXPECT_EQ(said.point_opened_below, 1u);
}

TEST_F(Contents, AReceiveThatFindsNoRoomCountsAsNotPosted) {  // WIRE 3.4
  for (int i = 0; i < 5; ++i) collective();
  for (int i = 0; i < 40; ++i) message(1, false);
  const wire::Report said = report();
  EXPECT_EQ(said.open_count, said.open.size());
  EXPECT_EQ(receives(said), 11);
  EXPECT_EQ(said.point_opened_below, 11u);
}

// Collectives may wait for messages of each kind, so a report must have room for one entry of each
// (WIRE 3.4).
TEST_F(Contents, ThereIsRoomForEachKindOfMessageBesideCollectivesAndFailures) {
  for (const int open : {0, 5, limits::kOpenCollectivesMax}) {
    SCOPED_TRACE(std::to_string(open) + " collectives are open");
    failures_ = {};
    while (static_cast<int>(table_.collective_count()) < open) collective();
    for (std::uint32_t i = 0; i < 20; ++i)
      failures_.add({.entry = {.round = 100 + i, .failure = StatusCode::kDeadlineExceeded},
                     .opened = table_.collectives_opened()});
    Round& refused = message(1, false);
    for (int i = 0; i < 10; ++i) {
      message(1, true);
      message(1, false);
    }
    PeerMessages& messages = *table_.messages(1);
    messages.refuse(refused);
    table_.end(refused);
    table_.take_ended();
    for (std::uint32_t number = 0; number < limits::kGivenUpMax; ++number)
      messages.give_up(7, number);
    std::map<std::string, int> listed;
    const wire::Report said = report();
    for (const wire::OpenRound& entry : said.entries()) {
      if (!entry.point_to_point) {
        ++listed[entry.failed() ? "failure" : "collective"];
      } else if (entry.sending) {
        ++listed[entry.failed() ? "given up" : "send"];
      } else {
        ++listed[entry.spread_settled ? "refused" : "receive"];
      }
    }
    for (const char* kind : {"given up", "refused", "receive", "send"})
      EXPECT_GE(listed[kind], 1) << kind;
    EXPECT_EQ(listed["collective"], open);
    EXPECT_LE(wire::report_bytes(said), room_);
  }
}

TEST_F(Contents, WhatIsAboutToFailGoesBeforeOtherMessages) {  // WIRE 3.5
  for (int i = 0; i < limits::kOpenCollectivesMax; ++i) collective();
  message(1, false);
  message(1, false).failure = Status::error(StatusCode::kMismatch, "it is meant differently");
  const wire::Report said = report();
  EXPECT_EQ(said.open[said.open_count - 2].round, 1u);
  EXPECT_EQ(said.point_opened_below, 2u);
}

TEST_F(Contents, ARefusedReceiveThatFindsNoRoomCountsAsNotPosted) {  // WIRE 3.12
  std::vector<Round*> refused;
  for (int i = 0; i < 20; ++i) refused.push_back(&message(1, false));
  PeerMessages& messages = *table_.messages(1);
  for (int i = 0; i < limits::kTalkingMessagesMax; ++i) messages.refuse(*refused[i]);
  for (int i = 0; i < limits::kTalkingMessagesMax; ++i) {
    table_.end(*refused[i]);
    table_.take_ended();
  }
  ReportContents first = contents();
  EXPECT_EQ(first.listed.refused, 14u);
  EXPECT_EQ(first.report.point_opened_below, 14u) << "the first refused one without an entry";
  messages.rotate(first.listed);
  EXPECT_EQ(messages.refused()[0].number, 14u) << "which comes first in the next report";
  for (std::uint32_t number = 0; number < 16; ++number) messages.note_refusal_heard(0, number);
  EXPECT_EQ(report().point_opened_below, 20u);
}

TEST_F(Contents, FailuresGoBeforeMessages) {
  for (int i = 0; i < 40; ++i) message(1, false);
  failures_.add({.entry = {.round = 3, .failure = StatusCode::kMismatch}, .opened = 0});
  const wire::Report said = report();
  EXPECT_TRUE(said.open[0].failed() && said.open[0].round == 3);
  EXPECT_GT(receives(said), 1);
}

TEST_F(Contents, SaysAFewTimesWhichMessagesWereGivenUp) {  // WIRE 3.17
  PeerMessages& messages = table_.make_messages(1);
  for (std::uint32_t number = 0; number < limits::kGivenUpMax + 1u; ++number)
    messages.give_up(7, number);
  messages.give_up(7, limits::kGivenUpMax);  // again
  wire::Report said = report();
  ASSERT_EQ(said.open_count, static_cast<std::uint32_t>(limits::kGivenUpMax));
  EXPECT_EQ(said.open[0].round, 1u) << "the oldest made room";
  EXPECT_TRUE(said.open[0].failed() && said.open[0].sending);
  for (int i = 0; i < limits::kGivenUpReports; ++i) messages.rotate(contents().listed);
  EXPECT_EQ(report().open_count, 0u);
  for (int i = 0; i < limits::kOpenCollectivesMax; ++i) collective();
  message(1, true);
  message(1, false);
  messages.give_up(7, 9);
  said = report();
  EXPECT_EQ(receives(said), 1);
  EXPECT_TRUE(said.open[said.open_count - 1].sending && !said.open[said.open_count - 1].failed());
}

}  // namespace
}  // namespace leeway::protocol
