// Objects that the process has once: its settings, its policy, its communicators, the listeners of
// its unique ids. The first call makes them. They are never destroyed.
#pragma once

#include <atomic>
#include <cstdint>

#include "interop/nccl/listeners.h"
#include "interop/nccl/policy.h"
#include "interop/nccl/registry.h"
#include "interop/nccl/settings.h"
#include "interop/nccl/trace.h"

namespace leeway::nccl {

struct Context {
  Settings settings;
  Policy policy;
  Status status;  // error in the environment; calls that make communicators fail with it
  Registry registry;
  Listeners listeners;
  Trace trace;
  std::atomic<std::uint64_t> communicators{0};  // made so far
  std::atomic<int> world{0};                    // size of the first of them

  static Context& get();

 private:
  Context();
};

inline const Settings& settings() {
  return Context::get().settings;
}

}  // namespace leeway::nccl
