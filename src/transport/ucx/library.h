// UCX's process-wide habits, so that a library may use it: what it prints is kept for our own error
// texts, its signal handlers are taken out, and its settings are ours unless the user's environment
// (UCX_*) says otherwise.
#pragma once

#include <ucp/api/ucp.h>

#include <span>
#include <string>
#include <string_view>

#include "leeway/status.h"

namespace leeway::transport {

struct UcxSetting {
  // As ucp_config_modify() knows it: up to UCX 1.13 without the prefix of a device, and MM_ for
  // what all shared memory has. It takes every name, also those that nothing listens to.
  const char* name;
  const char* value;
  // A variable UCX_... of the environment that ends like this is the user's choice, and wins.
  const char* variable = name;
};

// Whether the user chose any.
bool ucx_variable_set(std::string_view ending);

// Reads UCX's configuration from the environment and changes what the environment does not name.
// The caller releases it with ucp_config_release().
Result<ucp_config_t*> read_ucx_config(std::span<const UcxSetting> settings);

// While one lives, what UCX would print from this thread (warnings and errors) is kept instead,
// unless UCX_LOG_LEVEL is set. Cheap; may nest.
class UcxQuiet {
 public:
  UcxQuiet();
  ~UcxQuiet();
  UcxQuiet(const UcxQuiet&) = delete;
  UcxQuiet& operator=(const UcxQuiet&) = delete;
};

// A status that says what failed, what UCX calls it, and the last thing UCX said about it on this
// thread.
Status ucx_error(StatusCode code, ucs_status_t status, const char* what);

}  // namespace leeway::transport
