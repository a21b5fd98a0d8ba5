// Lines for people on standard error: "[time] leeway[rank] level: text".
//
// Log once, where a thing is detected, and never on the datapath's good path. Each line belongs to
// a cause. A cause may print ten lines a second, so that a fault that repeats with every packet
// cannot fill a disk. Lines that were held back are counted, and the cause's next line says how
// many.
//
// There is no global logger: code that logs is handed one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/time.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::rendezvous {

enum class LogLevel : std::uint8_t { trace = 0, debug, info, warn, error, off };

// Parses "trace" ... "off", as Options::log_level and LEEWAY_LOG spell a level.
Result<LogLevel> parse_log_level(std::string_view name);

// Decides which lines of a cause are printed: at most `lines` in `window`. Not thread-safe. The
// caller passes the time.
class LogLimiter {
 public:
  static constexpr std::uint32_t kLinesPerSecond = 10;

  explicit LogLimiter(std::uint32_t lines = kLinesPerSecond,
                      Duration window = std::chrono::seconds(1))
      : lines_(lines), window_(window) {}

  struct Verdict {
    bool print = false;
    std::uint64_t held_back = 0;  // lines of this cause not printed since its last one
  };
  // `cause` names the kind of event. Pass only a few literals, because every cause is remembered.
  Verdict admit(std::string_view cause, Instant now);

 private:
  struct Window {
    Instant start;
    std::uint32_t printed = 0;
    std::uint64_t held_back = 0;
  };
  const std::uint32_t lines_;
  const Duration window_;
  std::map<std::string, Window, std::less<>> windows_;
};

// Thread-safe.
class Log {
 public:
  Log(LogLevel level, Rank rank);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  LogLevel level() const { return level_; }
  Rank rank() const { return rank_; }
  bool enabled(LogLevel level) const { return level >= level_ && level != LogLevel::off; }

  [[gnu::format(printf, 4, 5)]] void print(LogLevel level, std::string_view cause,
                                           const char* format, ...);

 private:
  struct Sink;  // keeps spdlog out of the header

  const LogLevel level_;
  const Rank rank_;
  std::unique_ptr<Sink> sink_;
  std::mutex mutex_;
  LogLimiter limiter_;
};

}  // namespace leeway::rendezvous
