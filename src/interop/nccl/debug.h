// Messages of the drop-in for people: lines as NCCL prints them (NCCL_DEBUG, NCCL_DEBUG_FILE), and
// the text of ncclGetLastError(). The whole process has one level, file and text, as in NCCL.
#pragma once

#include <string>
#include <string_view>

#include "interop/nccl/codes.h"
#include "leeway/status.h"

namespace leeway::nccl {

enum class DebugLevel { none = 0, version, warn, info, trace };

// Parses "VERSION", "WARN", "INFO", "ABORT" (as WARN) or "TRACE" in any case. Anything else is
// none, as in NCCL.
DebugLevel parse_debug_level(std::string_view text);
// Expands NCCL_DEBUG_FILE: %h is the host's name, %p the process, %% a percent sign.
std::string debug_file_name(std::string_view pattern, std::string_view host, int process);

// Print a line "host:process:thread [0] NCCL LEVEL text": warn() at WARN and above, info() at INFO
// and above.
void warn(std::string_view text);
void info(std::string_view text);
// Prints at VERSION and above that Leeway answers as NCCL of this version_code().
void say_version(int code);
// Tells the operator: prints at WARN, or, if NCCL_DEBUG hides that, writes a line of Leeway's log.
void say(std::string_view text);
bool shows(DebugLevel level);

// Logs the text at WARN, keeps it for last_error(), and returns the code.
Code failed(Code code, std::string_view text);
Code failed(const Status& status);
Code failed(const Status& status, std::string_view where);  // the text begins with `where`
// Keeps the text of a failure for last_error(), without a line of the log.
void keep_error(std::string_view text);
// The same as failed(), printf-style. Cuts the text at 511 bytes.
[[gnu::format(printf, 2, 3)]] Code failed_with(Code code, const char* format, ...);

// Returns the text of the process's last failure, empty before the first. It is the calling
// thread's own copy, valid until that thread calls this again.
const char* last_error();
// Reads NCCL_DEBUG and NCCL_DEBUG_FILE again.
void reread_debug_variables();

}  // namespace leeway::nccl
