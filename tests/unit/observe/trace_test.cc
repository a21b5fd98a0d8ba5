#include "observe/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "driving/driver.h"
#include "leeway/communicator.h"
#include "leeway/rendezvous.h"

namespace leeway::observe {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Way = Trace::Way;

std::string scratch(const char* name) {
  return (std::filesystem::path(::testing::TempDir()) / name).string();
}

// Reads records in the format of RFC 7464: RS, JSON, line feed.
std::vector<json> records_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  std::vector<json> records;
  std::size_t at = 0;
  while (at < all.size()) {
    EXPECT_EQ(all[at], '\x1e');
    const std::size_t end = all.find('\n', at);
    if (end == std::string::npos) break;
    records.push_back(json::parse(all.substr(at + 1, end - at - 1)));
    at = end + 1;
  }
  EXPECT_EQ(at, all.size());
  return records;
}

// Checks each record against the qlog schema (main 0.3, QUIC events 0.3).
void validate(const std::vector<json>& records) {
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0].at("qlog_version"), "0.3");
  EXPECT_EQ(records[0].at("qlog_format"), "JSON-SEQ");
  EXPECT_TRUE(records[0].at("trace").at("vantage_point").at("type").is_string());
  EXPECT_EQ(records[0].at("trace").at("common_fields").at("time_format"), "relative");
  for (std::size_t i = 1; i < records.size(); ++i) {
    const json& record = records[i];
    EXPECT_TRUE(record.at("time").is_number());
    EXPECT_NE(record.at("name").get<std::string>().find(':'), std::string::npos);
    const json& data = record.at("data");
    if (record.at("name") == "transport:packet_sent" ||
        record.at("name") == "transport:packet_received") {
      EXPECT_TRUE(data.at("header").at("packet_type").is_string());
      EXPECT_TRUE(data.at("header").at("packet_number").is_number_unsigned());
      EXPECT_TRUE(data.at("raw").at("length").is_number_unsigned());
      EXPECT_NE(data.at("leeway_type"), "other");
    } else if (record.at("name") == "recovery:metrics_updated") {
      for (const char* const field :
           {"smoothed_rtt", "min_rtt", "bytes_in_flight", "congestion_window", "pacing_rate"})
        EXPECT_TRUE(data.at(field).is_number()) << field;
    }
  }
}

TEST(TracePath, RanksHaveAFileEach) {
  EXPECT_EQ(Trace::path_of("run.sqlog", 3, 8), "run.3.sqlog");
  EXPECT_EQ(Trace::path_of("/tmp/a.b/run", 3, 8), "/tmp/a.b/run.3");
  EXPECT_EQ(Trace::path_of("run.sqlog", 0, 1), "run.sqlog");
}

TEST(Trace, HasEachDatagramOfACommunicatorAndItsCalls) {
  const std::string path = scratch("trace_test.sqlog");
  const auto store = std::make_shared<InprocRendezvous>();
  std::vector<std::thread> ranks;
  std::uint64_t sent = 0;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      Options options;
      options.rank = rank;
      options.world_size = 2;
      options.transport = TransportKind::udp;
      options.store = store;
      options.trace = path;
      auto comm = Communicator::create(options);
      ASSERT_TRUE(comm.ok()) << comm.status().c_str();
      std::vector<float> values(100'000, 1.0F);
      ASSERT_TRUE((*comm)->all_reduce(std::span(values)).ok());
      std::this_thread::sleep_for(250ms);
      ASSERT_TRUE((*comm)->all_reduce(std::span(values)).ok());
      for (const auto& [name, count] : (*comm)->counters()) {
        if (rank == 0 && name == "data_sent") sent = count;
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const int rank : {0, 1}) {
    const auto records = records_of(Trace::path_of(path, rank, 2));
    validate(records);
    std::map<std::string, std::uint64_t> seen;
    for (const json& record : records) {
      if (!record.contains("name")) continue;
      ++seen[record.at("name")];
      if (rank == 0 && record.at("name") == "transport:packet_sent" &&
          record.at("data").at("leeway_type") == "data")
        ++seen["data"];
    }
    EXPECT_EQ(seen["leeway:operation_done"], 2u);
    EXPECT_GE(seen["recovery:metrics_updated"], 2u);
    EXPECT_GT(seen["transport:packet_received"], 0u);
    if (rank == 0 && seen["leeway:events_dropped"] == 0) {
      EXPECT_EQ(seen["data"], sent);
    }
    std::filesystem::remove(Trace::path_of(path, rank, 2));
  }
}

TEST(Trace, EndsWhereItIsFullAndSaysSo) {
  const std::string path = scratch("trace_full_test.sqlog");
  constexpr std::size_t kBytes = 20'000;
  {
    rendezvous::Log log(rendezvous::LogLevel::off, 0);
    Trace trace(std::fopen(path.c_str(), "w"), {}, log, kBytes);
    for (std::uint32_t i = 0; i < 1000; ++i)
      trace.moved(driving::steady_now(), Way::sent, 1, {.sequence = i}, 1440);
  }
  EXPECT_LE(std::filesystem::file_size(path), kBytes);
  const auto records = records_of(path);
  validate(records);
  EXPECT_EQ(records.back().at("name"), "leeway:trace_full");
  std::filesystem::remove(path);
}

TEST(Trace, EndsWhereTheDiskIsFullAndSaysSoOnce) {
  ::testing::internal::CaptureStderr();
  {
    Options options;
    options.trace = "/dev/full";
    rendezvous::Log log(rendezvous::LogLevel::warn, 0);
    Trace trace(std::fopen("/dev/full", "w"), options, log);
    for (int round = 0; round < 3; ++round)
      trace.moved(driving::steady_now(), Way::sent, 1, {.sequence = 1}, 1000);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said,
              ::testing::HasSubstr(
                  "the trace ends early: /dev/full: No space left on device; the job goes on"));
  EXPECT_EQ(said.find("early"), said.rfind("early"));
}

// The path as given must be refused. Opening a pipe without a reader would block. With two ranks, a
// number is added to the path: "/dev/full.1" is no device, and would be created.
TEST(Trace, WhatIsNoPlainFileIsRefusedOnce) {
  const std::string pipe = scratch(("trace_test." + std::to_string(::getpid()) + ".pipe").c_str());
  ::unlink(pipe.c_str());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/full"), ::testing::TempDir()}) {
    for (const int size : {1, 2}) {
      ::testing::internal::CaptureStderr();
      Options options;
      options.rank = 0;
      options.world_size = size;
      options.trace = path;
      EXPECT_EQ(Trace::of(options), nullptr);
      EXPECT_EQ(Trace::of(options), nullptr);
      const std::string said = ::testing::internal::GetCapturedStderr();
      EXPECT_THAT(said, ::testing::HasSubstr("no trace: " + path + ": no plain file"));
      EXPECT_EQ(said.find("no trace: "), said.rfind("no trace: ")) << said;
      EXPECT_FALSE(size > 1 && std::filesystem::exists(Trace::path_of(path, 0, size)));
    }
  }
  std::filesystem::remove(pipe);
}

TEST(Trace, WhatFindsNoRoomIsCounted) {
  const std::string path = scratch("trace_dropped_test.sqlog");
  std::uint64_t written = 0;
  std::uint64_t dropped = 0;
  constexpr std::uint32_t kEvents = 4 * Trace::kNotesMax;
  {
    rendezvous::Log log(rendezvous::LogLevel::off, 0);
    Trace trace(std::fopen(path.c_str(), "w"), {}, log);
    for (std::uint32_t i = 0; i < kEvents; ++i)
      trace.moved({1}, Way::sent, 1, {.sequence = i}, 1440);
  }
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {  // there are too many to parse each
    if (line.find("\"transport:packet_sent\"") != std::string::npos) ++written;
    if (line.find("\"leeway:events_dropped\"") != std::string::npos)
      dropped += json::parse(line.substr(1)).at("data").at("count").get<std::uint64_t>();
  }
  EXPECT_EQ(written + dropped, kEvents);
  std::filesystem::remove(path);
}

TEST(Trace, AFileThatCannotBeWrittenEndsNothing) {
  Options options;
  options.trace = "/nonexistent/run.sqlog";
  options.log_level = "off";
  EXPECT_EQ(Trace::of(options), nullptr);
}

}  // namespace
}  // namespace leeway::observe
