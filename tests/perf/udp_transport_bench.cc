// Speed of the UDP transport over loopback, a line for each setting. A line has the processor time
// a byte of each side, when one thread sends and receives in turns; this time is steady on a busy
// machine. It also has the throughput between two threads, which can be compared within one run
// only. Figures, also of a bare sendmmsg/recvmmsg loop: src/runtime/transport/README.md.
//
//   udp_transport_bench [seconds per setting]
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
using leeway::transport::UdpAddress;
using leeway::transport::UdpOptions;
using leeway::transport::UdpTransport;

struct Setting {
  std::size_t datagram_bytes;
  std::size_t datagrams;  // datagrams in a GSO batch
  bool gso;
  bool gro;
  // Header bytes that are gathered in front of each payload; with 0, a train is one slice.
  std::size_t header_bytes;
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

// Returns two slices for each datagram, a header and a payload, as the runtime makes them. With
// header_bytes = 0, returns one slice for the whole train.
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

double thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Cost {
  double send = 0.0;     // ns a byte
  double receive = 0.0;  // includes reading every byte once
};

Cost measure_cost(const Setting& setting) {
  constexpr int kRounds = 400;
  constexpr std::size_t kTrains = 32;
  Pair pair = connect(setting);
  const std::vector<std::byte> memory(setting.datagrams * setting.datagram_bytes);
  const std::vector<Slice> slices = lay_out(setting, memory);
  const std::vector<Train> trains(kTrains, Train{1, setting.datagram_bytes, memory.size(), slices});
  std::vector<Received> out(256);
  std::vector<double> send_costs;
  std::vector<double> receive_costs;
  volatile std::uint64_t read = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double start = thread_cpu_ns();
    pair[0]->send(trains);
    const double sent = thread_cpu_ns();
    std::size_t bytes = 0;
    std::uint64_t sum = 0;
    while (const std::size_t count = pair[1]->receive(out)) {
      for (std::size_t i = 0; i < count; ++i) {
        bytes += out[i].bytes.size();
        for (std::size_t at = 0; at + 8 <= out[i].bytes.size(); at += 8) {
          std::uint64_t word = 0;
          std::memcpy(&word, out[i].bytes.data() + at, 8);
          sum += word;
        }
      }
    }
    read = read + sum;
    const double received = thread_cpu_ns();
    send_costs.push_back((sent - start) / static_cast<double>(bytes));
    receive_costs.push_back((received - sent) / static_cast<double>(bytes));
  }
  return {median(send_costs), median(receive_costs)};
}

double throughput(const Setting& setting, double seconds) {
  Pair pair = connect(setting);
  const std::vector<std::byte> memory(setting.datagrams * setting.datagram_bytes);
  const std::vector<Slice> slices = lay_out(setting, memory);
  const std::vector<Train> trains(4, Train{1, setting.datagram_bytes, memory.size(), slices});
  std::atomic<bool> stop{false};
  // At most `window` bytes are in flight. Otherwise the receiver's queue would overflow, and the
  // figure would measure drops.
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
    if (sent - arrived.load(std::memory_order_relaxed) + trains.size() * memory.size() > window)
      continue;
    sent += pair[0]->send(trains) * memory.size();
  }
  const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  const std::uint64_t received = arrived.load();
  stop = true;
  pair[1]->wake();
  receiver.join();
  return static_cast<double>(received) / elapsed * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
  const Setting settings[] = {
      {1472, 44, false, false, 0}, {1472, 44, true, false, 0}, {1472, 44, true, true, 0},
      {1472, 44, true, true, 52},  {8972, 7, false, false, 0}, {8972, 7, true, true, 0},
      {8972, 7, true, true, 52},
  };
  std::printf("%8s %6s %4s %4s %7s %10s %13s %6s\n", "datagram", "train", "GSO", "GRO", "slices",
              "send ns/B", "receive ns/B", "GB/s");
  for (const Setting& setting : settings) {
    const Cost cost = measure_cost(setting);
    std::printf("%8zu %6zu %4d %4d %7zu %10.3f %13.3f %6.2f\n", setting.datagram_bytes,
                setting.datagrams, setting.gso, setting.gro,
                setting.header_bytes > 0 ? 2 * setting.datagrams : 1, cost.send, cost.receive,
                throughput(setting, seconds));
  }
}
