#include "train/progress.h"

#include <unistd.h>

#include <array>
#include <cmath>
#include <utility>

namespace leeway::tools::train {
namespace {

// Time between two updates on a terminal: short enough to look alive, and long enough to cost
// nothing.
constexpr auto kTerminalInterval = std::chrono::milliseconds(200);

std::string format_drops(const StepStatus& status) {
  if (!status.drop_rate) return "";
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), ", %.1f %% of work dropped", 100.0 * *status.drop_rate);
  if (!status.threshold_ms) return text.data();
  std::array<char, 32> beyond{};
  std::snprintf(beyond.data(), beyond.size(), " beyond %.1f ms", *status.threshold_ms);
  return std::string(text.data()) + beyond.data();
}

}  // namespace

std::string format_progress(const std::string& label, const StepStatus& status) {
  const double seconds_left =
      static_cast<double>(status.steps - status.step) * status.step_ms / 1e3;
  std::array<char, 256> line{};
  std::snprintf(
      line.data(), line.size(),
      "%s: step %llu/%llu, loss %.2f, %.1f ms a step, %.2f %% of packets lost%s, %.0f s left",
      label.c_str(), static_cast<unsigned long long>(status.step),
      static_cast<unsigned long long>(status.steps), status.loss, status.step_ms,
      100.0 * status.loss_observed, format_drops(status).c_str(), std::ceil(seconds_left));
  return line.data();
}

Progress::Progress(std::FILE* stream, std::string label, bool terminal)
    : stream_(stream), label_(std::move(label)), terminal_(terminal) {}

bool Progress::is_terminal(std::FILE* stream) {
  return isatty(fileno(stream)) == 1;
}

bool Progress::due(const StepStatus& status, Clock::time_point now) {
  if (terminal_) {
    if (now < next_ && status.step != status.steps) return false;
    next_ = now + kTerminalInterval;
    return true;
  }
  const std::uint64_t tenths = 10 * status.step / status.steps;
  if (tenths <= tenths_shown_) return false;
  tenths_shown_ = tenths;
  return true;
}

void Progress::on_step(const StepStatus& status, Clock::time_point now) {
  if (stream_ == nullptr || !due(status, now)) return;
  const std::string line = format_progress(label_, status);
  if (terminal_) {
    std::fprintf(stream_, "\r%s\x1b[K",
                 // Moves to the start of the line, and erases the rest of an older line.
                 line.c_str());
  } else {
    std::fprintf(stream_, "%s\n", line.c_str());
  }
  std::fflush(stream_);
}

void Progress::finish() {
  if (stream_ == nullptr || !terminal_) return;
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
}

}  // namespace leeway::tools::train
