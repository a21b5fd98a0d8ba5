// Functions that Leeway does not support: NCCL's device interface, one-sided writes, growing, and
// the parameters of NCCL's own machinery. Such a call returns ncclInvalidUsage, and each name is
// logged once. The names exist because a program dies at its first call of a name that is missing,
// and libtorch_cuda names all of them. Some calls get a true answer: facts of a communicator,
// memory that can be suspended (none), and parameters (none).
#include <atomic>
#include <cstring>

#include "interop/nccl/calls.h"
#include "interop/nccl/context.h"

namespace leeway::nccl {
namespace {

leeway_nccl_result refuse(const char* name, std::atomic<bool>& told) {
  return guarded([&]() -> Code {
    const std::string text =
        std::string(name) + " is not supported by Leeway: it carries collectives and messages";
    if (!told.exchange(true)) return failed(kInvalidUsage, text);
    keep_error(text);
    return kInvalidUsage;
  });
}

std::shared_ptr<Comm> comm_of(leeway_nccl_comm handle, const char* title) {
  auto found = Context::get().registry.find(handle, title);
  return found.ok() && (*found)->met() ? *found : nullptr;
}

// NCCL_SUSPEND_MEM, and ncclCommMemStat_t.
constexpr int kSuspendMemory = 1;
constexpr leeway_nccl_enum kIsSuspended = 1;
constexpr leeway_nccl_enum kTotalMemory = 3;

leeway_nccl_result set_suspended(const char* title, leeway_nccl_comm handle, bool asked,
                                 bool suspended) {
  return guarded([&]() -> Code {
    auto found = Context::get().registry.find(handle, title);
    if (!found.ok()) return failed(found.status());
    if (const Code code = (*found)->usable(title); code != kSuccess || !asked) return code;
    if ((*found)->suspended.exchange(suspended) != suspended) return kSuccess;
    return failed_with(kInvalidUsage, "%s : the communicator is %s suspended", title,
                       suspended ? "already" : "not");
  });
}

}  // namespace

namespace calls {

#define LEEWAY_NCCL_REFUSE(name, parameters) \
  leeway_nccl_result name parameters {       \
    static std::atomic<bool> told{false};    \
    return refuse("nccl" #name, told);       \
  }

LEEWAY_NCCL_REFUSE(CommGetUniqueId, (leeway_nccl_comm, leeway_nccl_id*))
LEEWAY_NCCL_REFUSE(CommGrow, (leeway_nccl_comm, int, const leeway_nccl_id*, int, leeway_nccl_comm*,
                              leeway_nccl_config*))
LEEWAY_NCCL_REFUSE(PutSignal, (const void*, size_t, leeway_nccl_enum, int, leeway_nccl_window,
                               size_t, int, int, unsigned, leeway_nccl_comm, leeway_nccl_stream))
LEEWAY_NCCL_REFUSE(Signal, (int, int, int, unsigned, leeway_nccl_comm, leeway_nccl_stream))
LEEWAY_NCCL_REFUSE(WaitSignal, (int, void*, leeway_nccl_comm, leeway_nccl_stream))
LEEWAY_NCCL_REFUSE(DevCommCreate, (leeway_nccl_comm, const void*, void*))
LEEWAY_NCCL_REFUSE(DevCommDestroy, (leeway_nccl_comm, const void*))
LEEWAY_NCCL_REFUSE(LLA2ACreateRequirement, (int, int, void*, void*))
LEEWAY_NCCL_REFUSE(LsaBarrierCreateRequirement, (leeway_nccl_team, int, void*, void*))
LEEWAY_NCCL_REFUSE(GinBarrierCreateRequirement,
                   (leeway_nccl_comm, leeway_nccl_team, int, void*, void*))
LEEWAY_NCCL_REFUSE(GinOutboxCreateRequirement, (int, int, void*, void*))
LEEWAY_NCCL_REFUSE(GinInboxA2ACreateRequirement, (leeway_nccl_team, int, int, void*, void*))
LEEWAY_NCCL_REFUSE(GetLsaMultimemDevicePointer, (leeway_nccl_window, size_t, void**))
LEEWAY_NCCL_REFUSE(GetMultimemDevicePointer, (leeway_nccl_window, size_t, void*, void**))
LEEWAY_NCCL_REFUSE(GetLsaDevicePointer, (leeway_nccl_window, size_t, int, void**))
LEEWAY_NCCL_REFUSE(GetPeerDevicePointer, (leeway_nccl_window, size_t, int, void**))
LEEWAY_NCCL_REFUSE(ParamBind, (void**, const char*))
LEEWAY_NCCL_REFUSE(ParamGetI8, (void*, int8_t*))
LEEWAY_NCCL_REFUSE(ParamGetI16, (void*, int16_t*))
LEEWAY_NCCL_REFUSE(ParamGetI32, (void*, int32_t*))
LEEWAY_NCCL_REFUSE(ParamGetI64, (void*, int64_t*))
LEEWAY_NCCL_REFUSE(ParamGetU8, (void*, uint8_t*))
LEEWAY_NCCL_REFUSE(ParamGetU16, (void*, uint16_t*))
LEEWAY_NCCL_REFUSE(ParamGetU32, (void*, uint32_t*))
LEEWAY_NCCL_REFUSE(ParamGetU64, (void*, uint64_t*))
LEEWAY_NCCL_REFUSE(ParamGetStr, (void*, const char**))
LEEWAY_NCCL_REFUSE(ParamGet, (void*, void*, int, int*))
LEEWAY_NCCL_REFUSE(ParamGetParameter, (const char*, const char**, int*))
#undef LEEWAY_NCCL_REFUSE

leeway_nccl_result ParamGetAllParameterKeys(const char*** table, int* count) {
  return guarded([&]() -> Code {
    if (table == nullptr || count == nullptr)
      return null_argument("ParamGetAllParameterKeys", table == nullptr ? "table" : "tableLen");
    *table = nullptr;
    *count = 0;
    return kSuccess;
  });
}

void ParamDumpAll() {
  info("ncclParamDumpAll: parameters of NCCL mean nothing to Leeway");
}

// Programs look for CommSuspend, CommResume and CommMemStats by name, and call them before they
// give memory to other programs (vLLM's sleep mode). A communicator of Leeway has no memory of a
// device to give, so suspending the communicator is done at once. A second suspend and a resume
// without one are refused, as by NCCL.
leeway_nccl_result CommSuspend(leeway_nccl_comm handle, int flags) {
  return set_suspended("CommSuspend", handle, (flags & kSuspendMemory) != 0, true);
}

leeway_nccl_result CommResume(leeway_nccl_comm handle) {
  return set_suspended("CommResume", handle, true, false);
}

leeway_nccl_result CommMemStats(leeway_nccl_comm handle, leeway_nccl_enum statistic,
                                uint64_t* value) {
  return guarded([&]() -> Code {
    constexpr const char* kTitle = "CommMemStats";
    auto found = Context::get().registry.find(handle, kTitle);
    if (!found.ok()) return failed(found.status());
    if (value == nullptr) return null_argument(kTitle, "value");
    if (statistic < 0 || statistic > kTotalMemory)
      return failed_with(kInvalidArgument, "%s : invalid statistic %d", kTitle, statistic);
    *value = statistic == kIsSuspended && (*found)->suspended ? 1 : 0;
    return kSuccess;
  });
}

leeway_nccl_result CommQueryProperties(leeway_nccl_comm handle,
                                       leeway_nccl_properties* properties) {
  return guarded([&]() -> Code {
    constexpr const char* kTitle = "CommQueryProperties";
    auto found = Context::get().registry.find(handle, kTitle);
    if (!found.ok()) return failed(found.status());
    if (properties == nullptr) return null_argument(kTitle, "props");
    constexpr std::size_t kHeadBytes = offsetof(leeway_nccl_properties, rank);
    if (properties->size < kHeadBytes)
      return failed_with(kInvalidArgument, "%s : props argument not initialized", kTitle);
    leeway_nccl_properties told{};
    told.rank = (*found)->rank();
    told.ranks = (*found)->size();
    told.cuda_device = (*found)->device();
    told.nvml_device = (*found)->device();
    const std::size_t bytes = std::min(properties->size, sizeof told);
    std::memcpy(&properties->rank, &told.rank, bytes - kHeadBytes);
    return kSuccess;
  });
}

leeway_nccl_team TeamWorld(leeway_nccl_comm handle) {
  const auto comm = comm_of(handle, "TeamWorld");
  return comm != nullptr ? leeway_nccl_team{comm->size(), comm->rank(), 1} : leeway_nccl_team{};
}

// Team of the ranks whose memory a kernel of this rank can reach: only itself.
leeway_nccl_team TeamLsa(leeway_nccl_comm handle) {
  return comm_of(handle, "TeamLsa") != nullptr ? leeway_nccl_team{1, 0, 1} : leeway_nccl_team{};
}

leeway_nccl_team TeamRail(leeway_nccl_comm handle) {
  return TeamWorld(handle);
}

int TeamRankToWorld(leeway_nccl_comm handle, leeway_nccl_team team, int rank) {
  const auto comm = comm_of(handle, "TeamRankToWorld");
  return comm != nullptr ? comm->rank() + (rank - team.rank) * team.stride : -1;
}

int TeamRankToLsa(leeway_nccl_comm handle, leeway_nccl_team team, int rank) {
  const auto comm = comm_of(handle, "TeamRankToLsa");
  return comm != nullptr ? (rank - team.rank) * team.stride : -1;
}

int LLA2ACalcSlots(int elements, int bytes) {
  constexpr int kSlotBytes = 8;
  return elements * ((bytes + kSlotBytes - 1) / kSlotBytes);
}

}  // namespace calls
}  // namespace leeway::nccl
