#include "top/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::tools::top {
namespace {

using ::testing::HasSubstr;

// Returns the metrics of a process after `datagrams` datagrams.
std::string answer(int datagrams, double waited) {
  const std::string labels =
      "driver=\"0\",transport=\"udp\",communicator=\"world\",rank=\"0\",peer=\"1\"";
  const auto line = [&](const char* name, double value) {
    return std::string(name) + "{" + labels + "} " + std::to_string(value) + "\n";
  };
  return "# HELP leeway_build_info This library.\n"
         "leeway_build_info{version=\"0.1.0\"} 1\n"
         "leeway_sealed{driver=\"0\",transport=\"udp\"} 1\n"
         "leeway_pace_bytes_per_second{driver=\"0\",transport=\"udp\"} 1250000\n"
         "leeway_communicator_info{driver=\"0\",transport=\"udp\",communicator=\"world\","
         "rank=\"0\",size=\"2\",datagram_bytes=\"1440\"} 1\n"
         "leeway_peer_state{" +
         labels + ",state=\"alive\"} 0\nleeway_peer_state{" + labels + ",state=\"suspect\"} 1\n" +
         line("leeway_peer_rtt_seconds", 0.02) + line("leeway_peer_relayed", 0) +
         line("leeway_peer_sent_datagrams_total", datagrams) +
         line("leeway_peer_lost_datagrams_total", datagrams / 10.0) +
         line("leeway_peer_sent_bytes_total", datagrams * 1000.0) +
         line("leeway_peer_received_bytes_total", 500.0 * datagrams) +
         "leeway_peer_limited_seconds_total{" + labels + ",by=\"uplink\"} " +
         std::to_string(waited) + "\nleeway_peer_limited_seconds_total{" + labels +
         ",by=\"application\"} 0.5\n" +
         "leeway_operation_seconds_bucket{driver=\"0\",communicator=\"world\",le=\"+Inf\"} 4\n";
}

Process page_of(const std::string& before, const std::string& now) {
  return compare("host:9464", Samples::parse(before), Samples::parse(now), 2);
}

TEST(TopSamples, TakesLinesApart) {
  const Samples samples = Samples::parse(
      "# TYPE a counter\na{x=\"1\",y=\"q\\\"u,}\"} 2.5\na{x=\"2\"} 3\nb "
      "1e3\nbroken{x=\n\nnothing\n");
  EXPECT_EQ(samples.of("a").size(), 2u);
  EXPECT_EQ(samples.of("a")[0].labels.at("y"), "q\"u,}");
  EXPECT_EQ(samples.value("a", {{"x", "2"}}), 3);
  EXPECT_EQ(samples.value("b", {}), 1000);
  EXPECT_EQ(samples.value("a", {{"x", "3"}}), std::nullopt);
  EXPECT_TRUE(samples.of("broken").empty());
}

TEST(TopPage, RatesAreDifferencesOfTwoLooks) {
  const Process process = page_of(answer(1000, 1), answer(3000, 2.5));
  ASSERT_EQ(process.groups.size(), 1u);
  EXPECT_TRUE(process.groups[0].sealed);
  ASSERT_EQ(process.groups[0].rows.size(), 1u);
  const Row& row = process.groups[0].rows[0];
  EXPECT_EQ(row.state, "suspect");
  EXPECT_DOUBLE_EQ(row.out_per_second, 1e6);
  EXPECT_DOUBLE_EQ(row.in_per_second, 5e5);
  EXPECT_DOUBLE_EQ(row.loss, 0.1);
  EXPECT_EQ(row.limit, "uplink");
  EXPECT_DOUBLE_EQ(row.limit_share, 1.0);
}

TEST(TopPage, AProcessThatWasStartedAnewHasNoNegativeRates) {
  const Process process = page_of(answer(3000, 1), answer(100, 1));
  EXPECT_DOUBLE_EQ(process.groups[0].rows[0].out_per_second, 5e4);
}

TEST(TopPage, TextHasARowAPeer) {
  const std::string text = to_text({page_of(answer(1000, 1), answer(3000, 2.5))});
  EXPECT_THAT(text, HasSubstr("host:9464  \"world\" rank 0 of 2 over udp, sealed, datagrams of "
                              "1440 bytes, pace 10.0 Mb/s"));
  EXPECT_THAT(text, HasSubstr("suspect    20.0 ms   10.0 %"));
  EXPECT_THAT(text, HasSubstr("uplink 100 %"));
}

TEST(TopPage, JsonHasTheSame) {
  const std::string json = to_json({page_of(answer(1000, 1), answer(3000, 2.5))});
  EXPECT_THAT(json, HasSubstr("\"state\": \"suspect\""));
  EXPECT_THAT(json, HasSubstr("\"queue_seconds\": null"));
}

// Labels come from another process, so they may hold control characters.
TEST(TopPage, SendsTheTerminalNothingButText) {
  const std::string bad =
      "\x1b]0;owned\x07\x9b"
      "2J\\nhost:1  made up\r";
  std::string now = answer(3000, 2.5);
  for (std::size_t at = 0; (at = now.find("world", at)) != std::string::npos; at += bad.size())
    now.replace(at, 5, bad);
  const Process process = page_of(now, now);
  ASSERT_EQ(process.groups.size(), 1u);
  EXPECT_EQ(process.groups[0].rows.size(), 1u) << "labels are compared as they came";
  const std::string text = to_text({process, {.address = "h:1", .error = bad, .groups = {}}});
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c <= 0x7E)) << int{c};
  EXPECT_THAT(to_json({process}), HasSubstr("owned")) << "and what is no UTF-8 does not throw";
}

TEST(TopPage, WhatIsNotKnownIsNoNumber) {
  std::string now = answer(1000, 1);
  const std::size_t rtt = now.find("leeway_peer_rtt_seconds");
  now.erase(rtt, now.find('\n', rtt) - rtt + 1);
  const Process process = page_of(now, now);  // no datagrams and no calls between the looks
  ASSERT_EQ(process.groups.at(0).rows.size(), 1u);
  const std::string json = to_json({process});
  for (const char* name : {"rtt_seconds", "loss", "call_seconds", "missing"})
    EXPECT_THAT(json, HasSubstr("\"" + std::string(name) + "\": null"));
  EXPECT_THAT(to_text({process}), HasSubstr("suspect          -        -"));
}

TEST(TopPage, SaysWhatIsNotLeeway) {
  EXPECT_THAT(to_text({page_of("", "node_cpu_seconds_total 1\n")}), HasSubstr("is not Leeway"));
}

TEST(TopPage, ARelayThatRefusesAndWhatWaitsForItAreShown) {
  const auto with_relay = [](int sent, int refused, double waited) {
    const std::string relay = "{driver=\"0\",transport=\"udp\",relay=\"203.0.113.1:29501\"} ";
    return answer(sent, 0) + "leeway_relay_pace_bytes_per_second" + relay + "1250000\n" +
           "leeway_relay_sent_datagrams_total" + relay + std::to_string(sent) + "\n" +
           "leeway_relay_refused_datagrams_total" + relay + std::to_string(refused) + "\n" +
           "leeway_peer_limited_seconds_total{driver=\"0\",transport=\"udp\",communicator="
           "\"world\",rank=\"0\",peer=\"1\",by=\"relay\"} " +
           std::to_string(waited) + "\n";
  };
  const Process process = page_of(with_relay(1000, 500, 0), with_relay(2000, 530, 1.5));
  EXPECT_EQ(process.groups[0].rows[0].limit, "relay");
  EXPECT_THAT(to_text({process}),
              HasSubstr("relay at 203.0.113.1:29501 passes on 10.0 Mb/s of ours, and refused 3.0 % "
                        "of 1000 datagrams by share"));
  EXPECT_THAT(to_json({process}), HasSubstr("\"refused\": 30.0"));
}

}  // namespace
}  // namespace leeway::tools::top
