// How fast the UDP transport moves trains between two threads over loopback. Prints one line per setting; compare with
// the raw figures for sendmmsg/recvmmsg in src/transport/README.md, on the same machine and in the same run.
//
//   udp_transport_bench [seconds per setting]
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "transport/udp/udp_transport.h"

namespace {

using Clock = std::chrono::steady_clock;
using leeway::Rank;
using leeway::Received;
using leeway::Slice;
using leeway::Train;
using leeway::TransportCounters;
using leeway::transport::UdpAddress;
using leeway::transport::UdpOptions;
using leeway::transport::UdpTransport;

struct Setting {
  std::size_t datagram_bytes;
  std::size_t datagrams;  // of a train
  bool gso;
  bool gro;
  std::size_t header_bytes;  // gathered in front of each payload; 0: one slice a train
};

using Pair = std::vector<std::unique_ptr<UdpTransport>>;

Pair connect(const Setting& setting) {
  Pair pair;
  std::vector<UdpAddress> addresses;
  for (int rank = 0; rank < 2; ++rank) {
    UdpOptions options;
    options.datagram_bytes = setting.datagram_bytes;
    options.use_gso = setting.gso;
    options.use_gro = setting.gro;
    auto opened = UdpTransport::open(options);
    if (!opened.ok()) {
      std::fprintf(stderr, "%s\n", opened.status().c_str());
      std::exit(1);
    }
    pair.push_back(std::move(*opened));
    addresses.push_back(pair.back()->local_address());
  }
  for (auto& transport : pair) {
    if (!transport->set_peers(addresses).ok()) std::exit(1);
  }
  return pair;
}

// Two slices a datagram, as the runtime has them, or one slice a train.
std::vector<Slice> lay_out(const Setting& setting, const std::vector<std::byte>& memory) {
  std::vector<Slice> slices;
  const std::byte* at = memory.data();
  for (std::size_t i = 0; setting.header_bytes > 0 && i < setting.datagrams; ++i) {
    slices.push_back({at, setting.header_bytes});
    slices.push_back({at + setting.header_bytes, setting.datagram_bytes - setting.header_bytes});
    at += setting.datagram_bytes;
  }
  if (slices.empty()) slices.push_back({at, setting.datagrams * setting.datagram_bytes});
  return slices;
}

void measure(const Setting& setting, double seconds) {
  Pair pair = connect(setting);
  const std::vector<std::byte> memory(setting.datagrams * setting.datagram_bytes);
  const std::vector<Slice> slices = lay_out(setting, memory);
  const std::vector<Train> trains(4, Train{1, setting.datagram_bytes, memory.size(), slices});
  std::atomic<bool> stop{false};
  // A window of a quarter of the socket buffer in flight: without one the receiver's queue overflows and the figure
  // is about drops.
  const std::size_t window = pair[1]->limits().receive_buffer_bytes / 2;
  std::atomic<std::uint64_t> arrived{0};
  std::thread receiver([&] {
    std::vector<Received> out(256);
    std::uint64_t bytes = 0;
    while (!stop.load(std::memory_order_relaxed)) {
      const std::size_t count = pair[1]->receive(out);
      for (std::size_t i = 0; i < count; ++i) bytes += out[i].bytes.size();
      arrived.store(bytes, std::memory_order_relaxed);
      if (count == 0) pair[1]->wait(std::chrono::milliseconds(1));
    }
  });
  std::uint64_t sent = 0;
  const auto start = Clock::now();
  while (std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    if (sent - arrived.load(std::memory_order_relaxed) + trains.size() * memory.size() > window) continue;
    sent += pair[0]->send(trains) * memory.size();
  }
  const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  const std::uint64_t received = arrived.load();
  stop = true;
  pair[1]->wake();
  receiver.join();
  const TransportCounters counters = pair[1]->counters();
  std::printf("%5zu x %2zu  gso %d gro %d  %3zu slices  %6.2f GB/s  drops %llu  %5.1f datagrams/receive\n",
              setting.datagram_bytes, setting.datagrams, setting.gso, setting.gro, slices.size(),
              static_cast<double>(received) / elapsed * 1e-9,
              static_cast<unsigned long long>(counters.kernel_drops),
              static_cast<double>(counters.datagrams_received) / static_cast<double>(counters.receive_calls));
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
  const Setting settings[] = {
      {1472, 44, false, false, 0}, {1472, 44, true, false, 0}, {1472, 44, true, true, 0},
      {1472, 44, true, true, 52},  {8972, 7, false, false, 0}, {8972, 7, true, true, 0},
      {8972, 7, true, true, 52},
  };
  for (const Setting& setting : settings) measure(setting, seconds);
}
