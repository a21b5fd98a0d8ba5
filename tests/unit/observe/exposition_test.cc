#include "observe/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <set>
#include <sstream>

namespace leeway::observe {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Board::Sheet sheet_of(int peers) {
  Board::Sheet sheet;
  sheet.snapshot.sealed = true;
  sheet.snapshot.uplink.paced = true;
  sheet.snapshot.seal.refused[static_cast<std::size_t>(seal::Refusal::replayed)] = 7;
  sheet.snapshot.relays.push_back({.process = 0, .address = {}, .share = {.refused = 5}});
  driving::ChannelView& channel = sheet.snapshot.channels.emplace_back();
  channel.name = "world";
  channel.size = peers + 1;
  for (int i = 0; i < peers; ++i) {
    driving::PeerView& peer = channel.peers.emplace_back();
    peer.rank = static_cast<Rank>(i + 1);
    peer.state = driving::PeerState::suspect;
    peer.rtt_measured = true;
    peer.rtt = 20ms;
    peer.rtt_min = 15ms;
    peer.bytes_sent = 1000;
  }
  collective::Request call;
  call.spec.kind = collective::OperationKind::all_reduce;
  call.report.times.total = 3ms;
  call.report.contributors.histogram = {1};
  CallBook book;
  book.add("world", call);
  sheet.calls = book.calls();
  return sheet;
}

std::string text_of(const std::vector<Board::Sheet>& sheets) {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, exposition(sheets));
  return out.str();
}

TEST(Exposition, NamesFollowPrometheus) {
  for (const prometheus::MetricFamily& family : exposition({sheet_of(2)})) {
    const bool counts = family.type == prometheus::MetricType::Counter;
    EXPECT_THAT(family.name, StartsWith("leeway_"));
    EXPECT_THAT(family.help, EndsWith("."));
    EXPECT_EQ(family.name.ends_with("_total"), counts) << family.name;
    for (const char* const unit : {"_ms", "_us", "_bits", "_percent", "_kb"})
      EXPECT_THAT(family.name, Not(HasSubstr(unit)));
  }
}

TEST(Exposition, NoSeriesIsThereTwice) {
  // There are two sockets, and two communicators of one name.
  Board::Sheet twice = sheet_of(2);
  twice.snapshot.channels.push_back(twice.snapshot.channels.front());
  std::set<std::string> series;
  std::istringstream lines(text_of({twice, sheet_of(2)}));
  for (std::string line; std::getline(lines, line);) {
    if (line.front() == '#') continue;
    EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
  EXPECT_GT(series.size(), 100u);
}

TEST(Exposition, SaysStateRefusalsAndTimes) {
  const std::string text = text_of({sheet_of(1)});
  EXPECT_THAT(text, HasSubstr("leeway_sealed{driver=\"0\",transport=\"udp\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("reason=\"replayed\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("peer=\"1\",state=\"suspect\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rank=\"0\",peer=\"1\"} 0.02\n"));
  EXPECT_THAT(text, HasSubstr("le=\"0.005\"} 1\n"));
}

TEST(Exposition, ManyPeersAreShownAsOthers) {
  const std::string text = text_of({sheet_of(100)});
  EXPECT_THAT(text, HasSubstr("peer=\"64\""));
  EXPECT_THAT(text, Not(HasSubstr("peer=\"65\"")));
  EXPECT_THAT(text, HasSubstr("leeway_peer_sent_bytes_total{driver=\"0\",transport=\"udp\","
                              "communicator=\"world\",rank=\"0\",peer=\"others\"} 36000\n"));
}

}  // namespace
}  // namespace leeway::observe
