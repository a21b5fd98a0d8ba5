#include "nccl/on_device.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/driver.h"
#include "nccl/nccl_api.h"
#include "nccl/values.h"
#include "support/host_kernels.h"

// The library's own functions, which the wrappers below call (the linker renames them).
extern "C" {
#define LEEWAY_WRAPPED(name, parameters) ncclResult_t __real_nccl##name parameters
#define LEEWAY_FOR_WRAPPED(CALL)                                                                  \
  CALL(AllReduce,                                                                                 \
       (const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t));      \
  CALL(ReduceScatter,                                                                             \
       (const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t));      \
  CALL(Reduce,                                                                                    \
       (const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t, cudaStream_t)); \
  CALL(Bcast, (void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));                    \
  CALL(Broadcast, (const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));   \
  CALL(AllGather, (const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t));        \
  CALL(AlltoAll, (const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t));         \
  CALL(Gather, (const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));      \
  CALL(Scatter, (const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));     \
  CALL(Send, (const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));               \
  CALL(Recv, (void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));                     \
  CALL(RedOpCreatePreMulSum,                                                                      \
       (ncclRedOp_t*, void*, ncclDataType_t, ncclScalarResidence_t, ncclComm_t));                 \
  CALL(GroupStart, ());                                                                           \
  CALL(GroupEnd, ());                                                                             \
  CALL(CommGetAsyncError, (ncclComm_t, ncclResult_t*));                                           \
  CALL(CommInitRankConfig, (ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*));                 \
  CALL(CommSplit, (ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*));
LEEWAY_FOR_WRAPPED(LEEWAY_WRAPPED)
}

namespace conformance {
namespace {

namespace cuda = leeway::device::cuda;
using leeway::device::ContextScope;
using leeway::device::Driver;

const Driver* driver = nullptr;
pid_t opened_by = 0;

void check(const char* what, cuda::Code code) {
  if (code == cuda::kSuccess) return;
  std::fprintf(stderr, "FAILED %s\n", driver->error(what, code).c_str());
  std::_Exit(1);
}

cuda::Address address_of(const void* memory) {
  return reinterpret_cast<cuda::Address>(memory);
}

// Device memory, and pinned host memory of the same size for copies. A copy from or to memory that
// is not pinned would block the calling thread, perhaps while CUDA holds locks.
struct Block {
  cuda::Address device = 0;
  unsigned char* pinned = nullptr;
};

// A host buffer of a case, and its copy on the device.
struct Buffer {
  unsigned char* host = nullptr;
  std::size_t bytes = 0;
  Block block;
};

// Streams and memory of one thread on one device. They are never freed, because freeing device
// memory waits for all streams. Allocating may wait for streams, too, so most memory is allocated
// first.
struct Place {
  static constexpr std::size_t kReserve = std::size_t{8} << 20;
  cuda::Context context = nullptr;
  cuda::Stream streams[2] = {nullptr, nullptr};  // the null stream, and another one
  Block reserve;
  std::size_t reserve_used = 0;
  std::multimap<std::size_t, Block> free;  // by size
  std::map<cuda::Address, std::size_t> used;

  explicit Place(int ordinal) {
    context = leeway::device::context_of(*driver, ordinal).value().context;
    const ContextScope scope(*driver, context);
    for (cuda::Stream& one : streams)
      check("cuStreamCreate", driver->call.cuStreamCreateWithPriority(&one, 1, 0));
    reserve = allocate(kReserve);
  }
  Block take(std::size_t bytes) {
    const std::size_t wanted = std::bit_ceil(std::max<std::size_t>(bytes, 4096));
    Block block;
    if (const auto found = free.find(wanted); found != free.end()) {
      block = found->second;
      free.erase(found);
    } else if (reserve_used + wanted <= kReserve) {
      block = {reserve.device + reserve_used, reserve.pinned + reserve_used};
      reserve_used += wanted;
    } else {
      const ContextScope scope(*driver, context);
      block = allocate(wanted);
    }
    used[block.device] = wanted;
    return block;
  }
  void give_back(const Block& block) {
    free.emplace(used.at(block.device), block);
    used.erase(block.device);
  }

 private:
  static Block allocate(std::size_t bytes) {
    Block block;
    void* pinned = nullptr;
    check("cuMemAlloc", driver->call.cuMemAlloc(&block.device, bytes));
    check("cuMemHostAlloc", driver->call.cuMemHostAlloc(&pinned, bytes, cuda::kHostPortable));
    block.pinned = static_cast<unsigned char*>(pinned);
    return block;
  }
};

// A call whose results are not copied back yet.
struct Pending {
  ncclComm_t comm = nullptr;
  Place* place = nullptr;
  cuda::Stream stream = nullptr;
  std::vector<Buffer> buffers;
  // Becomes true when the results are copied back. The pointer is null until copies are enqueued.
  std::shared_ptr<std::atomic<bool>> copied;
};

struct Thread {
  int depth = 0;
  std::map<int, std::unique_ptr<Place>> places;
  std::vector<Pending> group;  // calls of the open group
  // Calls on non-blocking communicators whose results are not copied back yet.
  std::vector<Pending> waiting;

  Place& place(int ordinal) {
    auto& one = places[ordinal];
    if (one == nullptr) one = std::make_unique<Place>(ordinal);
    return *one;
  }
};

// Keeps the state of threads that have ended, because streams may still use its memory. Later
// threads reuse this state, so that there are few streams: a device has few hardware queues, and
// streams that share a queue may wait for each other.
class Threads {
 public:
  Thread* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return all_.emplace_back(std::make_unique<Thread>()).get();
    Thread* const one = free_.back();
    free_.pop_back();
    return one;
  }
  void give_back(Thread* one) {
    if (one->depth > 0 || !one->group.empty() || !one->waiting.empty()) return;
    const std::lock_guard lock(mutex_);
    free_.push_back(one);
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Thread>> all_;
  std::vector<Thread*> free_;
};

Thread& mine() {
  static auto* const threads = new Threads;
  struct Use {
    Thread* thread = threads->take();
    ~Use() { threads->give_back(thread); }
  };
  thread_local const Use use;
  return *use.thread;
}

std::mutex non_blocking_mutex;
std::map<ncclComm_t, bool> non_blocking;  // whether a communicator's config is non-blocking

bool blocks(ncclComm_t comm) {
  const std::lock_guard lock(non_blocking_mutex);
  const auto found = non_blocking.find(comm);
  return found == non_blocking.end() || !found->second;
}

void copy(cuda::Address to, cuda::Address from, std::size_t bytes, cuda::Stream stream) {
  if (bytes > 0) check("cuMemcpyAsync", driver->call.cuMemcpyAsync(to, from, bytes, stream));
}

// The argument of a host function that copies results back.
struct CopyBack {
  std::vector<Buffer> buffers;
  std::shared_ptr<std::atomic<bool>> copied;
};

void copy_back(Pending& call) {
  const ContextScope scope(*driver, call.place->context);
  for (const Buffer& one : call.buffers)
    copy(address_of(one.block.pinned), one.block.device, one.bytes, call.stream);
  call.copied = std::make_shared<std::atomic<bool>>(false);
  const auto to_host = [](void* argument) {
    const std::unique_ptr<CopyBack> work(static_cast<CopyBack*>(argument));
    for (const Buffer& one : work->buffers) std::copy_n(one.block.pinned, one.bytes, one.host);
    work->copied->store(true);
  };
  check("cuLaunchHostFunc", driver->call.cuLaunchHostFunc(call.stream, to_host,
                                                          new CopyBack{call.buffers, call.copied}));
}

void synchronize(const Pending& call) {
  const ContextScope scope(*driver, call.place->context);
  check("cuStreamSynchronize", driver->call.cuStreamSynchronize(call.stream));
}

void give_back(const Pending& call) {
  for (const Buffer& one : call.buffers) call.place->give_back(one.block);
}

ncclResult_t finish(Pending& call, ncclResult_t code) {
  if (code == ncclSuccess) copy_back(call);
  synchronize(call);
  give_back(call);
  if (code != ncclSuccess) return code;
  ncclResult_t later = ncclSuccess;
  const ncclResult_t asked = __real_ncclCommGetAsyncError(call.comm, &later);
  return asked != ncclSuccess ? asked : later;
}

struct Range {
  const void* memory = nullptr;
  std::size_t bytes = 0;
};

// Returns the buffers of a call in host memory. Overlapping ranges become one buffer.
std::vector<Buffer> buffers_of(const Range& send, const Range& receive) {
  std::vector<Buffer> out;
  for (const Range& one : {send, receive}) {
    if (one.memory == nullptr || driver->kind_of(one.memory).on_streams()) continue;
    auto* begin = static_cast<unsigned char*>(const_cast<void*>(one.memory));
    auto* end = begin + one.bytes;
    if (!out.empty() && begin <= out[0].host + out[0].bytes && out[0].host <= end) {
      begin = std::min(begin, out[0].host);
      end = std::max(end, out[0].host + out[0].bytes);
      out.clear();
    }
    out.push_back({begin, static_cast<std::size_t>(end - begin), {}});
  }
  return out;
}

void* moved(const void* memory, const std::vector<Buffer>& buffers) {
  const auto* const at = static_cast<const unsigned char*>(memory);
  for (const Buffer& one : buffers) {
    if (at >= one.host && at <= one.host + one.bytes && memory != nullptr)
      return reinterpret_cast<void*>(one.block.device + static_cast<std::size_t>(at - one.host));
  }
  return const_cast<void*>(memory);
}

using Call = std::function<ncclResult_t(const void* send, void* receive, cudaStream_t stream)>;

ncclResult_t call_on_device(ncclComm_t comm, const Range& send, const Range& receive,
                            cudaStream_t stream, const Call& call) {
  int ordinal = 0;
  if (ncclCommCuDevice(comm, &ordinal) != ncclSuccess)
    return call(send.memory, const_cast<void*>(receive.memory), stream);
  Thread& thread = mine();
  Pending pending{comm, &thread.place(ordinal), nullptr, buffers_of(send, receive), nullptr};
  pending.stream = pending.place->streams[stream == nullptr ? 0 : 1];
  {
    const ContextScope scope(*driver, pending.place->context);
    for (Buffer& one : pending.buffers) {
      one.block = pending.place->take(one.bytes);
      std::copy_n(one.host, one.bytes, one.block.pinned);
      copy(one.block.device, address_of(one.block.pinned), one.bytes, pending.stream);
    }
  }
  const ncclResult_t code =
      call(moved(send.memory, pending.buffers), moved(receive.memory, pending.buffers),
           reinterpret_cast<cudaStream_t>(pending.stream));
  if (thread.depth > 0) {
    thread.group.push_back(std::move(pending));
    return code;
  }
  if (code != ncclSuccess || blocks(comm)) return finish(pending, code);
  copy_back(pending);
  thread.waiting.push_back(std::move(pending));
  return ncclInProgress;
}

// A communicator's rank and size, and the bytes of one block. `root`: whether this rank is the
// call's root.
struct Facts {
  int rank = 0;
  std::size_t size = 0;
  std::size_t block = 0;
  bool root = true;
};

bool find_facts(ncclComm_t comm, std::size_t count, ncclDataType_t type, int root, Facts& out) {
  int size = 0;
  if (driver == nullptr || opened_by != ::getpid() || type < 0 || type >= kTypes) return false;
  if (comm == nullptr || ncclCommCount(comm, &size) != ncclSuccess ||
      ncclCommUserRank(comm, &out.rank) != ncclSuccess || root < 0 || root >= size)
    return false;
  out.size = static_cast<std::size_t>(size);
  out.block = count * bytes_of(type);
  out.root = out.rank == root;
  return true;
}

ncclResult_t end_group() {
  Thread& thread = mine();
  ncclResult_t code = __real_ncclGroupEnd();
  if (thread.depth > 0) --thread.depth;
  if (thread.depth > 0 || driver == nullptr) return code;
  std::vector<Pending> calls = std::exchange(thread.group, {});
  bool in_progress = false;
  for (Pending& one : calls) {
    if (code == ncclSuccess && !blocks(one.comm)) {
      copy_back(one);
      thread.waiting.push_back(std::move(one));
      in_progress = true;
    } else {
      code = finish(one, code);
    }
  }
  return code == ncclSuccess && in_progress ? ncclInProgress : code;
}

// Returns true while results of this thread's calls on the communicator are not copied back. The
// communicator's state then counts as ncclInProgress.
bool still_waiting(ncclComm_t comm) {
  auto& waiting = mine().waiting;
  bool still = false;
  std::erase_if(waiting, [&](const Pending& one) {
    if (one.comm != comm) return false;
    if (!one.copied->load()) {
      still = true;
      return false;
    }
    give_back(one);
    return true;
  });
  return still;
}

void note(ncclComm_t comm, bool does_not_block) {
  const std::lock_guard lock(non_blocking_mutex);
  non_blocking[comm] = does_not_block;
}

}  // namespace

std::string use_devices() {
  const auto opened = Driver::open();
  if (!opened.ok()) return std::string(opened.status().text());
  driver = *opened;
  opened_by = ::getpid();
  // The test double of CUDA has no kernels of its own, so it is given kernels that are host
  // functions (support/host_kernels.h).
  if (std::getenv("CONFORMANCE_WITHOUT_KERNELS") == nullptr)
    (void)leeway::device_codec::register_host_kernels(
        ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
  return "";
}

bool on_devices() {
  return driver != nullptr;
}

int device_count() {
  return driver != nullptr ? driver->devices() : 8;
}

void use_device_of_rank(int rank) {
  if (driver == nullptr) return;
  const Place& place = mine().place(rank % driver->devices());
  check("cuCtxPushCurrent", driver->call.cuCtxPushCurrent(place.context));
}

void read_memory(void* to, const void* from, std::size_t bytes) {
  if (driver == nullptr) {
    std::copy_n(static_cast<const unsigned char*>(from), bytes, static_cast<unsigned char*>(to));
    return;
  }
  Place& place = mine().place(leeway::device::current_device(*driver));
  const ContextScope scope(*driver, place.context);
  copy(address_of(to), address_of(from), bytes, place.streams[0]);
  check("cuStreamSynchronize", driver->call.cuStreamSynchronize(place.streams[0]));
}

void write_memory(void* to, const void* from, std::size_t bytes) {
  read_memory(to, from, bytes);
}

}  // namespace conformance

using conformance::call_on_device;
using conformance::Facts;
using conformance::find_facts;

extern "C" {

ncclResult_t __wrap_ncclAllReduce(const void* send, void* receive, size_t count,
                                  ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                  cudaStream_t stream) {
  const auto call = [&](const void* s, void* r, cudaStream_t on) {
    return __real_ncclAllReduce(s, r, count, type, op, comm, on);
  };
  Facts facts;
  if (!find_facts(comm, count, type, 0, facts)) return call(send, receive, stream);
  return call_on_device(comm, {send, facts.block}, {receive, facts.block}, stream, call);
}

ncclResult_t __wrap_ncclReduceScatter(const void* send, void* receive, size_t count,
                                      ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                      cudaStream_t stream) {
  const auto call = [&](const void* s, void* r, cudaStream_t on) {
    return __real_ncclReduceScatter(s, r, count, type, op, comm, on);
  };
  Facts facts;
  if (!find_facts(comm, count, type, 0, facts)) return call(send, receive, stream);
  return call_on_device(comm, {send, facts.size * facts.block}, {receive, facts.block}, stream,
                        call);
}

ncclResult_t __wrap_ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  const auto call = [&](const void* s, void* r, cudaStream_t on) {
    return __real_ncclReduce(s, r, count, type, op, root, comm, on);
  };
  Facts facts;
  if (!find_facts(comm, count, type, root, facts)) return call(send, receive, stream);
  return call_on_device(comm, {send, facts.block}, {receive, facts.block}, stream, call);
}

ncclResult_t __wrap_ncclBroadcast(const void* send, void* receive, size_t count,
                                  ncclDataType_t type, int root, ncclComm_t comm,
                                  cudaStream_t stream) {
  const auto call = [&](const void* s, void* r, cudaStream_t on) {
    return __real_ncclBroadcast(s, r, count, type, root, comm, on);
  };
  Facts facts;
  if (!find_facts(comm, count, type, root, facts)) return call(send, receive, stream);
  return call_on_device(comm, {facts.root ? send : nullptr, facts.block}, {receive, facts.block},
                        stream, call);
}

ncclResult_t __wrap_ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root,
                              ncclComm_t comm, cudaStream_t stream) {
  const auto call = [&](const void*, void* r, cudaStream_t on) {
    return __real_ncclBcast(r, count, type, root, comm, on);
  };
  Facts facts;
  if (!find_facts(comm, count, type, root, facts)) return call(buffer, buffer, stream);
  return call_on_device(comm, {}, {buffer, facts.block}, stream, call);
}

ncclResult_t __wrap_ncclAllGather(const void* send, void* receive, size_t count,
                                  ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  const auto call = [&](const void* s, void* r, cudaStream_t on) {
    return __real_ncclAllGather(s, r, count, type, comm, on);
  };
  Facts facts;
  if (!find_facts(comm, count, type, 0, facts)) return call(send, receive, stream);
  return call_on_device(comm, {send, facts.block}, {receive, facts.size * facts.block}, stream,
                        call);
}

ncclResult_t __wrap_ncclAlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type,
                                 ncclComm_t comm, cudaStream_t stream) {
  const auto call = [&](const void* s, void* r, cudaStream_t on) {
    return __real_ncclAlltoAll(s, r, count, type, comm, on);
  };
  Facts facts;
  if (!find_facts(comm, count, type, 0, facts)) return call(send, receive, stream);
  const std::size_t all = facts.size * facts.block;
  return call_on_device(comm, {send, all}, {receive, all}, stream, call);
}

ncclResult_t __wrap_ncclGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                               int root, ncclComm_t comm, cudaStream_t stream) {
  const auto call = [&](const void* s, void* r, cudaStream_t on) {
    return __real_ncclGather(s, r, count, type, root, comm, on);
  };
  Facts facts;
  if (!find_facts(comm, count, type, root, facts)) return call(send, receive, stream);
  return call_on_device(comm, {send, facts.block},
                        {facts.root ? receive : nullptr, facts.size * facts.block}, stream, call);
}

ncclResult_t __wrap_ncclScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                                int root, ncclComm_t comm, cudaStream_t stream) {
  const auto call = [&](const void* s, void* r, cudaStream_t on) {
    return __real_ncclScatter(s, r, count, type, root, comm, on);
  };
  Facts facts;
  if (!find_facts(comm, count, type, root, facts)) return call(send, receive, stream);
  return call_on_device(comm, {facts.root ? send : nullptr, facts.size * facts.block},
                        {receive, facts.block}, stream, call);
}

ncclResult_t __wrap_ncclSend(const void* send, size_t count, ncclDataType_t type, int peer,
                             ncclComm_t comm, cudaStream_t stream) {
  const auto call = [&](const void* s, void*, cudaStream_t on) {
    return __real_ncclSend(s, count, type, peer, comm, on);
  };
  Facts facts;
  if (!find_facts(comm, count, type, peer, facts)) return call(send, nullptr, stream);
  return call_on_device(comm, {send, facts.block}, {}, stream, call);
}

ncclResult_t __wrap_ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer,
                             ncclComm_t comm, cudaStream_t stream) {
  const auto call = [&](const void*, void* r, cudaStream_t on) {
    return __real_ncclRecv(r, count, type, peer, comm, on);
  };
  Facts facts;
  if (!find_facts(comm, count, type, peer, facts)) return call(nullptr, receive, stream);
  return call_on_device(comm, {}, {receive, facts.block}, stream, call);
}

// Passes a factor of device residence in device memory, which is never freed.
ncclResult_t __wrap_ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                             ncclScalarResidence_t residence, ncclComm_t comm) {
  using namespace conformance;  // NOLINT(google-build-using-namespace)
  Facts facts;
  if (residence == ncclScalarDevice && scalar != nullptr && find_facts(comm, 1, type, 0, facts)) {
    int ordinal = 0;
    (void)ncclCommCuDevice(comm, &ordinal);
    Place& place = mine().place(ordinal);
    const Block block = place.take(facts.block);
    std::copy_n(static_cast<const unsigned char*>(scalar), facts.block, block.pinned);
    copy(block.device, address_of(block.pinned), facts.block, place.streams[0]);
    scalar = reinterpret_cast<void*>(block.device);
    // No wait is needed: later calls use this stream, so they come after the copy of the factor.
  }
  return __real_ncclRedOpCreatePreMulSum(op, scalar, type, residence, comm);
}

ncclResult_t __wrap_ncclGroupStart() {
  const ncclResult_t code = __real_ncclGroupStart();
  if (code == ncclSuccess) ++conformance::mine().depth;
  return code;
}

ncclResult_t __wrap_ncclGroupEnd() {
  return conformance::end_group();
}

ncclResult_t __wrap_ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* code) {
  const ncclResult_t answer = __real_ncclCommGetAsyncError(comm, code);
  if (answer == ncclSuccess && *code == ncclSuccess && conformance::on_devices() &&
      conformance::still_waiting(comm))
    *code = ncclInProgress;
  return answer;
}

ncclResult_t __wrap_ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                           ncclConfig_t* config) {
  const ncclResult_t code = __real_ncclCommInitRankConfig(comm, ranks, id, rank, config);
  if (comm != nullptr && config != nullptr) conformance::note(*comm, config->blocking == 0);
  return code;
}

ncclResult_t __wrap_ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made,
                                  ncclConfig_t* config) {
  const ncclResult_t code = __real_ncclCommSplit(comm, color, key, made, config);
  if (made != nullptr)
    conformance::note(*made,
                      config == nullptr ? !conformance::blocks(comm) : config->blocking == 0);
  return code;
}

}  // extern "C"
