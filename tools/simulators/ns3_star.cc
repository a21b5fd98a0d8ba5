// The ns-3 program of tools/compare_simulators: 8 hosts at one router; host i sends to host i + 1
// at a constant rate, and the last line of each packet loses it with a fixed probability.
//
// It writes no traces, and counts only the packets that each receiver gets. --lean also removes
// what ns-3's helpers add by default: queue disciplines before each line, and global routing beside
// static routing. The case must be the same as in tests/perf/sim_star_bench.cc.
//
//   ns3_star [--packets=N] [--seed=N] [--lean]
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

namespace {

constexpr std::uint32_t kHosts = 8;
constexpr std::uint32_t kPayloadBytes = 1440;
constexpr std::uint32_t kQueuePackets = 100;
constexpr std::int64_t kIntervalNs = 14400;  // interval of one source: 800 Mb/s of payload
constexpr double kLoss = 0.01;
constexpr std::uint16_t kPort = 9;

struct Star {
  ns3::NodeContainer hosts;
  ns3::NodeContainer router;
  ns3::Ipv4Address addresses[kHosts];
};

void lose_on_arrival(const ns3::Ptr<ns3::NetDevice>& device) {
  auto errors = ns3::CreateObject<ns3::RateErrorModel>();
  errors->SetUnit(ns3::RateErrorModel::ERROR_UNIT_PACKET);
  errors->SetRate(kLoss);
  ns3::DynamicCast<ns3::PointToPointNetDevice>(device)->SetReceiveErrorModel(errors);
}

// Connects each host with the router. Host h is 10.1.h.1, and its router port 10.1.h.2.
void connect(Star& star, bool lean) {
  ns3::PointToPointHelper line;
  line.SetDeviceAttribute("DataRate", ns3::StringValue("1Gbps"));
  line.SetChannelAttribute("Delay", ns3::StringValue("1ms"));
  line.SetQueue("ns3::DropTailQueue", "MaxSize",
                ns3::QueueSizeValue(ns3::QueueSize(ns3::QueueSizeUnit::PACKETS, kQueuePackets)));
  for (std::uint32_t h = 0; h < kHosts; ++h) {
    const ns3::NetDeviceContainer ends = line.Install(star.hosts.Get(h), star.router.Get(0));
    lose_on_arrival(ends.Get(0));
    const std::string network = "10.1." + std::to_string(h) + ".0";
    const auto interfaces = ns3::Ipv4AddressHelper(network.c_str(), "255.255.255.0").Assign(ends);
    star.addresses[h] = interfaces.GetAddress(0);
    if (!lean) continue;
    ns3::TrafficControlHelper().Uninstall(ends);
    ns3::Ipv4StaticRoutingHelper()
        .GetStaticRouting(star.hosts.Get(h)->GetObject<ns3::Ipv4>())
        ->SetDefaultRoute(interfaces.GetAddress(1), 1);
  }
}

Star make_star(bool lean) {
  Star star;
  star.hosts.Create(kHosts);
  star.router.Create(1);
  ns3::InternetStackHelper internet;
  const ns3::Ipv4StaticRoutingHelper static_routing;
  if (lean) internet.SetRoutingHelper(static_routing);
  internet.Install(star.hosts);
  internet.Install(star.router);
  connect(star, lean);
  if (!lean) ns3::Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  return star;
}

ns3::ApplicationContainer add_receivers(const Star& star) {
  return ns3::UdpServerHelper(kPort).Install(star.hosts);
}

void add_sources(const Star& star, std::uint32_t packets_each) {
  for (std::uint32_t h = 0; h < kHosts; ++h) {
    ns3::UdpClientHelper source(star.addresses[(h + 1) % kHosts], kPort);
    source.SetAttribute("MaxPackets", ns3::UintegerValue(packets_each));
    source.SetAttribute("Interval", ns3::TimeValue(ns3::NanoSeconds(kIntervalNs)));
    source.SetAttribute("PacketSize", ns3::UintegerValue(kPayloadBytes));
    source.Install(star.hosts.Get(h)).Start(ns3::NanoSeconds(h * kIntervalNs / kHosts));
  }
}

std::uint64_t delivered(const ns3::ApplicationContainer& receivers) {
  std::uint64_t sum = 0;
  for (std::uint32_t h = 0; h < receivers.GetN(); ++h) {
    sum += ns3::DynamicCast<ns3::UdpServer>(receivers.Get(h))->GetReceived();
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint32_t packets = 1000000;
  std::uint32_t seed = 1;
  bool lean = false;
  ns3::CommandLine arguments;
  arguments.AddValue("packets", "sent by all sources together; a multiple of 8", packets);
  arguments.AddValue("seed", "of the losses", seed);
  arguments.AddValue("lean", "without what helpers add unasked", lean);
  arguments.Parse(argc, argv);
  ns3::RngSeedManager::SetSeed(seed);

  const Star star = make_star(lean);
  const ns3::ApplicationContainer receivers = add_receivers(star);
  add_sources(star, packets / kHosts);

  const std::clock_t begin = std::clock();
  ns3::Simulator::Run();
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::printf(
      "{\"sent\": %u, \"delivered\": %llu, \"events\": %llu, "
      "\"seconds\": %.6f}\n",
      packets / kHosts * kHosts, static_cast<unsigned long long>(delivered(receivers)),
      static_cast<unsigned long long>(ns3::Simulator::GetEventCount()), seconds);
  ns3::Simulator::Destroy();
}
