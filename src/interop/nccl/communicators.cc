// Functions that make and end communicators, and that answer facts of them.
#include <utility>

#include "interop/nccl/calls.h"
#include "interop/nccl/context.h"
#include "interop/nccl/devices.h"
#include "interop/nccl/joining.h"

namespace leeway::nccl {
namespace {

constexpr int kNoColor = -1;
constexpr int kShrinkAbort = 1;

// Config of communicators whose program passes none.
Config default_config() {
  Config config;
  config.blocking = settings().blocking.value_or(true);
  return config;
}

// Reads a program's config. NCCL_COMM_BLOCKING overrides it.
Result<Config> config_of(const leeway_nccl_config* asked, const Config& inherited) {
  auto config = read_config(asked, inherited);
  if (config.ok() && settings().blocking) config->blocking = *settings().blocking;
  return config;
}

// Returns the job that makes `comm`, whose handle the program has already. The handle becomes null
// if the job is cancelled, or if waiting finds that the communicator failed.
Group::Job making(const std::shared_ptr<Comm>& comm, leeway_nccl_comm* handle,
                  std::function<void()> begin) {
  const auto forget = [handle] {
    (void)Context::get().registry.take(*handle, "");
    *handle = nullptr;
  };
  return {comm, std::move(begin),
          [comm, forget] {
            const Code code = comm->wait_ready();
            if (code != kSuccess || comm->none()) forget();
            return code;
          },
          forget};
}

Code add_new(const std::shared_ptr<Comm>& comm, leeway_nccl_comm* handle,
             std::function<void()> begin) {
  leave_at_exit();
  *handle = Context::get().registry.add(comm);
  return Group::mine().add(making(comm, handle, std::move(begin)));
}

Code init(const char* title, leeway_nccl_comm* handle, int ranks, int rank,
          const leeway_nccl_id& bytes, const leeway_nccl_config* asked) {
  if (handle == nullptr) return null_argument(title, "newcomm");
  if (const Status& status = Context::get().status; !status.ok()) return failed(status);
  auto config = config_of(asked, default_config());
  if (!config.ok()) return failed(config.status());
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return failed_with(kInvalidArgument, "Invalid rank requested : %d/%d", rank, ranks);
  auto id = UniqueId::decode(bytes);
  if (!id.ok()) return failed(id.status());
  auto comm = std::make_shared<Comm>(std::move(*config), current_device());
  return add_new(comm, handle, [comm, id = std::move(*id), ranks, rank] {
    if (Status status = begin_joining(*comm, id, ranks, rank); !status.ok()) comm->fail(status);
  });
}

Code init_all(leeway_nccl_comm* handles, int devices, const int* list) {
  constexpr const char* kTitle = "CommInitAll";
  if (handles == nullptr) return null_argument(kTitle, "comms");
  if (devices < 1)
    return failed_with(kInvalidArgument, "Invalid device count requested : %d", devices);
  if (const Status& status = Context::get().status; !status.ok()) return failed(status);
  for (int i = 0; list != nullptr && stager() != nullptr && i < devices; ++i) {
    if (list[i] < 0 || list[i] >= stager()->driver().devices())
      return failed_with(kInvalidArgument, "%s : no such device: %d", kTitle, list[i]);
  }
  auto made = create_in_process(devices);
  if (!made.ok()) return failed(made.status());
  leave_at_exit();
  std::vector<std::shared_ptr<Comm>> comms;
  for (int i = 0; i < devices; ++i) {
    Config config = default_config();
    config.blocking = true;
    auto comm = std::make_shared<Comm>(config, list == nullptr ? i : list[i]);
    comm->begin(std::move((*made)[static_cast<std::size_t>(i)]));
    handles[i] = Context::get().registry.add(comm);
    comms.push_back(std::move(comm));
  }
  Code code = kSuccess;
  for (const auto& comm : comms) {
    if (const Code one = comm->wait_ready(); code == kSuccess) code = one;
  }
  return code;
}

Code split(leeway_nccl_comm parent, int color, int key, leeway_nccl_comm* handle,
           const leeway_nccl_config* asked) {
  constexpr const char* kTitle = "CommSplit";
  auto found = Context::get().registry.find(parent, kTitle);
  if (!found.ok()) return failed(found.status());
  if (handle == nullptr) return null_argument(kTitle, "newcomm");
  if (color < kNoColor)
    return failed_with(kInvalidArgument, "%s : invalid color %d", kTitle, color);
  if (const Code code = (*found)->splittable(kTitle); code != kSuccess) return code;
  auto config = config_of(asked, (*found)->config());
  if (!config.ok()) return failed(config.status());
  auto comm = std::make_shared<Comm>(std::move(*config), (*found)->device());
  auto begin = [comm, from = *found, color, key] { from->split_into(comm, color, key); };
  if (color != kNoColor) return add_new(comm, handle, std::move(begin));
  // A rank without a color takes part in the split, too, because the other ranks must learn that it
  // has none. Its handle is null at once.
  *handle = nullptr;
  return Group::mine().add({comm, std::move(begin), [comm] { return comm->wait_ready(); }});
}

Code shrink(leeway_nccl_comm parent, const int* excluded, int count, leeway_nccl_comm* handle,
            const leeway_nccl_config* asked, int flags) {
  constexpr const char* kTitle = "CommShrink";
  auto found = Context::get().registry.find(parent, kTitle);
  if (!found.ok()) return failed(found.status());
  if (handle == nullptr) return null_argument(kTitle, "newcomm");
  *handle = nullptr;
  if (excluded == nullptr || count < 1)
    return failed_with(kInvalidArgument, "%s : no rank is excluded", kTitle);
  const auto communicator = (*found)->hold();
  if (communicator == nullptr) return failed((*found)->gone());
  std::vector<Rank> ranks;
  for (int i = 0; i < count; ++i) {
    if (excluded[i] < 0 || excluded[i] >= communicator->size())
      return failed_with(kInvalidArgument, "%s : invalid excluded rank %d", kTitle, excluded[i]);
    ranks.push_back(static_cast<Rank>(excluded[i]));
  }
  auto config = config_of(asked, (*found)->config());
  if (!config.ok()) return failed(config.status());
  if (flags == kShrinkAbort) (*found)->end_operations();
  auto comm = std::make_shared<Comm>(std::move(*config), (*found)->device());
  return add_new(comm, handle,
                 [comm, communicator, ranks] { comm->begin(communicator->shrink_async(ranks)); });
}

Code leave(const std::shared_ptr<Comm>& comm, bool waits) {
  return Group::mine().add({.comm = comm,
                            .begin = [comm] { comm->begin_leaving(); },
                            .wait =
                                [comm] {
                                  comm->wait_left();
                                  return kSuccess;
                                },
                            .waits = waits});
}

// Writes one fact of a communicator to `value`. Refuses if its ranks have not met.
template <typename Value, typename Read>
leeway_nccl_result tell(leeway_nccl_comm handle, const char* title, const char* argument,
                        Value* value, Read read) {
  return guarded([&]() -> Code {
    auto found = Context::get().registry.find(handle, title);
    if (!found.ok()) return failed(found.status());
    if (value == nullptr) return null_argument(title, argument);
    if (!(*found)->met())
      return failed_with(kInvalidArgument, "%s : the communicator is not ready", title);
    *value = read(**found);
    return kSuccess;
  });
}

}  // namespace

namespace calls {

leeway_nccl_result GetVersion(int* version) {
  return guarded([&]() -> Code {
    if (version == nullptr) return kInvalidArgument;  // without a text, as NVIDIA's library
    *version = settings().version;
    return kSuccess;
  });
}

const char* GetErrorString(leeway_nccl_result code) {
  return text_of(code, settings().version);
}

const char* GetLastError(leeway_nccl_comm) {
  return last_error();
}

void ResetDebugInit() {
  reread_debug_variables();
}

leeway_nccl_result GetUniqueId(leeway_nccl_id* out) {
  return guarded([&]() -> Code {
    if (out == nullptr) return null_argument("GetUniqueId", "out");
    const auto id = make_unique_id();
    if (!id.ok()) return failed(id.status());
    *out = id->encode();
    return kSuccess;
  });
}

leeway_nccl_result CommInitRank(leeway_nccl_comm* comm, int ranks, leeway_nccl_id id, int rank) {
  return guarded([&] { return init("CommInitRank", comm, ranks, rank, id, nullptr); });
}

leeway_nccl_result CommInitRankConfig(leeway_nccl_comm* comm, int ranks, leeway_nccl_id id,
                                      int rank, leeway_nccl_config* config) {
  return guarded([&] { return init("CommInitRankConfig", comm, ranks, rank, id, config); });
}

leeway_nccl_result CommInitRankScalable(leeway_nccl_comm* comm, int ranks, int rank, int ids,
                                        leeway_nccl_id* id, leeway_nccl_config* config) {
  return guarded([&]() -> Code {
    constexpr const char* kTitle = "CommInitRankScalable";
    if (id == nullptr) return null_argument(kTitle, "commIds");
    if (ids < 1 || ids > ranks)
      return failed_with(kInvalidArgument, "%s : invalid number of ids %d", kTitle, ids);
    return init(kTitle, comm, ranks, rank, *id, config);
  });
}

leeway_nccl_result CommInitAll(leeway_nccl_comm* comms, int devices, const int* list) {
  return guarded([&] { return init_all(comms, devices, list); });
}

leeway_nccl_result CommSplit(leeway_nccl_comm comm, int color, int key, leeway_nccl_comm* made,
                             leeway_nccl_config* config) {
  return guarded([&] { return split(comm, color, key, made, config); });
}

leeway_nccl_result CommShrink(leeway_nccl_comm comm, int* excluded, int count,
                              leeway_nccl_comm* made, leeway_nccl_config* config, int flags) {
  return guarded([&] { return shrink(comm, excluded, count, made, config, flags); });
}

leeway_nccl_result CommFinalize(leeway_nccl_comm handle) {
  return guarded([&]() -> Code {
    if (handle == nullptr) return kSuccess;
    auto found = Context::get().registry.find(handle, "CommFinalize");
    if (!found.ok()) return failed(found.status());
    if ((*found)->revoked())
      return failed_with(kInvalidArgument, "CommFinalize : the communicator was revoked");
    if (const Code code = (*found)->usable("CommFinalize"); code != kSuccess) return code;
    return leave(*found, false);
  });
}

leeway_nccl_result CommDestroy(leeway_nccl_comm handle) {
  return guarded([&]() -> Code {
    if (handle == nullptr) return kSuccess;
    auto found = Context::get().registry.take(handle, "CommDestroy");
    if (!found.ok()) return failed(found.status());
    return leave(*found, true);
  });
}

leeway_nccl_result CommAbort(leeway_nccl_comm handle) {
  return guarded([&]() -> Code {
    if (handle == nullptr) return kSuccess;
    auto found = Context::get().registry.take(handle, "CommAbort");
    if (!found.ok()) return failed(found.status());
    // Aborts at once, in a group too: abort() waits for no peer, so the order does not matter.
    (*found)->abort();
    return kSuccess;
  });
}

leeway_nccl_result CommRevoke(leeway_nccl_comm handle, int flags) {
  return guarded([&]() -> Code {
    if (handle == nullptr) return kSuccess;
    auto found = Context::get().registry.find(handle, "CommRevoke");
    if (!found.ok()) return failed(found.status());
    if (flags != 0) return failed_with(kInvalidArgument, "CommRevoke : invalid flags %d", flags);
    return (*found)->revoke();
  });
}

leeway_nccl_result CommGetAsyncError(leeway_nccl_comm handle, leeway_nccl_result* code) {
  return guarded([&]() -> Code {
    auto found = Context::get().registry.find(handle, "ncclGetAsyncError");
    if (!found.ok()) return failed(found.status());
    if (code == nullptr) return null_argument("ncclGetAsyncError", "asyncError");
    *code = (*found)->state();
    return kSuccess;
  });
}

leeway_nccl_result CommCount(leeway_nccl_comm comm, int* count) {
  return tell(comm, "CommCount", "count", count, [](const Comm& one) { return one.size(); });
}

leeway_nccl_result CommCuDevice(leeway_nccl_comm comm, int* device) {
  return tell(comm, "CommCuDevice", "devid", device, [](const Comm& one) { return one.device(); });
}

leeway_nccl_result CommUserRank(leeway_nccl_comm comm, int* rank) {
  return tell(comm, "CommUserRank", "rank", rank, [](const Comm& one) { return one.rank(); });
}

}  // namespace calls
}  // namespace leeway::nccl
