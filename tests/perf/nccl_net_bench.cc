// Cost of NCCL's network plugin beside Leeway's own exact send and recv: 512 KiB messages, eight in
// progress, as NCCL's rings send them; and 8 bytes there and back. Two processes over UDP on
// loopback. Leeway's messages are plain and sealed; the plugin's are plain, and sealed in another
// pair of processes.
//
// The plugin and Leeway's calls take turns, so that other load on the machine disturbs all alike.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "interop/nccl_net/functions.h"
#include "leeway/communicator.h"
#include "leeway/rendezvous.h"
#include "support/secret_line.h"

namespace leeway {
namespace {

constexpr int kTurns = 40;
constexpr std::size_t kBytes = std::size_t{512} << 10;
constexpr int kMessages = 128;
constexpr int kSteps = 8;  // NCCL_STEPS
constexpr int kPings = 300;

using Handle = std::array<char, LEEWAY_NCCL_NET_HANDLE_BYTES>;

const leeway_nccl_net_functions& net = leeway_nccl_net_functions_0;

void must(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Pipe {
  int in;
  int out;
  void write_handle(const Handle& handle) const {
    must(::write(out, handle.data(), handle.size()) == static_cast<ssize_t>(handle.size()),
         "write");
  }
  Handle read_handle() const {
    Handle handle;
    must(::read(in, handle.data(), handle.size()) == static_cast<ssize_t>(handle.size()), "read");
    return handle;
  }
};

// One rank's communicators, and its connection of the plugin in each direction.
struct Side {
  int rank = 0;
  std::array<std::unique_ptr<Communicator>, 2> own;  // plain and sealed
  void* out = nullptr;
  void* in = nullptr;
  std::array<std::vector<char>, kSteps> memory;

  Rank peer() const { return static_cast<Rank>(1 - rank); }
};

std::unique_ptr<Communicator> join_own(int rank, const std::string& folder, bool sealed) {
  Options options;
  if (sealed) options.secret = secret_digits('7');
  options.communicator_name = sealed ? "sealed" : "plain";
  options.store = std::make_shared<FileRendezvous>(folder);
  options.bind_address = "127.0.0.1";
  options.transport = TransportKind::udp;
  options.rank = rank;
  options.world_size = 2;
  auto made = Communicator::create(options);
  must(made.ok(), made.ok() ? "" : made.status().c_str());
  return std::move(*made);
}

Side join(int rank, const std::string& folder, const Pipe& pipe) {
  Side side;
  side.rank = rank;
  side.memory.fill(std::vector<char>(kBytes));
  side.own = {join_own(rank, folder, false), join_own(rank, folder, true)};
  must(net.init(nullptr) == 0, "init");
  Handle handle;
  void* listener = nullptr;
  must(net.listen(0, handle.data(), &listener) == 0, "listen");
  pipe.write_handle(handle);
  const Handle other = pipe.read_handle();
  while (side.in == nullptr || side.out == nullptr) {
    if (side.out == nullptr) must(net.connect(0, other.data(), &side.out) == 0, "connect");
    if (side.in == nullptr) must(net.accept(listener, &side.in) == 0, "accept");
    sched_yield();
  }
  must(net.close_listen(listener) == 0, "closeListen");
  return side;
}

// Rank 0 sends to rank 1, with `kSteps` messages in progress.
void stream_own(Side& side, Communicator& own) {
  CollectiveOptions options;
  options.delivery = exact(no_deadline);
  std::deque<Work> works;
  for (int i = 0; i < kMessages; ++i) {
    if (works.size() == kSteps) {
      must(works.front().wait().ok(), "wait");
      works.pop_front();
    }
    auto& memory = side.memory[i % kSteps];
    works.push_back(side.rank == 0
                        ? own.send_async({memory.data(), kBytes, DataType::u8}, 1, options)
                        : own.recv_async({memory.data(), kBytes, DataType::u8}, 0, options));
  }
  for (Work& work : works) must(work.wait().ok(), "wait");
}

void* begin(Side& side, bool sends, void* data, std::size_t bytes) {
  void* request = nullptr;
  const int result = sends ? net.send(side.out, data, bytes, &request)
                           : net.receive(side.in, 1, &data, &bytes, &request);
  must(result == 0 && request != nullptr, "isend, irecv");
  return request;
}

// Waits for a request of the plugin by polling and yielding, as NCCL's proxy thread does.
void finish(void* request) {
  int done = 0;
  while (true) {
    must(net.test(request, &done, nullptr) == 0, "test");
    if (done != 0) return;
    sched_yield();
  }
}

void stream_plugin(Side& side) {
  std::deque<void*> requests;
  for (int i = 0; i < kMessages; ++i) {
    if (requests.size() == kSteps) {
      finish(requests.front());
      requests.pop_front();
    }
    requests.push_back(begin(side, side.rank == 0, side.memory[i % kSteps].data(), kBytes));
  }
  for (void* const request : requests) finish(request);
}

void ping_own(Side& side, Communicator& own) {
  CollectiveOptions options;
  options.delivery = exact(no_deadline);
  for (int i = 0; i < kPings; ++i) {
    for (const bool sends : {side.rank == 0, side.rank != 0}) {
      char* const data = side.memory[0].data();
      const auto report = sends ? own.send({data, 8, DataType::u8}, side.peer(), options)
                                : own.recv({data, 8, DataType::u8}, side.peer(), options);
      must(report.ok(), "send, recv");
    }
  }
}

void ping_plugin(Side& side) {
  for (int i = 0; i < kPings; ++i) {
    for (const bool sends : {side.rank == 0, side.rank != 0})
      finish(begin(side, sends, side.memory[0].data(), 8));
  }
}

constexpr int kWays = 3;  // own plain, own sealed, the plugin
using Ways = std::array<std::function<void()>, kWays>;

std::array<double, kWays> measure(int per_turn, const Ways& ways) {
  std::array<std::vector<double>, kWays> times;
  for (const auto& way : ways) way();
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int i = 0; i < kWays; ++i) {
      const int way = (turn + i) % kWays;
      const auto start = std::chrono::steady_clock::now();
      ways[way]();
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - start;
      times[way].push_back(took.count() / per_turn);
    }
  }
  return {median(times[0]), median(times[1]), median(times[2])};
}

void run(int rank, const std::string& folder, const Pipe& pipe, const char* kind) {
  Side side = join(rank, folder, pipe);
  const auto streams =
      measure(kMessages, {[&] { stream_own(side, *side.own[0]); },
                          [&] { stream_own(side, *side.own[1]); }, [&] { stream_plugin(side); }});
  const auto pings =
      measure(2 * kPings, {[&] { ping_own(side, *side.own[0]); },
                           [&] { ping_own(side, *side.own[1]); }, [&] { ping_plugin(side); }});
  must(net.close_connection(side.out) == 0 && net.close_connection(side.in) == 0, "close");
  must(net.finalize() == 0, "finalize");
  if (rank != 0) return;
  const auto rate = [&](int way) { return kBytes / streams[way] / 1e3; };
  std::printf("%-8s %8.2f %8.2f %8.2f %8.3f %8.3f %10.1f %8.1f %8.1f\n", kind, rate(0), rate(1),
              rate(2), rate(2) / rate(0), rate(2) / rate(1), pings[0], pings[1], pings[2]);
}

// Runs a pair of processes, since the plugin reads its settings only once in a process.
bool run_pair(const char* seal, const char* kind) {
  ::setenv("LEEWAY_NCCL_SEAL", seal, 1);
  std::string folder = std::filesystem::temp_directory_path() / "leeway_nccl_net_bench_XXXXXX";
  must(::mkdtemp(folder.data()) != nullptr, "mkdtemp");
  std::array<int, 2> down{};
  std::array<int, 2> up{};
  must(::pipe(down.data()) == 0 && ::pipe(up.data()) == 0, "pipe");
  std::array<pid_t, 2> ranks{};
  for (int rank = 0; rank < 2; ++rank) {
    ranks[rank] = ::fork();
    if (ranks[rank] != 0) continue;
    run(rank, folder, rank == 0 ? Pipe{up[0], down[1]} : Pipe{down[0], up[1]}, kind);
    std::exit(0);
  }
  bool good = true;
  for (const pid_t rank : ranks) {
    int status = 0;
    good &= ::waitpid(rank, &status, 0) == rank && status == 0;
  }
  std::filesystem::remove_all(folder);
  return good;
}

}  // namespace
}  // namespace leeway

int main() {
  ::setenv("LEEWAY_TRANSPORT", "udp", 1);
  ::setenv("LEEWAY_BIND", "127.0.0.1", 1);
  std::printf("%-8s %44s %28s\n", "", "512 KiB, GB/s; plugin to plain, to sealed",
              "8 B one way, us");
  std::printf("%-8s %8s %8s %8s %17s %10s %8s %8s\n", "plugin", "plain", "sealed", "plugin", "",
              "plain", "sealed", "plugin");
  std::fflush(stdout);
  const bool plain = leeway::run_pair("0", "plain");
  return plain && leeway::run_pair("1", "sealed") ? 0 : 1;
}
