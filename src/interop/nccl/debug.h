// What the drop-in tells people: lines as NCCL prints them (NCCL_DEBUG, NCCL_DEBUG_FILE), and the
// text of ncclGetLastError(). Of the process, as in NCCL.
#pragma once

#include <string>
#include <string_view>

#include "interop/nccl/codes.h"
#include "leeway/status.h"

namespace leeway::nccl {

enum class DebugLevel { none = 0, version, warn, info, trace };

// "VERSION", "WARN", "INFO", "ABORT" (as WARN), "TRACE" in any case; anything else is none, as in
// NCCL.
DebugLevel parse_debug_level(std::string_view text);
// %h is the host's name, %p the process, %% a percent sign.
std::string debug_file_name(std::string_view pattern, std::string_view host, int process);

// A line "host:process:thread [0] LEVEL text", at WARN and above, or at INFO.
void warn(std::string_view text);
void info(std::string_view text);
// At VERSION and above: what answers as NCCL of this version_code().
void say_version(int code);
// What an operator has to hear of: at WARN, or where NCCL_DEBUG hides that, as a line of Leeway's
// log.
void say(std::string_view text);
bool shows(DebugLevel level);

// Logs the text at WARN, keeps it for last_error(), and returns the code.
Code failed(Code code, std::string_view text);
Code failed(const Status& status, std::string_view where);
// Keeps the text of a failure for last_error(), which logged it before.
void keep_error(std::string_view text);
// printf-style.
[[gnu::format(printf, 2, 3)]] Code failed_with(Code code, const char* format, ...);

// Empty before the first failure. The calling thread's own copy, valid until it calls this again.
const char* last_error();
// Reads NCCL_DEBUG and NCCL_DEBUG_FILE again.
void reread_debug_variables();

}  // namespace leeway::nccl
