// Random programs of kernels, events, collectives, groups and graphs on device memory, with a test
// double of CUDA. No call may block, no device pointer may be followed, and all results must be
// right.
//
//   device_programs [--programs N] [--seed S] [--connections N] [--ranks N] [--encoded 1]
//
// --encoded: data are small whole numbers in float32, which a policy sends as float16. Leeway's
// kernels encode long tensors. After each sum, a kernel of the program reduces its elements modulo
// kModulus, so that they stay small.
//
// Ranks are threads, each with a device. All run the same program, whose right result the host
// computes. Work on different streams is ordered by events only: a stream that uses a buffer first
// waits for an event on the stream that used it last.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "device/driver.h"
#include "nccl/nccl_api.h"
#include "support/cuda_double/control.h"
#include "support/host_kernels.h"

namespace {

namespace cuda = leeway::device::cuda;
using leeway::device::Driver;

constexpr std::size_t kBuffers = 6;
constexpr std::size_t kStreams = 3;
constexpr std::size_t kComms = 2;
constexpr std::size_t kCapacity = std::size_t{1} << 20;  // elements of a buffer
// Number of elements behind those that a program uses, which are checked, too: they must not
// change.
constexpr std::size_t kMargin = 1024;
constexpr unsigned kProgramSeconds = 120;

// --encoded: numbers are below kModulus, so that sums of 8 ranks are exact in float16.
bool encoded = false;
constexpr std::uint32_t kModulus = 16;

std::uint32_t folded(std::uint32_t number) {
  return encoded ? number % kModulus : number;
}
// Convert a number to its bits in memory, and back.
std::uint32_t stored(std::uint32_t number) {
  return encoded ? std::bit_cast<std::uint32_t>(static_cast<float>(number)) : number;
}
std::uint32_t loaded(std::uint32_t bits) {
  return encoded ? static_cast<std::uint32_t>(std::bit_cast<float>(bits)) : bits;
}

enum class Kind {
  kernel,
  all_reduce,
  broadcast,
  reduce_scatter,
  all_gather,
  exchange,
  group,
  graph
};

struct Action {
  Kind kind = Kind::kernel;
  std::size_t stream = 0;
  std::size_t comm = 0;
  std::size_t from = 0;  // buffers
  std::size_t to = 0;
  std::size_t count = 0;
  std::uint32_t value = 0;  // value that a kernel writes, or root of a broadcast
  // The calls of a group or a graph. The calls of a graph use the graph's stream and one other.
  std::vector<Action> inside;
  int launches = 0;  // how often a graph is launched
};

class Maker {
 public:
  Maker(std::uint64_t seed, int ranks) : random_(seed), ranks_(static_cast<std::size_t>(ranks)) {}

  std::vector<Action> program() {
    std::vector<Action> actions;
    const std::size_t length = 5 + below(20);
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t what = below(10);
      if (what == 0) {
        actions.push_back(graph());
      } else if (what < 3) {
        actions.push_back(group());
      } else {
        actions.push_back(plain(shuffled()));
      }
    }
    return actions;
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::vector<std::size_t> shuffled() {
    std::vector<std::size_t> buffers(kBuffers);
    for (std::size_t i = 0; i < kBuffers; ++i) buffers[i] = i;
    std::shuffle(buffers.begin(), buffers.end(), random_);
    return buffers;
  }
  std::size_t count() {
    const std::size_t usual = encoded ? 12 + below(6) : below(16);
    const std::size_t most = below(30) == 0 ? kCapacity : std::size_t{1} << usual;
    return 1 + below(most);
  }
  Action plain(const std::vector<std::size_t>& buffers, bool kernels = true) {
    constexpr Kind kKinds[] = {Kind::kernel,         Kind::all_reduce, Kind::broadcast,
                               Kind::reduce_scatter, Kind::all_gather, Kind::exchange};
    Action one;
    one.kind = kKinds[kernels ? below(6) : 1 + below(4)];
    one.stream = below(kStreams);
    one.comm = below(kComms);
    one.from = buffers[0];
    const bool in_place = one.kind == Kind::kernel || one.kind == Kind::broadcast ||
                          (one.kind == Kind::all_reduce && below(2) == 0);
    one.to = in_place ? one.from : buffers[1];
    one.count = count();
    if (one.kind == Kind::reduce_scatter || one.kind == Kind::all_gather)
      one.count = 1 + one.count / (ranks_ + 1);
    one.value = static_cast<std::uint32_t>(one.kind == Kind::broadcast ? below(ranks_) : below(99));
    return one;
  }
  Action group() {
    Action one;
    one.kind = Kind::group;
    const std::vector<std::size_t> buffers = shuffled();
    const std::size_t length = 2 + below(2);
    for (std::size_t i = 0; i < length; ++i)
      one.inside.push_back(plain({buffers[2 * i], buffers[2 * i + 1]}, false));
    return one;
  }
  Action graph() {
    Action one;
    one.kind = Kind::graph;
    one.stream = below(kStreams);
    one.launches = 1 + static_cast<int>(below(3));
    const std::size_t length = 1 + below(4);
    for (std::size_t i = 0; i < length; ++i) {
      Action part = plain(shuffled());
      part.count = std::min<std::size_t>(part.count, 20'000);
      part.stream = below(2) == 0 ? one.stream : (one.stream + 1) % kStreams;
      one.inside.push_back(part);
    }
    return one;
  }

  std::mt19937_64 random_;
  const std::size_t ranks_;
};

using Buffer = std::vector<std::uint32_t>;

// Number of elements of each buffer that are checked: those that the program uses, and kMargin
// more.
using Extents = std::array<std::size_t, kBuffers>;

void extend(const Action& action, std::size_t ranks, Extents& extents) {
  if (!action.inside.empty()) {
    for (const Action& one : action.inside) extend(one, ranks, extents);
    return;
  }
  const std::size_t all = action.count * ranks;
  const auto use = [&](std::size_t buffer, std::size_t count) {
    extents[buffer] = std::max(extents[buffer], std::min(count + kMargin, kCapacity));
  };
  use(action.from, action.kind == Kind::reduce_scatter ? all : action.count);
  use(action.to, action.kind == Kind::all_gather ? all : action.count);
}

Extents extents_of(const std::vector<Action>& program, std::size_t ranks) {
  Extents extents{};
  for (const Action& one : program) extend(one, ranks, extents);
  return extents;
}

std::uint32_t first_value(std::size_t rank, std::size_t buffer, std::size_t index) {
  return folded(static_cast<std::uint32_t>(rank * 1'000'003 + buffer * 10'007 + index));
}
std::uint32_t after_kernel(std::uint32_t before, std::uint32_t value, std::size_t rank) {
  return folded(before * 3 + value + static_cast<std::uint32_t>(rank));
}

// Computes the right results of programs. The second communicator has the ranks in reverse order.
class Oracle {
 public:
  Oracle(std::size_t ranks, const Extents& extents) : ranks_(ranks), memory_(ranks) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (std::size_t buffer = 0; buffer < kBuffers; ++buffer) {
        Buffer& one = memory_[rank].emplace_back(extents[buffer]);
        for (std::size_t i = 0; i < one.size(); ++i) one[i] = first_value(rank, buffer, i);
      }
    }
  }
  const Buffer& at(std::size_t rank, std::size_t buffer) const { return memory_[rank][buffer]; }

  void run(const Action& action) {
    if (action.kind == Kind::group || action.kind == Kind::graph) {
      const int times = action.kind == Kind::graph ? action.launches : 1;
      for (int i = 0; i < times; ++i) {
        for (const Action& one : action.inside) run(one);
      }
      return;
    }
    std::vector<Buffer> results;
    for (std::size_t rank = 0; rank < ranks_; ++rank) results.push_back(result(action, rank));
    for (std::size_t rank = 0; rank < ranks_; ++rank)
      std::copy(results[rank].begin(), results[rank].end(), memory_[rank][action.to].begin());
  }

 private:
  // Converts a rank of the communicator to a rank of the program, or back.
  std::size_t turned(const Action& action, std::size_t rank) const {
    return action.comm == 0 ? rank : ranks_ - 1 - rank;
  }
  std::uint32_t sum(const Action& action, std::size_t index) const {
    std::uint32_t total = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank) total += memory_[rank][action.from][index];
    return folded(total);
  }
  Buffer result(const Action& action, std::size_t rank) const {
    const std::size_t count = action.count;
    const Buffer& own = memory_[rank][action.from];
    Buffer out(action.kind == Kind::all_gather ? count * ranks_ : count);
    for (std::size_t i = 0; i < out.size(); ++i) {
      switch (action.kind) {
        case Kind::all_reduce:
          out[i] = sum(action, i);
          break;
        case Kind::reduce_scatter:
          out[i] = sum(action, turned(action, rank) * count + i);
          break;
        case Kind::broadcast:
          out[i] = memory_[turned(action, action.value)][action.from][i];
          break;
        case Kind::all_gather:
          out[i] = memory_[turned(action, i / count)][action.from][i % count];
          break;
        case Kind::exchange: {
          const std::size_t self = turned(action, rank);
          out[i] = memory_[turned(action, (self + ranks_ - 1) % ranks_)][action.from][i];
          break;
        }
        default:
          out[i] = after_kernel(own[i], action.value, rank);
      }
    }
    return out;
  }

  const std::size_t ranks_;
  std::vector<std::vector<Buffer>> memory_;
};

// CUDA's functions for graphs, and functions of the test double.
struct Extra {
  void (*configure)(const CudaDoubleSettings*);
  cuda::Code (*launch)(cuda::Stream, void (*)(void*), void*);
  void* (*alias)(cuda::Address, std::uint64_t);
  cuda::Code (*begin_capture)(cuda::Stream, int);
  cuda::Code (*end_capture)(cuda::Stream, cuda::Graph*);
  cuda::Code (*instantiate)(cuda::Graph*, cuda::Graph, unsigned long long);
  cuda::Code (*launch_graph)(cuda::Graph, cuda::Stream);
  cuda::Code (*destroy)(cuda::Graph);
};

const Driver* driver = nullptr;
Extra extra;
std::string running;

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "FAILED %s: %s\n", running.c_str(), why.c_str());
  std::_Exit(1);
}
void check(const char* what, cuda::Code code) {
  if (code != cuda::kSuccess) fail(driver->error(what, code).c_str());
}
void check_nccl(const char* what, ncclResult_t code) {
  if (code != ncclSuccess)
    fail(std::string(what) + " answered " + std::to_string(code) + ": " +
         ncclGetLastError(nullptr));
}

bool find_extra() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        library == nullptr ? nullptr : ::dlsym(library, name));
    return function != nullptr;
  };
  return find(extra.configure, "cuda_double_configure") &&
         find(extra.launch, "cuda_double_launch") && find(extra.alias, "cuda_double_alias") &&
         find(extra.begin_capture, "cuStreamBeginCapture") &&
         find(extra.end_capture, "cuStreamEndCapture") &&
         find(extra.instantiate, "cuGraphInstantiate") &&
         find(extra.launch_graph, "cuGraphLaunch") && find(extra.destroy, "cuGraphExecDestroy");
}

class Runner {
 public:
  Runner(std::size_t rank, std::size_t ranks, std::vector<ncclComm_t> comms)
      : rank_(rank), ranks_(ranks), comms_(std::move(comms)) {
    context_ = leeway::device::context_of(*driver, static_cast<int>(rank)).value().context;
    const leeway::device::ContextScope scope(*driver, context_);
    for (cuda::Stream& one : streams_)
      check("stream", driver->call.cuStreamCreateWithPriority(&one, 1, 0));
    check("event", driver->call.cuEventCreate(&event_, 0));
    for (cuda::Address& one : memory_)
      check("memory", driver->call.cuMemAlloc(&one, kCapacity * sizeof(std::uint32_t)));
  }

  void run(const std::vector<Action>& program, const Oracle& oracle) {
    const leeway::device::ContextScope scope(*driver, context_);
    for (std::size_t i = 0; i < kBuffers; ++i) {
      user_[i] = 0;
      kernel(i, oracle.at(rank_, i).size(), streams_[0],
             [rank = rank_, i](std::uint32_t* data, std::size_t count) {
               for (std::size_t at = 0; at < count; ++at)
                 data[at] = stored(first_value(rank, i, at));
             });
    }
    for (const Action& one : program) {
      if (one.kind == Kind::graph) {
        graph(one);
      } else if (one.kind == Kind::group) {
        group(one);
      } else {
        take(one);
        perform(one, streams_[one.stream]);
        fold(one);
      }
    }
    compare(oracle);
    for (const cuda::Graph one : graphs_) check("destroy", extra.destroy(one));
    graphs_.clear();
  }

 private:
  struct Kernel {
    cuda::Address memory;
    std::size_t count;
    std::function<void(std::uint32_t*, std::size_t)> body;
  };
  // Launches a kernel. Keeps its arguments, because a graph may launch it again.
  void kernel(std::size_t buffer, std::size_t count, cuda::Stream stream,
              std::function<void(std::uint32_t*, std::size_t)> body) {
    kernels_.push_back(std::make_unique<Kernel>(Kernel{memory_[buffer], count, std::move(body)}));
    check("kernel", extra.launch(
                        stream,
                        [](void* argument) {
                          const auto& self = *static_cast<Kernel*>(argument);
                          self.body(static_cast<std::uint32_t*>(extra.alias(
                                        self.memory, self.count * sizeof(std::uint32_t))),
                                    self.count);
                        },
                        kernels_.back().get()));
  }

  void order(std::size_t before, std::size_t after) {
    if (before == after) return;
    check("record", driver->call.cuEventRecord(event_, streams_[before]));
    check("wait", driver->call.cuStreamWaitEvent(streams_[after], event_, 0));
  }
  // Makes the action's stream wait for the last user of its buffers.
  void take(const Action& action) {
    for (const std::size_t buffer : {action.from, action.to}) {
      order(user_[buffer], action.stream);
      user_[buffer] = action.stream;
    }
  }

  void perform(const Action& action, cuda::Stream on) {
    auto* const stream = reinterpret_cast<cudaStream_t>(on);
    void* const from = reinterpret_cast<void*>(memory_[action.from]);
    void* const to = reinterpret_cast<void*>(memory_[action.to]);
    const ncclComm_t comm = comms_[action.comm];
    const ncclDataType_t type = encoded ? ncclFloat32 : ncclUint32;
    switch (action.kind) {
      case Kind::all_reduce:
        return check_nccl("AllReduce",
                          ncclAllReduce(from, to, action.count, type, ncclSum, comm, stream));
      case Kind::broadcast:
        return check_nccl("Broadcast", ncclBroadcast(from, to, action.count, ncclUint32,
                                                     static_cast<int>(action.value), comm, stream));
      case Kind::reduce_scatter:
        return check_nccl("ReduceScatter",
                          ncclReduceScatter(from, to, action.count, type, ncclSum, comm, stream));
      case Kind::all_gather:
        return check_nccl("AllGather",
                          ncclAllGather(from, to, action.count, ncclUint32, comm, stream));
      case Kind::exchange: {
        const std::size_t self = action.comm == 0 ? rank_ : ranks_ - 1 - rank_;
        check_nccl("GroupStart", ncclGroupStart());
        check_nccl("Send", ncclSend(from, action.count, ncclUint32,
                                    static_cast<int>((self + 1) % ranks_), comm, stream));
        check_nccl("Recv", ncclRecv(to, action.count, ncclUint32,
                                    static_cast<int>((self + ranks_ - 1) % ranks_), comm, stream));
        return check_nccl("GroupEnd", ncclGroupEnd());
      }
      default:
        kernel(action.from, action.count, on,
               [rank = rank_, value = action.value](std::uint32_t* data, std::size_t count) {
                 for (std::size_t i = 0; i < count; ++i)
                   data[i] = stored(after_kernel(loaded(data[i]), value, rank));
               });
    }
  }

  // With --encoded, makes the sums that a call has left in a buffer as small as the other numbers.
  void fold(const Action& action) {
    if (!encoded || (action.kind != Kind::all_reduce && action.kind != Kind::reduce_scatter))
      return;
    kernel(action.to, action.count, streams_[action.stream],
           [](std::uint32_t* data, std::size_t count) {
             for (std::size_t i = 0; i < count; ++i) data[i] = stored(folded(loaded(data[i])));
           });
  }

  void group(const Action& action) {
    for (const Action& one : action.inside) take(one);
    check_nccl("GroupStart", ncclGroupStart());
    for (const Action& one : action.inside) perform(one, streams_[one.stream]);
    check_nccl("GroupEnd", ncclGroupEnd());
    for (const Action& one : action.inside) fold(one);
  }

  // Captures a graph and launches it. Events order it after all earlier work and before all later
  // work.
  void graph(const Action& action) {
    for (std::size_t i = 0; i < kStreams; ++i) order(i, action.stream);
    const cuda::Stream main = streams_[action.stream];
    check("begin capture", extra.begin_capture(main, 0));
    for (const Action& one : action.inside) {
      order(action.stream, one.stream);
      perform(one, streams_[one.stream]);
      fold(one);
      order(one.stream, action.stream);
    }
    cuda::Graph graph = nullptr;
    check("end capture", extra.end_capture(main, &graph));
    cuda::Graph executable = nullptr;
    check("instantiate", extra.instantiate(&executable, graph, 0));
    check("destroy", extra.destroy(graph));
    for (int i = 0; i < action.launches; ++i) check("launch", extra.launch_graph(executable, main));
    graphs_.push_back(executable);
    for (std::size_t i = 0; i < kStreams; ++i) order(action.stream, i);
  }

  void compare(const Oracle& oracle) {
    std::vector<Buffer> got;
    for (std::size_t i = 0; i < kBuffers; ++i) {
      order(user_[i], 0);
      Buffer& one = got.emplace_back(oracle.at(rank_, i).size());
      check("copy",
            driver->call.cuMemcpyAsync(reinterpret_cast<cuda::Address>(one.data()), memory_[i],
                                       one.size() * sizeof(std::uint32_t), streams_[0]));
    }
    for (const cuda::Stream one : streams_)
      check("synchronize", driver->call.cuStreamSynchronize(one));
    kernels_.clear();
    for (const ncclComm_t comm : comms_) {
      ncclResult_t code = ncclSuccess;
      check_nccl("GetAsyncError", ncclCommGetAsyncError(comm, &code));
      check_nccl("the communicator", code);
    }
    for (std::size_t i = 0; i < kBuffers; ++i) {
      Buffer wanted = oracle.at(rank_, i);
      std::transform(wanted.begin(), wanted.end(), wanted.begin(), stored);
      const auto wrong = std::mismatch(got[i].begin(), got[i].end(), wanted.begin());
      if (wrong.first != got[i].end())
        fail("rank " + std::to_string(rank_) + ", buffer " + std::to_string(i) + ", element " +
             std::to_string(wrong.first - got[i].begin()) + " is " +
             std::to_string(loaded(*wrong.first)) + ", not " +
             std::to_string(loaded(*wrong.second)));
    }
  }

  const std::size_t rank_;
  const std::size_t ranks_;
  const std::vector<ncclComm_t> comms_;
  cuda::Context context_ = nullptr;
  cuda::Stream streams_[kStreams] = {};
  cuda::Event event_ = nullptr;
  cuda::Address memory_[kBuffers] = {};
  std::size_t user_[kBuffers] = {};  // the stream that used a buffer last
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<cuda::Graph> graphs_;
};

struct Arguments {
  std::uint64_t programs = 100;
  std::uint64_t seed = 1;
  int connections = 8;
  int ranks = 3;
};

bool parse(int count, char** words, Arguments& out) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view word(words[i]);
    const auto value = std::strtoull(words[i + 1], nullptr, 10);
    if (word == "--programs") {
      out.programs = value;
    } else if (word == "--seed") {
      out.seed = value;
    } else if (word == "--connections") {
      out.connections = static_cast<int>(value);
    } else if (word == "--encoded") {
      encoded = value != 0;
    } else if (word == "--ranks") {
      out.ranks = static_cast<int>(value);
    } else {
      return false;
    }
  }
  return count % 2 == 1 && out.ranks >= 2 && out.ranks <= 8;
}

void on_all(int ranks, const std::function<void(std::size_t)>& run) {
  std::vector<std::thread> threads;
  for (int i = 0; i < ranks; ++i)
    threads.emplace_back([&run, i] { run(static_cast<std::size_t>(i)); });
  for (std::thread& one : threads) one.join();
}

void run_all(const Arguments& arguments) {
  const auto ranks = static_cast<std::size_t>(arguments.ranks);
  std::vector<ncclComm_t> world(ranks);
  std::vector<int> devices;
  for (int i = 0; i < arguments.ranks; ++i) devices.push_back(i);
  check_nccl("CommInitAll", ncclCommInitAll(world.data(), arguments.ranks, devices.data()));
  std::vector<std::unique_ptr<Runner>> runners(ranks);
  on_all(arguments.ranks, [&](std::size_t rank) {
    ncclComm_t turned = nullptr;
    check_nccl("CommSplit",
               ncclCommSplit(world[rank], 0, -static_cast<int>(rank), &turned, nullptr));
    runners[rank] =
        std::make_unique<Runner>(rank, ranks, std::vector<ncclComm_t>{world[rank], turned});
  });
  for (std::uint64_t i = 0; i < arguments.programs; ++i) {
    const std::uint64_t seed = arguments.seed + i;
    running = "--programs 1 --seed " + std::to_string(seed) + " --connections " +
              std::to_string(arguments.connections) + " --ranks " +
              std::to_string(arguments.ranks) + (encoded ? " --encoded 1" : "");
    ::alarm(kProgramSeconds);
    const CudaDoubleSettings settings{seed, arguments.connections, 1};
    extra.configure(&settings);
    const std::vector<Action> program = Maker(seed, arguments.ranks).program();
    Oracle oracle(ranks, extents_of(program, ranks));
    for (const Action& one : program) oracle.run(one);
    on_all(arguments.ranks, [&](std::size_t rank) { runners[rank]->run(program, oracle); });
  }
  std::printf("%llu programs, %d ranks, %d connections%s: all results are right\n",
              static_cast<unsigned long long>(arguments.programs), arguments.ranks,
              arguments.connections, encoded ? ", encoded" : "");
}

}  // namespace

int main(int count, char** words) {
  Arguments arguments;
  if (!parse(count, words, arguments)) {
    std::fprintf(
        stderr,
        "usage: device_programs [--programs N] [--seed S] [--connections N] [--ranks 2..8] "
        "[--encoded 1]\n");
    return 2;
  }
  const auto opened = Driver::open();
  if (!opened.ok() || !find_extra()) {
    std::fprintf(stderr, "the driver double is not in LD_LIBRARY_PATH\n");
    return 2;
  }
  driver = *opened;
  if (encoded) {
    ::setenv("LEEWAY_NCCL_POLICY", "all_reduce reduce_scatter | f32 | * -> exact fp16", 1);
    (void)leeway::device_codec::register_host_kernels(::dlopen("libcuda.so.1", RTLD_NOW));
  }
  ::signal(SIGALRM, [](int) {
    constexpr char kText[] = "FAILED: a program takes too long: ";
    (void)!::write(2, kText, sizeof kText - 1);
    (void)!::write(2, running.data(), running.size());
    (void)!::write(2, "\n", 1);
    std::_Exit(1);
  });
  run_all(arguments);
  std::fflush(stdout);
  std::_Exit(0);  // communicators are not destroyed, as in most programs
}
