#include "interop/nccl_net/logger.h"

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>

namespace leeway::nccl_net {
namespace {

// Two levels of ncclDebugLogLevel, and NCCL_INIT and NCCL_NET of ncclDebugLogSubSys.
constexpr int kWarn = 2;
constexpr int kInfo = 3;
constexpr unsigned long kInit = 0x1;
constexpr unsigned long kNetwork = 0x10;

// Version that is assumed for NCCL, as a plugin does not learn the true one. Versions before 2.30
// have no code for a timeout, so none is returned.
constexpr int kProgramVersion = nccl::version_code(2, 29, 0);

std::atomic<leeway_nccl_logger> logger_of_process{nullptr};

}  // namespace

void log_to(leeway_nccl_logger logger) {
  logger_of_process = logger;
}

Code failed(const Status& status, const char* what) {
  if (const leeway_nccl_logger logger = logger_of_process)
    logger(kWarn, kNetwork, __FILE__, __LINE__, "NET/Leeway : %s: %s", what, status.c_str());
  return nccl::code_of(status.code(), kProgramVersion);
}

void inform(const char* format, ...) {
  const leeway_nccl_logger logger = logger_of_process;
  if (logger == nullptr) return;
  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  logger(kInfo, kInit | kNetwork, __FILE__, __LINE__, "NET/Leeway : %s", text.data());
}

}  // namespace leeway::nccl_net
