// Cost of NCCL's interface beside Leeway's own, over the same transport: all-reduces of 8 bytes and
// 16 MiB, and 1,024 pairs of messages in a group. Two processes over sealed UDP on loopback.
//
// It also measures the time until an abort has returned, and until the call that the abort ends has
// returned. That call waits for a peer that was killed.
//
// The two interfaces take turns, so that other load on the machine disturbs both alike.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "interop/nccl/functions.h"
#include "leeway/communicator.h"
#include "leeway/rendezvous.h"
#include "support/secret_line.h"

namespace leeway {
namespace {

constexpr int kTurns = 40;
constexpr int kPairs = 1024;
constexpr int kAborts = 9;
// Time after its start by which the call that is to be aborted certainly waits for its peer.
constexpr auto kInCall = std::chrono::milliseconds(50);
constexpr int kFloat32 = 7;
constexpr int kSum = 0;

const leeway_nccl_functions& nccl = leeway_nccl_functions_0;

void must(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s: %s\n", what, nccl.GetLastError(nullptr));
  std::exit(1);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Both {
  std::unique_ptr<Communicator> own;
  leeway_nccl_comm other = nullptr;
};

Both join(int rank, const std::string& folder, const leeway_nccl_id& id) {
  Options options;
  options.store = std::make_shared<FileRendezvous>(folder);
  options.bind_address = "127.0.0.1";
  options.transport = TransportKind::udp;
  options.secret = secret_digits('7');
  options.rank = rank;
  options.world_size = 2;
  auto made = Communicator::create(options);
  must(made.ok(), made.ok() ? "" : made.status().c_str());
  Both both;
  both.own = std::move(*made);
  must(nccl.CommInitRank(&both.other, 2, id, rank) == 0, "CommInitRank");
  return both;
}

// Returns the median us of a call by Leeway's own interface, and by NCCL's.
std::array<double, 2> measure(int calls, const std::function<void()>& own,
                              const std::function<void()>& other) {
  std::array<std::vector<double>, 2> times;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (const int way : {turn % 2, 1 - turn % 2}) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < calls; ++i) way == 0 ? own() : other();
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      times[way].push_back(took.count() / calls);
    }
  }
  return {median(times[0]), median(times[1])};
}

std::array<double, 2> all_reduces(const Both& both, std::size_t bytes, int calls) {
  std::vector<float> data(bytes / sizeof(float));
  CollectiveOptions options;
  options.delivery = exact(no_deadline);
  return measure(
      calls, [&] { must(both.own->all_reduce(std::span(data), options).ok(), "all_reduce"); },
      [&] {
        must(nccl.AllReduce(data.data(), data.data(), data.size(), kFloat32, kSum, both.other,
                            nullptr) == 0,
             "AllReduce");
      });
}

std::array<double, 2> message_groups(const Both& both, int peer) {
  std::vector<float> out(kPairs);
  std::vector<float> in(kPairs);
  CollectiveOptions options;
  options.delivery = exact(no_deadline);
  const auto own = [&] {
    std::vector<Message> messages;
    for (int i = 0; i < kPairs; ++i) {
      messages.push_back(Message::recv(TensorView(std::span(&in[i], 1)), static_cast<Rank>(peer)));
      messages.push_back(
          Message::send(ConstTensorView(std::span(&out[i], 1)), static_cast<Rank>(peer)));
    }
    must(both.own->exchange(messages, options).ok(), "exchange");
  };
  const auto other = [&] {
    must(nccl.GroupStart() == 0, "GroupStart");
    for (int i = 0; i < kPairs; ++i) {
      must(nccl.Recv(&in[i], 1, kFloat32, peer, both.other, nullptr) == 0, "Recv");
      must(nccl.Send(&out[i], 1, kFloat32, peer, both.other, nullptr) == 0, "Send");
    }
    must(nccl.GroupEnd() == 0, "GroupEnd");
  };
  return measure(4, own, other);
}

void run(int rank, const std::string& folder, const leeway_nccl_id& id) {
  const Both both = join(rank, folder, id);
  const auto small = all_reduces(both, 8, 300);
  const auto large = all_reduces(both, std::size_t{16} << 20, 1);
  const auto messages = message_groups(both, 1 - rank);
  must(nccl.CommDestroy(both.other) == 0, "CommDestroy");
  if (rank != 0) return;
  const auto print = [](const char* what, std::array<double, 2> us) {
    std::printf("%-34s %12.1f %12.1f %8.3f\n", what, us[0], us[1], us[1] / us[0]);
  };
  std::printf("%-34s %12s %12s %8s\n", "us a call, medians", "Leeway's", "NCCL's", "ratio");
  print("all-reduce, 8 B", small);
  print("all-reduce, 16 MiB", large);
  print("group of 1,024 sends and receives", messages);
}

leeway_nccl_comm join_once(int rank, const leeway_nccl_id& id) {
  leeway_nccl_comm comm = nullptr;
  must(nccl.CommInitRank(&comm, 2, id, rank) == 0, "CommInitRank");
  float value = 1;
  must(nccl.AllReduce(&value, &value, 1, kFloat32, kSum, comm, nullptr) == 0, "AllReduce");
  return comm;
}

double abort_with_a_dead_peer() {
  std::array<int, 2> ends{};
  must(::pipe(ends.data()) == 0, "pipe");
  leeway_nccl_id id{};
  const pid_t child = ::fork();
  if (child == 0) {
    must(::read(ends[0], &id, sizeof id) == sizeof id, "read");
    (void)join_once(1, id);
    while (true) ::pause();
  }
  must(nccl.GetUniqueId(&id) == 0, "GetUniqueId");
  must(::write(ends[1], &id, sizeof id) == sizeof id, "write");
  const leeway_nccl_comm comm = join_once(0, id);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::thread waiting([comm] {
    float value = 1;
    must(nccl.AllReduce(&value, &value, 1, kFloat32, kSum, comm, nullptr) != 0, "AllReduce");
  });
  std::this_thread::sleep_for(kInCall);
  const auto begin = std::chrono::steady_clock::now();
  must(nccl.CommAbort(comm) == 0, "CommAbort");
  waiting.join();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  ::close(ends[0]);
  ::close(ends[1]);
  return took.count();
}

void aborts() {
  std::vector<double> times;
  for (int i = 0; i < kAborts; ++i) times.push_back(abort_with_a_dead_peer());
  std::printf("abort beside a dead peer: median %.2f ms, longest %.2f ms\n", median(times),
              *std::max_element(times.begin(), times.end()));
}

int main_of_bench() {
  ::setenv("LEEWAY_TRANSPORT", "udp", 1);
  ::setenv("LEEWAY_BIND", "127.0.0.1", 1);
  std::string folder = std::filesystem::temp_directory_path() / "leeway_nccl_bench_XXXXXX";
  must(::mkdtemp(folder.data()) != nullptr, "mkdtemp");
  std::array<int, 2> ends{};
  must(::pipe(ends.data()) == 0, "pipe");
  leeway_nccl_id id{};
  const pid_t child = ::fork();
  if (child == 0) {
    must(::read(ends[0], &id, sizeof id) == sizeof id, "read");
    run(1, folder, id);
    std::exit(0);
  }
  must(nccl.GetUniqueId(&id) == 0, "GetUniqueId");
  must(::write(ends[1], &id, sizeof id) == sizeof id, "write");
  run(0, folder, id);
  int status = 0;
  ::waitpid(child, &status, 0);
  std::filesystem::remove_all(folder);
  aborts();
  return status == 0 ? 0 : 1;
}

}  // namespace
}  // namespace leeway

int main() {
  return leeway::main_of_bench();
}
