#include "interop/nccl/debug.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "interop/nccl/context.h"
#include "leeway/version.h"
#include "rendezvous/environment.h"
#include "rendezvous/log.h"

namespace leeway::nccl {
namespace {

class Debug {
 public:
  static Debug& get() {
    static Debug* const debug = new Debug;  // never destroyed: programs log while they exit
    return *debug;
  }

  void reread() {
    const std::lock_guard lock(mutex_);
    const char* const level = std::getenv("NCCL_DEBUG");
    level_ = parse_debug_level(level == nullptr ? "" : level);
    std::array<char, HOST_NAME_MAX + 1> host{};
    ::gethostname(host.data(), host.size() - 1);
    host_ = std::string(host.data());
    host_ = host_.substr(0, host_.find('.'));
    const char* const pattern = std::getenv("NCCL_DEBUG_FILE");
    file_ = STDOUT_FILENO;
    if (pattern == nullptr || *pattern == '\0' || level_ == DebugLevel::none) return;
    const std::string name = debug_file_name(pattern, host_, ::getpid());
    // O_APPEND, as other processes may have the file open, too.
    const int file =
        ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (file >= 0) file_ = file;
  }

  void print(DebugLevel level, const char* name, std::string_view text) {
    const std::lock_guard lock(mutex_);
    if (level_ < level) return;
    std::string line = host_ + ':' + std::to_string(::getpid()) + ':' + std::to_string(::gettid());
    line.append(" [0] ").append(name).append(" ").append(text).append("\n");
    // One write, so that lines of several ranks do not mix. A failed write is ignored.
    if (::write(file_, line.data(), line.size()) < 0) return;
  }

  bool shows(DebugLevel level) {
    const std::lock_guard lock(mutex_);
    return level_ >= level;
  }

  void keep(std::string_view text) {
    const std::lock_guard lock(mutex_);
    const std::size_t size = std::min(text.size(), last_error_.size() - 1);
    std::copy_n(text.data(), size, last_error_.data());
    last_error_[size] = '\0';
  }
  // Returns the calling thread's copy, as other threads may replace the text at any time.
  const char* last_error() {
    thread_local std::array<char, 1024> text;
    const std::lock_guard lock(mutex_);
    text = last_error_;
    return text.data();
  }

 private:
  Debug() { reread(); }

  std::mutex mutex_;
  DebugLevel level_ = DebugLevel::none;
  std::string host_;
  int file_ = STDOUT_FILENO;
  std::array<char, 1024> last_error_{};
};

}  // namespace

DebugLevel parse_debug_level(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (upper == "VERSION") return DebugLevel::version;
  if (upper == "WARN" || upper == "ABORT") return DebugLevel::warn;
  if (upper == "INFO") return DebugLevel::info;
  if (upper == "TRACE") return DebugLevel::trace;
  return DebugLevel::none;
}

std::string debug_file_name(std::string_view pattern, std::string_view host, int process) {
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'h') {
      name += host;
    } else if (next == 'p') {
      name += std::to_string(process);
    } else if (next == '%') {
      name += '%';
    } else {
      name += pattern[i];
      continue;
    }
    ++i;
  }
  return name;
}

void warn(std::string_view text) {
  Debug::get().print(DebugLevel::warn, "NCCL WARN", text);
}

void info(std::string_view text) {
  Debug::get().print(DebugLevel::info, "NCCL INFO", text);
}

void say_version(int code) {
  const std::string text = std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) +
                           "." + std::to_string(code % 100) + ", by Leeway " LEEWAY_VERSION_STRING;
  Debug::get().print(DebugLevel::version, "NCCL version", text);
}

bool shows(DebugLevel level) {
  return Debug::get().shows(level);
}

void say(std::string_view text) {
  if (shows(DebugLevel::warn)) return warn(text);
  rendezvous::Log log(rendezvous::log_level(rendezvous::process_environment()), kNoRank);
  log.print(rendezvous::LogLevel::warn, "nccl", "NCCL: %.*s", static_cast<int>(text.size()),
            text.data());
}

Code failed(Code code, std::string_view text) {
  warn(text);
  keep_error(text);
  return code;
}

void keep_error(std::string_view text) {
  Debug::get().keep(text);
}

Code failed(const Status& status) {
  return failed(code_of(status.code(), settings().version), status.text());
}

Code failed(const Status& status, std::string_view where) {
  std::string text(where);
  text += " : ";
  text += status.text();
  return failed(code_of(status.code(), settings().version), text);
}

Code failed_with(Code code, const char* format, ...) {
  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  return failed(code, text.data());
}

const char* last_error() {
  return Debug::get().last_error();
}

void reread_debug_variables() {
  Debug::get().reread();
}

}  // namespace leeway::nccl
