// Lower bound on the cost of a large all-reduce over UDP: the processor time that its bytes take in
// the kernel and in memory, without a protocol.
//
//   byte_floor_bench [--ranks N] [--bytes B] [--json]
//
// Measures three costs in ns a byte, as medians of thread time: sending and receiving GSO batches
// of 64 KiB over loopback (UDP_SEGMENT, UDP_GRO), a float32 sum of two vectors into the first, and
// memcpy. Sum and memcpy work on memory larger than the caches. All N ranks of an all-reduce of B
// bytes together send 2 (N - 1) B over the network, sum (N - 1) B, and copy (N - 1) B of received
// results to their place. The bound is the sum of these costs, divided by the number of cores.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace {

constexpr int kDatagramBytes = 8972;  // as Leeway's datagrams are on loopback
constexpr std::size_t kTrainBytes = std::size_t{kDatagramBytes} * 7;
constexpr int kTrains = 32;  // number sent before any is received
constexpr int kRounds = 200;
constexpr std::size_t kMemoryBytes = std::size_t{64} << 20;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

double thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Keeps the compiler from removing writes to memory that nobody reads.
void keep(const void* memory) {
  asm volatile("" : : "r"(memory) : "memory");
}

template <typename Work>
double median_ns(int rounds, Work&& work) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const double start = thread_ns();
    work();
    times.push_back(thread_ns() - start);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds) / 2];
}

std::array<int, 2> connected_pair() {
  std::array<int, 2> sockets{};
  std::array<sockaddr_in, 2> addresses{};
  const int buffer = 16 * 1024 * 1024;
  const int on = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    sockets[i] = ::socket(AF_INET, SOCK_DGRAM, 0);
    addresses[i].sin_family = AF_INET;
    addresses[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(sockaddr_in);
    auto* const address = reinterpret_cast<sockaddr*>(&addresses[i]);
    if (sockets[i] < 0 || ::bind(sockets[i], address, length) != 0 ||
        ::getsockname(sockets[i], address, &length) != 0 ||
        ::setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)) != 0 ||
        ::setsockopt(sockets[i], SOL_UDP, UDP_GRO, &on, sizeof(on)) != 0 ||
        ::setsockopt(sockets[i], SOL_UDP, UDP_SEGMENT, &kDatagramBytes, sizeof(int)) != 0) {
      give_up("socket");
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (::connect(sockets[i], reinterpret_cast<sockaddr*>(&addresses[1 - i]),
                  sizeof(sockaddr_in)) != 0)
      give_up("connect");
  }
  return sockets;
}

// Returns the cost of sending and receiving in ns a byte.
double measure_network() {
  const std::array<int, 2> sockets = connected_pair();
  const int sender = sockets[0];
  const int receiver = sockets[1];
  const std::vector<std::byte> train(kTrainBytes);
  std::vector<std::byte> room(64 * 1024);
  std::size_t arrived = 0;
  const double ns = median_ns(kRounds, [&] {
    arrived = 0;
    for (int i = 0; i < kTrains; ++i) {
      if (::send(sender, train.data(), train.size(), 0) < 0) give_up("send");
    }
    for (ssize_t got = 0; (got = ::recv(receiver, room.data(), room.size(), MSG_DONTWAIT)) > 0;)
      arrived += static_cast<std::size_t>(got);
  });
  ::close(sender);
  ::close(receiver);
  if (arrived == 0) give_up("nothing arrived");
  return ns / static_cast<double>(arrived);
}

double measure_sum() {
  std::vector<float> sum(kMemoryBytes / sizeof(float), 1.0f);
  const std::vector<float> values(sum.size(), 1.0f);
  const double ns = median_ns(9, [&] {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
    keep(sum.data());
  });
  return ns / static_cast<double>(kMemoryBytes);
}

double measure_copy() {
  std::vector<std::byte> to(kMemoryBytes);
  const std::vector<std::byte> from(kMemoryBytes);
  const double ns = median_ns(9, [&] {
    std::memcpy(to.data(), from.data(), to.size());
    keep(to.data());
  });
  return ns / static_cast<double>(kMemoryBytes);
}

}  // namespace

int main(int argc, char** argv) {
  double ranks = 4;
  double bytes = 16 * 1024 * 1024;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--json") json = true;
    if (word == "--ranks" && i + 1 < argc) ranks = std::atof(argv[++i]);
    if (word == "--bytes" && i + 1 < argc) bytes = std::atof(argv[++i]);
  }
  if (!(ranks >= 2) || !(bytes > 0)) {
    std::fprintf(stderr, "usage: byte_floor_bench [--ranks N] [--bytes B] [--json]\n");
    return 2;
  }
  const double network = measure_network();
  const double sum = measure_sum();
  const double copy = measure_copy();
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  const double floor_us = (ranks - 1) * bytes * (2 * network + sum + copy) / cores * 1e-3;
  std::printf(json ? "{\"network_ns\":%.4f,\"sum_ns\":%.4f,\"copy_ns\":%.4f,\"floor_us\":%.2f}\n"
                   : "ns a byte: sent and received %.3f, summed %.3f, copied %.3f; floor %.1f us\n",
              network, sum, copy, floor_us);
}
