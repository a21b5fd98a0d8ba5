// A seed must lose the same packets over any transport and in any order of arrival.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "transport/fault/fault_transport.h"
#include "transport/inproc/inproc_transport.h"
#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

constexpr std::uint32_t kPackets = 400;

std::unique_ptr<DatagramTransport> with_faults(std::unique_ptr<DatagramTransport> transport,
                                               const FaultOptions& options) {
  return std::make_unique<FaultTransport>(std::move(transport), Rank{0},
                                          impairment::FaultPlan::create(options).value(),
                                          [] { return Instant{}; });
}

// Sends all packets of a flow from rank 1 to rank 0, in an order drawn from `shuffle`. Returns the
// indices that arrive.
std::set<std::uint32_t> arrivals(DatagramTransport& from, DatagramTransport& to, unsigned shuffle) {
  std::vector<std::uint32_t> order(kPackets);
  for (std::uint32_t i = 0; i < kPackets; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(shuffle));
  std::set<std::uint32_t> indices;
  for (const std::uint32_t index : order) {
    const OwnedTrain train(0, 1472, data_packet(index, kPackets));
    send_one(from, train.train);
  }
  // The end is marked by a datagram that is not Leeway's, so no fault hits it.
  const OwnedTrain last(0, 1472, pattern(10));
  send_one(from, last.train);
  for (bool ended = false; !ended;) {
    for (const Bytes& packet : receive_all(to, 1)) {
      ended = ended || packet.size() == 10;
      if (packet.size() != 10) indices.insert(index_of(packet));
    }
  }
  return indices;
}

std::set<std::uint32_t> over_inproc(const FaultOptions& options, unsigned shuffle) {
  auto group = make_inproc_group(2);
  const auto receiver = with_faults(std::move(group[0]), options);
  return arrivals(*group[1], *receiver, shuffle);
}

std::set<std::uint32_t> over_udp(const FaultOptions& options, unsigned shuffle) {
  auto group = make_udp_group(2);
  UdpTransport& sender = *group[1];
  const auto receiver = with_faults(std::move(group[0]), options);
  return arrivals(sender, *receiver, shuffle);
}

class FaultReplay : public testing::TestWithParam<double> {};

TEST_P(FaultReplay, LosesTheSamePacketsOverAnyTransportInAnyOrder) {
  const FaultOptions options{.loss = 0.2, .burst = GetParam(), .seed = 42};
  const std::set<std::uint32_t> expected = over_inproc(options, 1);
  EXPECT_LT(expected.size(), kPackets);
  EXPECT_GT(expected.size(), kPackets / 2);
  EXPECT_EQ(over_inproc(options, 2), expected);
  EXPECT_EQ(over_udp(options, 1), expected);
  EXPECT_EQ(over_udp(options, 3), expected);
}

INSTANTIATE_TEST_SUITE_P(Bursts, FaultReplay, testing::Values(1.0, 8.0), [](const auto& test) {
  return "Burst" + std::to_string(static_cast<int>(test.param));
});

}  // namespace
}  // namespace leeway::transport
