// Leeway's additions: policies, traces, versions, ids made by other libraries, and NCCL's variables
// (A6).
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "nccl/conformance.h"
#include "nccl/on_device.h"
#include "support/secret_line.h"

// The library's own functions. Calls without __real_ reach the wrappers of on_device.cc, which copy
// host memory to a device.
extern "C" {
ncclResult_t __real_ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                                  ncclComm_t, cudaStream_t);
ncclResult_t __real_ncclReduceScatter(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                                      ncclComm_t, cudaStream_t);
ncclResult_t __real_ncclReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int,
                               ncclComm_t, cudaStream_t);
}

namespace conformance {
namespace {

std::string file_of(const Rank& rank, const char* ending) {
  const char* const folder = std::getenv("TMPDIR");
  return std::string(folder == nullptr ? "/tmp" : folder) + "/nccl_conformance." +
         std::to_string(::getppid()) + "." + std::to_string(rank.rank) + ending;
}

std::string contents(const std::string& name) {
  std::ifstream file(name);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

void foreign_id(const Rank& rank) {
  ncclUniqueId id;
  std::memset(&id, 0x5A, sizeof id);
  ncclComm_t comm = nullptr;
  EXPECT_CODE(rank, ncclCommInitRank(&comm, 2, id, 0), ncclInvalidArgument);
  const std::string text = ncclGetLastError(nullptr);
  EXPECT_THAT_IT(rank, has(text, "did not load Leeway"), text);
  EXPECT_OK(rank, ncclGetUniqueId(&id));
  reinterpret_cast<char*>(&id)[20] ^= 1;
  EXPECT_CODE(rank, ncclCommInitRank(&comm, 2, id, 0), ncclInvalidArgument);
}

void version_override(const Rank& rank) {
  ::setenv("LEEWAY_NCCL_VERSION", "2.30.7", 1);
  int version = 0;
  EXPECT_OK(rank, ncclGetVersion(&version));
  EXPECT_THAT_IT(rank, version == 23007, std::to_string(version));
  const char* const text = ncclGetErrorString(static_cast<ncclResult_t>(8));
  EXPECT_THAT_IT(rank, std::string(text) == "timeout", text);
}

void wrong_variable(const Rank& rank) {
  ::setenv("LEEWAY_NCCL_POLICY", "all_reduce | f32 | * -> exact\nall_reduce | f33 -> exact", 1);
  ncclUniqueId id;
  EXPECT_CODE(rank, ncclGetUniqueId(&id), ncclInvalidArgument);
  const std::string text = ncclGetLastError(nullptr);
  EXPECT_THAT_IT(rank, has(text, "line 2, column 14") && has(text, "f33"), text);
}

void policies_are_compared(const Rank& rank) {
  ::setenv("LEEWAY_NCCL_POLICY",
           rank.rank == 0 ? "all_reduce -> best_effort(1s)" : "all_reduce -> best_effort(2s)", 1);
  const ncclUniqueId id = rank.fresh_id();
  ncclComm_t comm = nullptr;
  EXPECT_CODE(rank, ncclCommInitRank(&comm, rank.size, id, rank.rank), ncclInvalidUsage);
  EXPECT_THAT_IT(rank, comm == nullptr, "a communicator that failed has a handle");
  const std::string text = ncclGetLastError(nullptr);
  EXPECT_THAT_IT(rank, has(text, "LEEWAY_NCCL_POLICY"), text);
}

// Only operations that a policy rule names are lossy; all others are exact.
void policy_and_trace(const Rank& rank) {
  const std::string trace = file_of(rank, ".trace");
  ::setenv("LEEWAY_NCCL_POLICY",
           "all_reduce reduce_scatter | f32 bf16 | >=128KiB | comm=dp* -> best_effort(10s) nvfp4",
           1);
  ::setenv("LEEWAY_NCCL_TRACE", trace.c_str(), 1);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  set_name(config, "dp0");
  const ncclComm_t lossy = rank.connect(config);
  set_name(config, "tp0");
  const ncclComm_t exact = rank.connect(config);
  std::vector<float> values(65'536, 1.25f);
  const auto reduce = [&](ncclComm_t comm, std::size_t count, ncclRedOp_t op) {
    EXPECT_OK(rank,
              ncclAllReduce(values.data(), values.data(), count, ncclFloat32, op, comm, nullptr));
  };
  reduce(lossy, values.size(), ncclSum);
  reduce(lossy, values.size(), ncclMax);
  reduce(lossy, 1000, ncclSum);
  reduce(exact, values.size(), ncclSum);
  std::vector<unsigned short> bf16(131'072, 0x3F80);
  EXPECT_OK(rank, ncclAllReduce(bf16.data(), bf16.data(), bf16.size(), ncclBfloat16, ncclSum, lossy,
                                nullptr));
  EXPECT_OK(rank, ncclCommDestroy(lossy));
  EXPECT_OK(rank, ncclCommDestroy(exact));
  std::ifstream lines(trace);
  std::vector<std::string> got;
  for (std::string line; std::getline(lines, line);) got.push_back(line);
  ::unlink(trace.c_str());
  EXPECT_THAT_IT(rank, got.size() == 5, std::to_string(got.size()));
  const bool wanted[] = {true, false, false, false, true};
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_THAT_IT(rank, has(got[i], "\"operation\":\"all_reduce\""), got[i]);
    EXPECT_THAT_IT(rank, has(got[i], "\"delivery\":\"best_effort\"") == wanted[i], got[i]);
    EXPECT_THAT_IT(rank, has(got[i], "\"codec\":\"nvfp4") == wanted[i], got[i]);
  }
}

// Kernels on devices must encode to the same bits as the processor, so results from device and host
// memory must be equal. Contributions are whole numbers that the codec represents exactly. So sums
// do not depend on which rank owns a part, although the owner of a short part changes from call to
// call.
void policy_encodes(const Rank& rank) {
  const std::string log = file_of(rank, ".encodes");
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_FILE", log.c_str(), 1);
  ::setenv("LEEWAY_NCCL_POLICY",
           "all_reduce reduce_scatter reduce | f32 | * -> exact mxfp8_e4m3:nearest", 1);
  const ncclComm_t comm = rank.connect();
  const auto size = static_cast<std::size_t>(rank.size);
  constexpr std::size_t kCount = 200'003;  // several steps of a kernel, and a multiple of nothing
  std::vector<float> in(size * kCount);
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(rank.rank) * 11) % 31) - 15.0f;
  const auto all_reduce = [&](auto* call) {
    std::vector<float> out(in.begin(), in.begin() + kCount);
    EXPECT_OK(rank, call(out.data(), out.data(), kCount, ncclFloat32, ncclSum, comm, nullptr));
    return out;
  };
  EXPECT_THAT_IT(rank, all_reduce(ncclAllReduce) == all_reduce(__real_ncclAllReduce), "AllReduce");
  const auto reduce_scatter = [&](auto* call) {
    std::vector<float> out(kCount);
    EXPECT_OK(rank, call(in.data(), out.data(), kCount, ncclFloat32, ncclAvg, comm, nullptr));
    return out;
  };
  EXPECT_THAT_IT(rank,
                 reduce_scatter(ncclReduceScatter) == reduce_scatter(__real_ncclReduceScatter),
                 "ReduceScatter");
  const auto reduce = [&](auto* call) {
    std::vector<float> out(kCount);
    EXPECT_OK(rank, call(in.data(), out.data(), kCount, ncclFloat32, ncclSum, 1, comm, nullptr));
    return out;
  };
  EXPECT_THAT_IT(rank, reduce(ncclReduce) == reduce(__real_ncclReduce), "Reduce");
  EXPECT_OK(rank, ncclCommDestroy(comm));
  const std::string text = contents(log);
  ::unlink(log.c_str());
  // Device kernels are missing if the variable turns them off, or if the build had no nvcc.
  const bool refused = std::getenv("CONFORMANCE_WITHOUT_KERNELS") != nullptr;
  const char* const wanted = refused || has(text, "no nvcc was found")
                                 ? "codecs of device memory run on the processor"
                                 : "codecs of device memory run on the device";
  EXPECT_THAT_IT(rank, has(text, wanted) == on_devices(), text);
}

void variables_of_nccl(const Rank& rank) {
  const std::string log = file_of(rank, ".log");
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_FILE", log.c_str(), 1);
  ::setenv("NCCL_ALGO", "Ring", 1);
  ::setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  ::setenv("NCCL_SOCKET_FAMILY", "AF_INET", 1);
  ::setenv("NCCL_COMM_BLOCKING", "0", 1);
  const ncclUniqueId id = rank.fresh_id();
  ncclComm_t comm = nullptr;
  const ncclResult_t code = ncclCommInitRank(&comm, rank.size, id, rank.rank);
  EXPECT_THAT_IT(rank, code == ncclInProgress || code == ncclSuccess, std::to_string(code));
  EXPECT_OK(rank, settled(rank, comm));
  EXPECT_CODE(rank, ncclBcast(nullptr, 1, ncclInt8, -1, comm, nullptr), ncclInvalidArgument);
  EXPECT_OK(rank, ncclCommDestroy(comm));
  const std::string text = contents(log);
  ::unlink(log.c_str());
  EXPECT_THAT_IT(rank, has(text, "are ignored: NCCL_ALGO"), text);
  EXPECT_THAT_IT(rank, has(text, "NCCL WARN Broadcast : invalid root -1"), text);
}

// Makes two communicators one after the other at the same address, that of NCCL_COMM_ID. Returns
// how many lines of the log say that the group is not sealed.
int meet_twice_at_a_place(const Rank& rank) {
  const std::string place = "127.0.0.1:" + std::to_string(20'000 + ::getppid() % 10'000);
  const std::string log = "/tmp/nccl_place_" + std::to_string(::getpid());
  ::setenv("NCCL_COMM_ID", place.c_str(), 1);
  ::setenv("NCCL_DEBUG", "WARN", 1);
  ::setenv("NCCL_DEBUG_FILE", log.c_str(), 1);
  for (int i = 0; i < 2; ++i) {
    ncclUniqueId id;  // each rank makes the same
    EXPECT_OK(rank, ncclGetUniqueId(&id));
    ncclComm_t comm = nullptr;
    rank.barrier();
    EXPECT_OK(rank, ncclCommInitRank(&comm, rank.size, id, rank.rank));
    int value = 1;
    EXPECT_OK(rank, ncclAllReduce(&value, &value, 1, ncclInt32, ncclSum, comm, nullptr));
    EXPECT_THAT_IT(rank, value == rank.size, std::to_string(value));
    EXPECT_OK(rank, ncclCommDestroy(comm));
    rank.barrier();
  }
  int told = 0;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) told += has(line, "not sealed") ? 1 : 0;
  ::unlink(log.c_str());
  return told;
}

void meeting_at_a_place(const Rank& rank) {
  const int told = meet_twice_at_a_place(rank);
  EXPECT_THAT_IT(rank, told == 1, std::to_string(told));
}

void meeting_at_a_place_with_a_secret(const Rank& rank) {
  const std::string secret = "/tmp/nccl_secret_" + std::to_string(::getppid());
  if (rank.rank == 0) {
    std::ofstream(secret) << leeway::secret_digits('a') << '\n';
    ::chmod(secret.c_str(), S_IRUSR);
  }
  rank.barrier();
  ::setenv("LEEWAY_SECRET_FILE", secret.c_str(), 1);
  const int told = meet_twice_at_a_place(rank);
  EXPECT_THAT_IT(rank, told == 0, std::to_string(told));
  if (rank.rank == 0) ::unlink(secret.c_str());
}

// C4: an operation that a peer never joins ends at LEEWAY_NCCL_TIMEOUT.
void timeout(const Rank& rank) {
  ::setenv("LEEWAY_NCCL_TIMEOUT", "0.3", 1);
  const ncclComm_t comm = rank.connect();
  if (rank.rank == 0) {
    int value = 1;
    EXPECT_CODE(rank, ncclRecv(&value, 1, ncclInt32, 1, comm, nullptr), ncclRemoteError);
    const std::string text = ncclGetLastError(nullptr);
    EXPECT_THAT_IT(rank, has(text, "rank 1") || has(text, "peer 1"), text);
  }
  rank.barrier();
  EXPECT_OK(rank, ncclCommAbort(comm));
}

}  // namespace

std::vector<Case> leeway_cases() {
  using Needs = Case::Needs;
  return {{"id.foreign", foreign_id, Needs::processes},
          {"library.version_override", version_override, Needs::processes},
          {"policy.wrong_variable", wrong_variable, Needs::processes},
          {"policy.compared", policies_are_compared, Needs::processes},
          {"policy.and_trace", policy_and_trace, Needs::processes},
          {"policy.encodes", policy_encodes, Needs::processes},
          {"arguments.variables_of_nccl", variables_of_nccl, Needs::processes},
          {"arguments.meeting_at_a_place", meeting_at_a_place, Needs::processes},
          {"arguments.meeting_at_a_place_with_a_secret", meeting_at_a_place_with_a_secret,
           Needs::processes},
          {"communicators.timeout", timeout, Needs::processes}};
}

}  // namespace conformance
