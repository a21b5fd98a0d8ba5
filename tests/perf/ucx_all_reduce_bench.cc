// Exact all-reduce of float32 between processes of one host, over UCX and over UDP with Leeway's
// own repair, in turns: time (median over iterations of the slowest rank's) and processor time of
// all ranks together, per call. Figures: src/transport/README.md.
//
//   ucx_all_reduce_bench [--ranks N] [--iters N] [--turns N] [--window BYTES] [--only udp|ucx]
//                        [--sizes BYTES,BYTES,...]
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "runtime/communicator_core.h"
#include "transport/ucx/ucx_transport.h"
#include "transport/udp/udp_transport.h"

namespace {

using namespace leeway;

constexpr int kRanksMax = 16;
constexpr int kIterationsMax = 1000;

struct Settings {
  int ranks = 4;
  int iterations = 20;
  int turns = 3;
  std::size_t window_bytes = 1u << 20;  // on its way to one peer
  std::string only;
  std::vector<std::size_t> sizes = {4096, 262144, 2097152, 16777216};
};

// What the ranks tell each other; in memory that fork() shares.
struct Board {
  pthread_barrier_t barrier;
  std::array<std::array<std::byte, transport::UcxTransport::kAddressBytesMax>, kRanksMax> address;
  std::array<std::size_t, kRanksMax> address_bytes;
  std::array<std::uint16_t, kRanksMax> port;
  std::array<std::array<double, kIterationsMax>, kRanksMax> time_us;
  std::array<double, kRanksMax> cpu_us;
  std::array<std::size_t, kRanksMax> wrong;
};

void meet(Board& board) {
  pthread_barrier_wait(&board.barrier);
}

[[noreturn]] void give_up(const Status& status) {
  std::fprintf(stderr, "%s\n", status.c_str());
  std::_Exit(1);
}

std::unique_ptr<DatagramTransport> open_udp(Board& board, int rank, int ranks) {
  auto udp = transport::UdpTransport::open({});
  if (!udp.ok()) give_up(udp.status());
  board.port[rank] = (*udp)->local_address().port();
  meet(board);
  std::vector<transport::UdpAddress> peers;
  for (int i = 0; i < ranks; ++i)
    peers.emplace_back(asio::ip::address_v4::loopback(), board.port[i]);
  if (Status status = (*udp)->set_peers(peers); !status.ok()) give_up(status);
  return std::move(*udp);
}

std::unique_ptr<DatagramTransport> open_ucx(Board& board, int rank, int ranks) {
  auto ucx = transport::UcxTransport::open({});
  if (!ucx.ok()) give_up(ucx.status());
  const auto& own = (*ucx)->local_address();
  std::copy(own.begin(), own.end(), board.address[rank].begin());
  board.address_bytes[rank] = own.size();
  meet(board);
  std::vector<std::vector<std::byte>> peers;
  for (int i = 0; i < ranks; ++i) {
    peers.emplace_back(board.address[i].begin(), board.address[i].begin() + board.address_bytes[i]);
  }
  if (Status status = (*ucx)->set_peers(peers, static_cast<Rank>(rank)); !status.ok())
    give_up(status);
  return std::move(*ucx);
}

double cpu_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

void run_rank(Board& board, const Settings& settings, const std::string& name, int rank,
              std::size_t bytes) {
  Options options;
  options.rank = rank;
  options.world_size = settings.ranks;
  auto wire =
      name == "ucx" ? open_ucx(board, rank, settings.ranks) : open_udp(board, rank, settings.ranks);
  protocol::EndpointConfig config;
  config.self = static_cast<Rank>(rank);
  config.size = settings.ranks;
  config.datagram_bytes = wire->limits().datagram_bytes_max;
  const std::size_t share = wire->limits().receive_buffer_bytes / std::max(1, settings.ranks - 1);
  config.window_bytes.assign(settings.ranks, std::min(share, settings.window_bytes));
  internal::CommunicatorCore core(options, config, std::move(wire), nullptr);
  if (Status status = core.prove_paths(std::chrono::seconds(20)); !status.ok()) give_up(status);

  std::vector<float> input(bytes / sizeof(float));
  std::vector<float> output(input.size());
  for (std::size_t i = 0; i < input.size(); ++i)
    input[i] = static_cast<float>((i * 7 + rank * 13) % 61);
  collective::OperationSpec reduce;
  reduce.kind = collective::OperationKind::all_reduce;
  reduce.input = {input.data(), input.size(), DataType::f32};
  reduce.output = {output.data(), output.size(), DataType::f32};
  reduce.options.delivery = exact(std::chrono::seconds(60));
  collective::OperationSpec barrier;
  barrier.kind = collective::OperationKind::barrier;
  barrier.options.delivery = exact(std::chrono::seconds(60));

  double used = 0.0;
  for (int i = -5; i < settings.iterations; ++i) {
    if (const auto met = core.run(barrier); !met.ok()) give_up(met.status());
    const double before = cpu_us();
    const auto start = std::chrono::steady_clock::now();
    if (const auto report = core.run(reduce); !report.ok()) give_up(report.status());
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - start;
    if (i < 0) continue;
    used += cpu_us() - before;
    board.time_us[rank][i] = taken.count();
  }
  board.cpu_us[rank] = used / settings.iterations;
  board.wrong[rank] = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    float sum = 0;
    for (int peer = 0; peer < settings.ranks; ++peer)
      sum += static_cast<float>((i * 7 + peer * 13) % 61);
    board.wrong[rank] += output[i] != sum;
  }
  meet(board);
}

void measure(Board& board, const Settings& settings, const std::string& name, std::size_t bytes) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < settings.ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      run_rank(board, settings, name, rank, bytes);
      std::exit(0);
    }
    children.push_back(child);
  }
  bool failed = false;
  for (std::size_t i = 0; i < children.size(); ++i) {
    int status = 0;
    wait(&status);
    failed |= status != 0;
  }
  if (failed) std::exit(1);
  std::vector<double> slowest(settings.iterations, 0.0);
  double cpu = 0.0;
  std::size_t wrong = 0;
  for (int rank = 0; rank < settings.ranks; ++rank) {
    for (int i = 0; i < settings.iterations; ++i)
      slowest[i] = std::max(slowest[i], board.time_us[rank][i]);
    cpu += board.cpu_us[rank];
    wrong += board.wrong[rank];
  }
  std::sort(slowest.begin(), slowest.end());
  const double median = slowest[slowest.size() / 2];
  const double busbw =
      2.0 * (settings.ranks - 1) / settings.ranks * static_cast<double>(bytes) / median / 1e3;
  std::printf("%5s %5d %10zu %12.1f %8.3f %12.1f %6zu\n", name.c_str(), settings.ranks, bytes,
              median, busbw, cpu, wrong);
  std::fflush(stdout);
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--ranks") settings.ranks = std::min(std::atoi(argv[i + 1]), kRanksMax);
    if (name == "--iters")
      settings.iterations = std::clamp(std::atoi(argv[i + 1]), 1, kIterationsMax);
    if (name == "--turns") settings.turns = std::atoi(argv[i + 1]);
    if (name == "--window") settings.window_bytes = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--only") settings.only = argv[i + 1];
    if (name != "--sizes") continue;
    settings.sizes.clear();
    for (char* at = std::strtok(argv[i + 1], ","); at != nullptr; at = std::strtok(nullptr, ",")) {
      settings.sizes.push_back(std::strtoull(at, nullptr, 10));
    }
  }
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = parse(argc, argv);
  void* shared =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  Board& board = *new (shared) Board;
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&board.barrier, &attributes, static_cast<unsigned>(settings.ranks));
  std::printf("%5s %5s %10s %12s %8s %12s %6s\n", "", "ranks", "bytes", "time us", "GB/s", "cpu us",
              "wrong");
  std::fflush(stdout);
  for (int turn = 0; turn < settings.turns; ++turn) {
    for (const std::size_t bytes : settings.sizes) {
      for (const std::string name : {"udp", "ucx"}) {
        if (settings.only.empty() || settings.only == name) measure(board, settings, name, bytes);
      }
    }
  }
}
