// The hierarchy: NVIDIA's library inside nodes, Leeway between them. A double of that library
// (real_double.c) counts its calls. Run with --device --processes --nodes N and LEEWAY_NCCL_REAL.
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "device/driver.h"
#include "nccl/conformance.h"
#include "nccl/values.h"

// Beside the wrappers of on_device.cc, which copy what is in host memory.
extern "C" {
ncclResult_t __real_ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                                  ncclComm_t, cudaStream_t);
ncclResult_t __real_ncclReduceScatter(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                                      ncclComm_t, cudaStream_t);
ncclResult_t __real_ncclAllGather(const void*, void*, size_t, ncclDataType_t, ncclComm_t,
                                  cudaStream_t);
}

namespace conformance {
namespace {

constexpr std::size_t kLarge = 300'007;  // elements: enough for parts, and no multiple of the ranks
constexpr double kFailureSeconds = 8.0;

// Calls of the double since it was made.
class Calls {
 public:
  explicit Calls(const char* name) : name_(name), before_(count(name)) {}
  int made() const { return count(name_) - before_; }

 private:
  static int count(const char* name) {
    void* const library = ::dlopen(std::getenv("LEEWAY_NCCL_REAL"), RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return 0;
    auto* const calls =
        reinterpret_cast<int (*)(const char*)>(::dlsym(library, "nccl_double_calls"));
    return calls == nullptr ? 0 : calls(name);
  }
  const char* name_;
  int before_;
};

#define EXPECT_CALLS(rank, calls, number) \
  EXPECT_THAT_IT(rank, (calls).made() == (number), std::to_string((calls).made()) + " calls")

int ranks_of_a_node(const Rank& rank) {
  return rank.size / std::atoi(std::getenv("CONFORMANCE_NODES"));
}

float value_of(int rank, std::size_t index) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 5 + index) % 7);
}

std::vector<float> values_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(rank, i);
  return values;
}

float sum_of(const Rank& rank, std::size_t index) {
  float sum = 0;
  for (int one = 0; one < rank.size; ++one) sum += value_of(one, index);
  return sum;
}

void check_sums(const Rank& rank, const std::vector<float>& got, std::size_t first = 0) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float wanted = sum_of(rank, first + i);
    EXPECT_THAT_IT(
        rank, got[i] == wanted,
        std::to_string(i) + " is " + std::to_string(got[i]) + ", not " + std::to_string(wanted));
  }
}

void sum_all(const Rank& rank, ncclComm_t comm, std::size_t count) {
  std::vector<float> values = values_of(rank.rank, count);
  EXPECT_OK(rank, ncclAllReduce(values.data(), values.data(), count, ncclFloat32, ncclSum, comm,
                                nullptr));
  check_sums(rank, values);
}

void all_reduces_take_hops(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const Calls reduce_scatters("ReduceScatter");
  const Calls all_gathers("AllGather");
  const Calls reduces("Reduce");
  const Calls broadcasts("Broadcast");
  sum_all(rank, comm, std::size_t{1} << 20);
  EXPECT_CALLS(rank, reduce_scatters, 1);
  EXPECT_CALLS(rank, all_gathers, 1);
  EXPECT_CALLS(rank, reduces, 0);
  // The rest of what does not divide has a hop of its own.
  sum_all(rank, comm, kLarge);
  EXPECT_CALLS(rank, reduce_scatters, 2);
  EXPECT_CALLS(rank, reduces, 1);
  // What is small goes to one rank of a node whole.
  sum_all(rank, comm, 1000);
  EXPECT_CALLS(rank, reduce_scatters, 2);
  EXPECT_CALLS(rank, reduces, 2);
  EXPECT_CALLS(rank, broadcasts, 2);
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void blocks_take_hops(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const auto size = static_cast<std::size_t>(rank.size);
  const int nodes = rank.size / ranks_of_a_node(rank);
  for (const std::size_t count : {std::size_t{3}, kLarge}) {
    const Calls reduce_scatters("ReduceScatter");
    const Calls all_gathers("AllGather");
    const std::vector<float> in = values_of(rank.rank, size * count);
    std::vector<float> out(count);
    EXPECT_OK(rank,
              ncclReduceScatter(in.data(), out.data(), count, ncclFloat32, ncclSum, comm, nullptr));
    check_sums(rank, out, static_cast<std::size_t>(rank.rank) * count);
    EXPECT_CALLS(rank, reduce_scatters, nodes);
    const std::vector<float> own = values_of(rank.rank, count);
    std::vector<float> all(size * count);
    EXPECT_OK(rank, ncclAllGather(own.data(), all.data(), count, ncclFloat32, comm, nullptr));
    EXPECT_CALLS(rank, all_gathers, nodes);
    for (int from = 0; from < rank.size; ++from) {
      for (std::size_t i = 0; i < count; ++i) {
        const float got = all[static_cast<std::size_t>(from) * count + i];
        EXPECT_THAT_IT(rank, got == value_of(from, i), std::to_string(i));
      }
    }
  }
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// All calls with a root, and which calls of the library inside the node they became.
void rooted(const Rank& rank, int root, std::size_t count) {
  const ncclComm_t comm = rank.connect();
  const bool large = count == kLarge;
  const bool at_root = rank.rank / ranks_of_a_node(rank) == root / ranks_of_a_node(rank);
  const bool is_root = rank.rank == root;
  const int nodes = rank.size / ranks_of_a_node(rank);
  const auto size = static_cast<std::size_t>(rank.size);

  const Calls broadcasts("Broadcast");
  const Calls all_gathers("AllGather");
  std::vector<float> data = is_root ? values_of(root, count) : std::vector<float>(count);
  std::vector<float> copy(count);
  EXPECT_OK(rank, ncclBroadcast(data.data(), copy.data(), count, ncclFloat32, root, comm, nullptr));
  EXPECT_THAT_IT(rank, copy == values_of(root, count), "Broadcast");
  EXPECT_CALLS(rank, all_gathers, large && !at_root ? 1 : 0);
  EXPECT_CALLS(rank, broadcasts, 1);  // of a part's rest, where all_gathers have the parts

  const Calls reduces("Reduce");
  const Calls reduce_scatters("ReduceScatter");
  const std::vector<float> own = values_of(rank.rank, count);
  std::vector<float> sum(count, -1.0f);
  EXPECT_OK(rank,
            ncclReduce(own.data(), sum.data(), count, ncclFloat32, ncclSum, root, comm, nullptr));
  if (is_root) check_sums(rank, sum);
  EXPECT_THAT_IT(rank, is_root || sum == std::vector<float>(count, -1.0f), "written to");
  EXPECT_CALLS(rank, reduce_scatters, large ? 1 : 0);
  EXPECT_CALLS(rank, reduces, 1);

  const Calls sends("Send");
  std::vector<float> all(size * count);
  EXPECT_OK(rank, ncclGather(own.data(), all.data(), count, ncclFloat32, root, comm, nullptr));
  EXPECT_CALLS(rank, sends, at_root && !is_root ? nodes : 0);
  for (std::size_t i = 0; i < all.size() && is_root; ++i)
    EXPECT_THAT_IT(rank, all[i] == value_of(static_cast<int>(i / count), i % count), "Gather");

  const Calls receives("Recv");
  std::vector<float> block(count);
  EXPECT_OK(rank, ncclScatter(all.data(), block.data(), count, ncclFloat32, root, comm, nullptr));
  EXPECT_CALLS(rank, receives, at_root ? nodes : 0);
  EXPECT_THAT_IT(rank, block == own, "Scatter");
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void operations_with_a_root_take_hops(const Rank& rank) {
  for (const std::size_t count : {std::size_t{3}, kLarge}) {
    rooted(rank, 0, count);
    rooted(rank, rank.size - 1, count);
  }
}

// Every type and reduction, in tensors that are large enough for parts.
void parts_of_every_type(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  constexpr ncclRedOp_t kOps[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};
  for (int index = 0; index < kTypes; ++index) {
    const auto type = static_cast<ncclDataType_t>(index);
    const std::size_t count = (std::size_t{1} << 18) / bytes_of(type) + 5;
    for (const ncclRedOp_t op : kOps) {
      // One rank has 2, the others 1: sum, product, greatest, least and mean all tell that.
      Elements data(type, count, rank.rank == rank.size - 1 ? 2 : 1);
      EXPECT_OK(rank, ncclAllReduce(data.data(), data.data(), count, type, op, comm, nullptr));
      const double sum = rank.size + 1;
      double wanted = op == ncclSum ? rounded(type, sum) : op == ncclMin ? 1 : 2;
      if (op == ncclAvg) wanted = is_integer(type) ? 1 : rounded(type, sum / rank.size);
      for (const std::size_t i : {std::size_t{0}, count / 2, count - 1})
        EXPECT_THAT_IT(rank, data[i] == wanted,
                       "type " + std::to_string(index) + ", op " + std::to_string(op) + ": " +
                           std::to_string(data[i]) + ", not " + std::to_string(wanted));
    }
  }
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// Each rank sends to all others, in one group: some are in the node, some are not.
void messages_go_by_where_their_peer_is(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const Calls sends("Send");
  std::vector<std::vector<float>> in;
  const std::vector<float> out = values_of(rank.rank, 1000);
  for (int peer = 0; peer < rank.size; ++peer) in.emplace_back(1000);
  EXPECT_OK(rank, ncclGroupStart());
  for (int peer = 0; peer < rank.size; ++peer) {
    EXPECT_OK(rank, ncclSend(out.data(), out.size(), ncclFloat32, peer, comm, nullptr));
    EXPECT_OK(rank, ncclRecv(in[static_cast<std::size_t>(peer)].data(), out.size(), ncclFloat32,
                             peer, comm, nullptr));
  }
  EXPECT_OK(rank, ncclGroupEnd());
  EXPECT_CALLS(rank, sends, ranks_of_a_node(rank));
  for (int peer = 0; peer < rank.size; ++peer)
    EXPECT_THAT_IT(rank, in[static_cast<std::size_t>(peer)] == values_of(peer, 1000),
                   "of rank " + std::to_string(peer));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void groups_mix_routes(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  ncclComm_t turned = nullptr;
  EXPECT_OK(rank, ncclCommSplit(comm, 0, -rank.rank, &turned, nullptr));
  std::vector<float> large = values_of(rank.rank, kLarge);
  std::vector<float> small = values_of(rank.rank, 10);
  std::vector<float> other = values_of(rank.rank, kLarge);
  std::vector<float> root = values_of(rank.rank, 100);
  EXPECT_OK(rank, ncclGroupStart());
  EXPECT_OK(rank, ncclAllReduce(large.data(), large.data(), large.size(), ncclFloat32, ncclSum,
                                comm, nullptr));
  EXPECT_OK(rank, ncclAllReduce(other.data(), other.data(), other.size(), ncclFloat32, ncclSum,
                                turned, nullptr));
  EXPECT_OK(rank, ncclBcast(root.data(), root.size(), ncclFloat32, 1, comm, nullptr));
  EXPECT_OK(rank, ncclAllReduce(small.data(), small.data(), small.size(), ncclFloat32, ncclSum,
                                comm, nullptr));
  EXPECT_OK(rank, ncclGroupEnd());
  check_sums(rank, large);
  check_sums(rank, other);
  check_sums(rank, small);
  EXPECT_THAT_IT(rank, root == values_of(1, 100), "Bcast");
  EXPECT_OK(rank, ncclCommDestroy(turned));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

namespace cuda = leeway::device::cuda;

void check_cuda(const Rank& rank, cuda::Code code) {
  EXPECT_THAT_IT(rank, code == cuda::kSuccess, "CUDA answers " + std::to_string(code));
}

// Device memory of floats, used in the order of one stream.
class DeviceFloats {
 public:
  DeviceFloats(const Rank& rank, const leeway::device::Driver& driver, cuda::Stream stream,
               const std::vector<float>& values)
      : rank_(rank), driver_(driver), stream_(stream), count_(values.size()) {
    check_cuda(rank_, driver_.call.cuMemAlloc(&memory_, count_ * sizeof(float)));
    copy(memory_, reinterpret_cast<cuda::Address>(values.data()));
  }
  void* data() const { return reinterpret_cast<void*>(memory_); }
  std::vector<float> read() const {
    std::vector<float> values(count_);
    copy(reinterpret_cast<cuda::Address>(values.data()), memory_);
    return values;
  }

 private:
  void copy(cuda::Address to, cuda::Address from) const {
    check_cuda(rank_, driver_.call.cuMemcpyAsync(to, from, count_ * sizeof(float), stream_));
    check_cuda(rank_, driver_.call.cuStreamSynchronize(stream_));
  }

  const Rank& rank_;
  const leeway::device::Driver& driver_;
  const cuda::Stream stream_;
  const std::size_t count_;
  cuda::Address memory_ = 0;
};

// A function of the driver that programs call and Leeway does not.
template <typename Function>
Function driver_function(const Rank& rank, const char* name) {
  void* const function = ::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), name);
  EXPECT_THAT_IT(rank, function != nullptr, name);
  return reinterpret_cast<Function>(function);
}

// Hops become part of a graph, and of every launch.
void graphs_take_hops(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  const leeway::device::Driver& driver = **leeway::device::Driver::open();
  cuda::Stream on = nullptr;
  check_cuda(rank, driver.call.cuStreamCreateWithPriority(&on, cuda::kStreamNonBlocking, 0));
  const auto size = static_cast<std::size_t>(rank.size);
  const DeviceFloats in(rank, driver, on, values_of(rank.rank, size * kLarge));
  const DeviceFloats out(rank, driver, on, std::vector<float>(kLarge));
  const DeviceFloats all(rank, driver, on, std::vector<float>(size * kLarge));
  auto* const stream = reinterpret_cast<cudaStream_t>(on);
  check_cuda(rank, driver_function<cuda::Code (*)(cuda::Stream, int)>(rank, "cuStreamBeginCapture")(
                       on, cuda::kCaptureRelaxed));
  EXPECT_OK(rank, __real_ncclReduceScatter(in.data(), out.data(), kLarge, ncclFloat32, ncclSum,
                                           comm, stream));
  EXPECT_OK(rank, __real_ncclAllReduce(out.data(), out.data(), kLarge, ncclFloat32, ncclSum, comm,
                                       stream));
  EXPECT_OK(rank, __real_ncclAllGather(out.data(), all.data(), kLarge, ncclFloat32, comm, stream));
  cuda::Graph graph = nullptr;
  check_cuda(rank, driver_function<cuda::Code (*)(cuda::Stream, cuda::Graph*)>(
                       rank, "cuStreamEndCapture")(on, &graph));
  cuda::Graph executable = nullptr;
  check_cuda(rank, driver_function<cuda::Code (*)(cuda::Graph*, cuda::Graph, unsigned long long)>(
                       rank, "cuGraphInstantiate")(&executable, graph, 0));
  for (int launch = 0; launch < 2; ++launch)
    check_cuda(rank, driver_function<cuda::Code (*)(cuda::Graph, cuda::Stream)>(
                         rank, "cuGraphLaunch")(executable, on));
  const std::vector<float> got = all.read();
  for (std::size_t i = 0; i < got.size(); ++i) {
    float wanted = 0;
    for (std::size_t block = 0; block < size; ++block)
      wanted += sum_of(rank, block * kLarge + i % kLarge);
    EXPECT_THAT_IT(rank, got[i] == wanted, std::to_string(i) + " is " + std::to_string(got[i]));
  }
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// Each rank sends its number to all.
void exchange_ranks(const Rank& rank, ncclComm_t comm) {
  std::vector<int> out(static_cast<std::size_t>(rank.size), rank.rank);
  std::vector<int> in(out.size());
  EXPECT_OK(rank, ncclAlltoAll(out.data(), in.data(), 1, ncclInt32, comm, nullptr));
  for (std::size_t i = 0; i < in.size(); ++i)
    EXPECT_THAT_IT(rank, in[i] == static_cast<int>(i), std::to_string(in[i]));
}

// Ranks of one node: all is NVIDIA's library's.
void one_node_is_forwarded(const Rank& rank) {
  ::setenv("NCCL_HOSTID", "one", 1);
  const ncclComm_t comm = rank.connect();
  const Calls all_reduces("AllReduce");
  const Calls all_to_alls("AlltoAll");
  sum_all(rank, comm, kLarge);
  sum_all(rank, comm, 10);
  EXPECT_CALLS(rank, all_reduces, 2);
  exchange_ranks(rank, comm);
  EXPECT_CALLS(rank, all_to_alls, 1);
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

std::string log_of(const Rank& rank, const char* ending) {
  const char* const folder = std::getenv("TMPDIR");
  return std::string(folder == nullptr ? "/tmp" : folder) + "/nccl_nodes." +
         std::to_string(::getppid()) + "." + std::to_string(rank.rank) + ending;
}

// Lines of the log of a communicator that works.
std::string logged(const Rank& rank, const char* ending) {
  const std::string name = log_of(rank, ending);
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_FILE", name.c_str(), 1);
  const ncclComm_t comm = rank.connect();
  sum_all(rank, comm, kLarge);
  EXPECT_OK(rank, ncclCommDestroy(comm));
  std::ifstream file(name);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  ::unlink(name.c_str());
  return text;
}

void the_choice_is_logged(const Rank& rank) {
  const std::string text = logged(rank, ".chosen");
  const int each = ranks_of_a_node(rank);
  const std::string wanted = std::to_string(rank.size / each) + " nodes of " +
                             std::to_string(each) + " ranks: NVIDIA's NCCL";
  EXPECT_THAT_IT(rank, (text.find(wanted) != std::string::npos) == (rank.rank == 0), text);
}

void unequal_nodes_are_flat(const Rank& rank) {
  ::setenv("NCCL_HOSTID", rank.rank == 0 ? "small" : "large", 1);
  const Calls joins("CommInitRankConfig");
  const std::string text = logged(rank, ".unequal");
  EXPECT_CALLS(rank, joins, 0);
  const bool says =
      text.find("Leeway between all ranks: nodes 0 and 1 have 1 and") != std::string::npos;
  EXPECT_THAT_IT(rank, says == (rank.rank == 0), text);
}

void a_library_that_fails_to_join_leaves_all_flat(const Rank& rank) {
  if (rank.rank == 1) ::setenv("NCCL_DOUBLE_FAILS", "CommInitRankConfig:1", 1);
  const Calls reduce_scatters("ReduceScatter");
  const std::string text = logged(rank, ".fails");
  EXPECT_CALLS(rank, reduce_scatters, 0);
  const bool says = text.find("NVIDIA's NCCL failed on some rank") != std::string::npos;
  EXPECT_THAT_IT(rank, says == (rank.rank == 0), text);
}

void a_policy_may_say_nccl(const Rank& rank) {
  ::setenv("LEEWAY_NCCL_POLICY", "all_to_all -> nccl; all_reduce | i32 -> nccl", 1);
  const ncclComm_t comm = rank.connect();
  const Calls all_reduces("AllReduce");
  const Calls reduces("Reduce");
  const Calls all_to_alls("AlltoAll");
  int one = 1;
  EXPECT_OK(rank, ncclAllReduce(&one, &one, 1, ncclInt32, ncclSum, comm, nullptr));
  EXPECT_THAT_IT(rank, one == rank.size, std::to_string(one));
  EXPECT_CALLS(rank, all_reduces, 1);
  sum_all(rank, comm, 10);
  EXPECT_CALLS(rank, reduces, 1);
  exchange_ranks(rank, comm);
  EXPECT_CALLS(rank, all_to_alls, 1);
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

// What the policy says holds between the nodes, where kernels encode. float16 has all of these
// sums.
void hops_between_nodes_are_encoded(const Rank& rank) {
  ::setenv("LEEWAY_NCCL_POLICY", "all_reduce reduce reduce_scatter | f32 | * -> exact fp16", 1);
  const std::string text = logged(rank, ".encoded");
  EXPECT_THAT_IT(rank, text.find("codecs of device memory run on the") != std::string::npos, text);
  const ncclComm_t comm = rank.connect();
  const auto size = static_cast<std::size_t>(rank.size);
  const std::vector<float> in = values_of(rank.rank, size * kLarge);
  std::vector<float> out(kLarge);
  EXPECT_OK(rank,
            ncclReduceScatter(in.data(), out.data(), kLarge, ncclFloat32, ncclSum, comm, nullptr));
  check_sums(rank, out, static_cast<std::size_t>(rank.rank) * kLarge);
  EXPECT_OK(rank,
            ncclReduce(in.data(), out.data(), kLarge, ncclFloat32, ncclSum, 1, comm, nullptr));
  if (rank.rank == 1) check_sums(rank, out);
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void a_policy_needs_the_library(const Rank& rank) {
  ::setenv("LEEWAY_NCCL_POLICY", "all_to_all -> nccl", 1);
  ::setenv("LEEWAY_NCCL_REAL", "none", 1);
  const ncclUniqueId id = rank.fresh_id();
  ncclComm_t comm = nullptr;
  EXPECT_CODE(rank, ncclCommInitRank(&comm, rank.size, id, rank.rank), ncclInvalidUsage);
  const std::string text = ncclGetLastError(nullptr);
  EXPECT_THAT_IT(rank, text.find("LEEWAY_NCCL_REAL") != std::string::npos, text);
}

// The state becomes an error soon, whoever of the group failed.
void expect_failure(const Rank& rank, ncclComm_t comm) {
  ncclResult_t code = ncclSuccess;
  const double took = seconds_of([&] {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(kFailureSeconds);
    while ((code == ncclSuccess || code == ncclInProgress) &&
           std::chrono::steady_clock::now() < end) {
      EXPECT_OK(rank, ncclCommGetAsyncError(comm, &code));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  EXPECT_THAT_IT(rank, code != ncclSuccess && code != ncclInProgress,
                 "no error after " + std::to_string(took) + " s");
}

// An error of the library on one rank becomes an error of all, and no call hangs.
void an_error_inside_is_everybodys(const Rank& rank) {
  if (rank.rank == rank.size - 1) ::setenv("NCCL_DOUBLE_FAILS", "ReduceScatter:2", 1);
  const ncclComm_t comm = rank.connect();
  sum_all(rank, comm, kLarge);
  std::thread watchdog([&] {
    expect_failure(rank, comm);
    EXPECT_OK(rank, ncclCommAbort(comm));
  });
  std::vector<float> values = values_of(rank.rank, kLarge);
  const ncclResult_t code = ncclAllReduce(values.data(), values.data(), values.size(), ncclFloat32,
                                          ncclSum, comm, nullptr);
  watchdog.join();
  if (rank.rank == rank.size - 1) EXPECT_THAT_IT(rank, code != ncclSuccess, std::to_string(code));
}

// The same where a rank dies.
void a_dead_rank_is_noticed_by_all(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  sum_all(rank, comm, 10);
  rank.barrier();
  if (rank.rank == rank.size - 1) ::_exit(0);
  std::thread watchdog([&] {
    expect_failure(rank, comm);
    EXPECT_OK(rank, ncclCommAbort(comm));
  });
  std::vector<float> values = values_of(rank.rank, kLarge);
  (void)ncclAllReduce(values.data(), values.data(), values.size(), ncclFloat32, ncclSum, comm,
                      nullptr);
  watchdog.join();
}

// Abort ends a call that waits in any of its hops; the others learn of it.
void abort_ends_all_hops(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  sum_all(rank, comm, kLarge);
  if (rank.rank == 0) {  // never calls
    rank.barrier();
    const double took = seconds_of([&] { EXPECT_OK(rank, ncclCommAbort(comm)); });
    EXPECT_THAT_IT(rank, took < 1.0, std::to_string(took));
    return;
  }
  std::thread watchdog([&] {
    rank.barrier();
    expect_failure(rank, comm);
    EXPECT_OK(rank, ncclCommAbort(comm));
  });
  std::vector<float> values = values_of(rank.rank, kLarge);
  (void)ncclAllReduce(values.data(), values.data(), values.size(), ncclFloat32, ncclSum, comm,
                      nullptr);
  watchdog.join();
}

}  // namespace

std::vector<Case> node_cases() {
  const char* const nodes = std::getenv("CONFORMANCE_NODES");
  if (nodes == nullptr) return {};
  using Needs = Case::Needs;
  return {
      {"nodes.all_reduces_take_hops", all_reduces_take_hops, Needs::processes},
      {"nodes.blocks_take_hops", blocks_take_hops, Needs::processes},
      {"nodes.operations_with_a_root_take_hops", operations_with_a_root_take_hops,
       Needs::processes},
      {"nodes.parts_of_every_type", parts_of_every_type, Needs::processes},
      {"nodes.messages_go_by_where_their_peer_is", messages_go_by_where_their_peer_is,
       Needs::processes},
      {"nodes.groups_mix_routes", groups_mix_routes, Needs::processes},
      {"nodes.graphs_take_hops", graphs_take_hops, Needs::processes},
      {"nodes.one_node_is_forwarded", one_node_is_forwarded, Needs::processes},
      {"nodes.the_choice_is_logged", the_choice_is_logged, Needs::processes},
      {"nodes.unequal_nodes_are_flat", unequal_nodes_are_flat, Needs::processes},
      {"nodes.a_library_that_fails_to_join_leaves_all_flat",
       a_library_that_fails_to_join_leaves_all_flat, Needs::processes},
      {"nodes.a_policy_may_say_nccl", a_policy_may_say_nccl, Needs::processes},
      {"nodes.hops_between_nodes_are_encoded", hops_between_nodes_are_encoded, Needs::processes},
      {"nodes.a_policy_needs_the_library", a_policy_needs_the_library, Needs::processes},
      {"nodes.an_error_inside_is_everybodys", an_error_inside_is_everybodys, Needs::processes},
      {"nodes.a_dead_rank_is_noticed_by_all", a_dead_rank_is_noticed_by_all, Needs::processes},
      {"nodes.abort_ends_all_hops", abort_ends_all_hops, Needs::processes}};
}

}  // namespace conformance
