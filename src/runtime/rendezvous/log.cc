#include "rendezvous/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "base/plain_text.h"
#include "base/steady_now.h"

namespace leeway::rendezvous {
namespace {

constexpr std::array<std::pair<std::string_view, LogLevel>, 6> kLevelNames = {
    {{"trace", LogLevel::trace},
     {"debug", LogLevel::debug},
     {"info", LogLevel::info},
     {"warn", LogLevel::warn},
     {"error", LogLevel::error},
     {"off", LogLevel::off}}};

// LogLevel has spdlog's numbers up to `error`. The number of `off` differs, because spdlog has a
// level `critical` before it.
static_assert(static_cast<int>(LogLevel::trace) == SPDLOG_LEVEL_TRACE &&
              static_cast<int>(LogLevel::error) == SPDLOG_LEVEL_ERROR);
spdlog::level::level_enum to_spdlog(LogLevel level) {
  return level == LogLevel::off ? spdlog::level::off
                                : static_cast<spdlog::level::level_enum>(level);
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view name) {
  for (const auto& [known, level] : kLevelNames) {
    if (name == known) return level;
  }
  return Status::error(StatusCode::kInvalidArgument,
                       "log level \"%.*s\" is unknown; use trace, debug, info, warn, error or off",
                       static_cast<int>(name.size()), name.data());
}

LogLimiter::Verdict LogLimiter::admit(std::string_view cause, Instant now) {
  auto found = windows_.find(cause);
  if (found == windows_.end()) found = windows_.emplace(std::string(cause), Window{now}).first;
  Window& window = found->second;
  if (now - window.start >= window_) {
    window.start = now;
    window.printed = 0;
  }
  if (window.printed == lines_) {
    ++window.held_back;
    return {};
  }
  ++window.printed;
  return {true, std::exchange(window.held_back, 0)};
}

struct Log::Sink {
  spdlog::logger logger{"leeway", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
};

Log::Log(LogLevel level, Rank rank) : level_(level), rank_(rank), sink_(std::make_unique<Sink>()) {
  std::string pattern = "[%H:%M:%S.%e] leeway";
  if (rank != kNoRank) pattern.append("[").append(std::to_string(rank)).append("]");
  sink_->logger.set_level(to_spdlog(level));
  sink_->logger.set_pattern(pattern + " %l: %v");
  sink_->logger.flush_on(spdlog::level::trace);
}

Log::~Log() = default;

void Log::print(LogLevel level, std::string_view cause, const char* format, ...) {
  if (!enabled(level)) return;
  LogLimiter::Verdict verdict;
  {
    const std::lock_guard lock(mutex_);
    verdict = limiter_.admit(cause, steady_now());
  }
  if (!verdict.print) return;

  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  // Other processes may have put escape sequences into the text, which a terminal would obey.
  make_plain(std::span(text.data(), std::strlen(text.data())));
  if (verdict.held_back == 0) {
    sink_->logger.log(to_spdlog(level), "{}", text.data());
  } else {
    sink_->logger.log(to_spdlog(level), "{} ({} more like it not shown)", text.data(),
                      verdict.held_back);
  }
}

}  // namespace leeway::rendezvous
