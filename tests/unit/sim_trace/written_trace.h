// Traces that tests write by hand, and files for them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "trace/trace_reader.h"
#include "trace/trace_writer.h"
#include "wire/packet.h"

namespace leeway::sim::trace {

class TraceFiles : public testing::Test {
 protected:
  TraceFiles() {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("leeway-") + test->test_suite_name() + "-" + test->name() + "-" +
               std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~TraceFiles() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

  std::unique_ptr<TraceWriter> open(const std::string& name, TraceOptions options = {}) const {
    if (options.ranks == 0) options.ranks = 4;
    if (options.scenario.empty()) options.scenario = "made by hand";
    options.link_name = [](LinkId link) { return "uplink " + std::to_string(link); };
    auto writer = TraceWriter::open(path(name), std::move(options));
    EXPECT_TRUE(writer.ok()) << writer.status().c_str();
    return std::move(*writer);
  }

 private:
  std::filesystem::path folder_;
};

inline sim::Packet packet_of(std::uint32_t from, std::uint32_t to, std::uint32_t bytes = 1500) {
  sim::Packet packet;
  packet.from = from;
  packet.to = to;
  packet.bytes = bytes;
  return packet;
}

// Makes a data datagram with `payload` zeros.
inline std::vector<std::byte> data_datagram(std::uint32_t round, std::uint32_t index,
                                            std::size_t payload = 1000) {
  std::vector<std::byte> datagram(wire::kDataHeaderBytes + payload);
  const wire::Prefix prefix{
      .type = wire::PacketType::data, .epoch = 7, .source = 1, .destination = 2, .sequence = 3};
  wire::DataHeader header;
  header.round = round;
  header.index = {index};
  header.position = {index};
  header.flow_packets = 64;
  wire::encode_data(prefix, header, 0, datagram);
  return datagram;
}

// Reads a trace to its end. Returns the error if that fails.
inline Status read_all(const std::string& path, std::vector<Packet>* packets = nullptr) {
  Result<TraceReader> reader = TraceReader::open(path);
  if (!reader.ok()) return reader.status();
  for (;;) {
    const Result<const Packet*> next = reader->next();
    if (!next.ok()) return next.status();
    if (*next == nullptr) return {};
    if (packets != nullptr) packets->push_back(**next);
  }
}

}  // namespace leeway::sim::trace
