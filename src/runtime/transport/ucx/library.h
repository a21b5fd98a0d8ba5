// Limits UCX's effects on the whole process, because that process is a user's program. UCX's
// messages go into our error texts. Its signal handlers are removed. Its settings are ours, unless
// the user's environment (UCX_*) says otherwise.
#pragma once

#include <ucp/api/ucp.h>

#include <span>
#include <string>
#include <string_view>

#include "leeway/status.h"

namespace leeway::transport {

struct UcxSetting {
  // The name for ucp_config_modify(), which accepts all names, even those without effect. Up to UCX
  // 1.13 the name must not have a device's prefix, and MM_ stands for all shared memory.
  const char* name;
  const char* value;
  // If the environment has a UCX_ variable whose name ends in this, the value there wins.
  const char* variable = name;
};

// Returns true if the user set a UCX variable whose name has this ending.
bool ucx_variable_set(std::string_view ending);

// Reads UCX's configuration from the environment, and changes the settings that the environment
// does not name. The caller releases it with ucp_config_release().
Result<ucp_config_t*> read_ucx_config(std::span<const UcxSetting> settings);

// While an object lives, UCX's warnings and errors from this thread are kept and not printed,
// unless UCX_LOG_LEVEL is set. Cheap; may nest.
class UcxQuiet {
 public:
  UcxQuiet();
  ~UcxQuiet();
  UcxQuiet(const UcxQuiet&) = delete;
  UcxQuiet& operator=(const UcxQuiet&) = delete;
};

// Returns a status that says what failed, UCX's text for it, and UCX's last message on this thread.
Status ucx_error(StatusCode code, ucs_status_t status, const char* what);

}  // namespace leeway::transport
