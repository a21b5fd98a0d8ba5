#include "interop/nccl/context.h"

#include <cstdlib>
#include <string>

#include "base/environment.h"
#include "interop/nccl/debug.h"

namespace leeway::nccl {

Context::Context() {
  auto read = Settings::read([](const char* name) { return std::getenv(name); });
  settings.version = kVersion;
  if (!read.ok()) {
    status = read.status();
    return;
  }
  settings = std::move(*read);
  auto rules = Policy::read(settings.policy);
  if (rules.ok()) {
    policy = std::move(*rules);
    for (const std::string& idle : policy.idle_rules()) say("LEEWAY_NCCL_POLICY: " + idle);
  } else {
    status = rules.status();
  }
  if (status.ok()) status = trace.open(settings.trace);
}

Context& Context::get() {
  static Context* const context = [] {
    auto* const made = new Context;  // never destroyed: programs call while they exit
    say_version(made->settings.version);
    std::string names;
    for (const std::string& name : ignored_variables(environment())) names += " " + name;
    if (!names.empty()) info("variables that mean nothing to Leeway and are ignored:" + names);
    return made;
  }();
  return *context;
}

}  // namespace leeway::nccl
