#include "transport/ucx/library.h"

#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include <array>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/environment.h"

namespace leeway::transport {
namespace {

// Removes libucs's handlers of these signals. libucs installs them when it is loaded, before
// main(), to print a backtrace. But a program that links Leeway may have handlers of its own: those
// of a sanitizer or crash reporter. This runs after libucs's own constructor, because this library
// depends on libucs.
[[gnu::constructor]] void restore_signal_handlers() {
  if (ucx_variable_set("HANDLE_ERRORS") || ucx_variable_set("ERROR_SIGNALS")) return;
  for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) ucs_debug_disable_signal(signal);
}

thread_local int quiet_depth = 0;
thread_local std::array<char, 160> last_words{};

ucs_log_func_rc_t keep(const char*, unsigned, const char*, ucs_log_level_t level,
                       const ucs_log_component_config_t*, const char* format, va_list arguments) {
  if (quiet_depth == 0 || level < UCS_LOG_LEVEL_ERROR)
    return UCS_LOG_FUNC_RC_CONTINUE;  // fatal ones end the process
  va_list copy;
  va_copy(copy, arguments);
  std::vsnprintf(last_words.data(), last_words.size(), format, copy);
  va_end(copy);
  return UCS_LOG_FUNC_RC_STOP;
}

}  // namespace

bool ucx_variable_set(std::string_view ending) {
  for (const char* const* variable = environment(); *variable != nullptr; ++variable) {
    const std::string_view whole(*variable);
    const std::string_view its_name = whole.substr(0, whole.find('='));
    if (its_name.starts_with("UCX_") && its_name.ends_with(ending)) return true;
  }
  return false;
}

Result<ucp_config_t*> read_ucx_config(std::span<const UcxSetting> settings) {
  static std::once_flag once;
  std::call_once(once, [] {
    if (!ucx_variable_set("LOG_LEVEL")) ucs_log_push_handler(keep);
  });
  const UcxQuiet quiet_here;
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK)
    return ucx_error(StatusCode::kInvalidArgument, status, "reading UCX's settings (UCX_*)");
  for (const UcxSetting& setting : settings) {
    if (ucx_variable_set(setting.variable)) continue;
    status = ucp_config_modify(config, setting.name, setting.value);
    if (status == UCS_OK) continue;
    ucp_config_release(config);
    return ucx_error(StatusCode::kInternal, status, setting.name);
  }
  return config;
}

UcxQuiet::UcxQuiet() {
  if (quiet_depth++ == 0) last_words[0] = '\0';
}

UcxQuiet::~UcxQuiet() {
  --quiet_depth;
}

Status ucx_error(StatusCode code, ucs_status_t status, const char* what) {
  return Status::error(code, "UCX: %s: %s%s%s", what, ucs_status_string(status),
                       last_words[0] == '\0' ? "" : ": ", last_words.data());
}

}  // namespace leeway::transport
