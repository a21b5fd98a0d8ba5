// Shows how far a run has come: on a terminal by one line that rewrites itself, elsewhere by a line
// every tenth of the way.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace leeway::tools::train {

struct StepStatus {
  std::uint64_t step = 0;  // completed
  // Expected number: more than planned if work is dropped and compensated.
  std::uint64_t steps = 0;
  double loss = 0;           // loss of this rank's micro-batch, smoothed, in nats per character
  double step_ms = 0;        // mean so far
  double loss_observed = 0;  // packets lost, fraction
  // Fraction of micro-batches that this rank has dropped so far.
  std::optional<double> drop_rate{};
  std::optional<double> threshold_ms{};  // in force
};

// "lossy, seed 1: step 300/1500, loss 1.84, 12.3 ms a step, 9.97 % of packets lost, 15 s left",
// and, before the last part, for a run that may drop work, "8.3 % of work dropped beyond 61.2 ms"
std::string format_progress(const std::string& label, const StepStatus& status);

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // If `stream` is null (on all ranks but one), nothing is printed. The stream is not owned.
  Progress(std::FILE* stream, std::string label, bool terminal);
  static bool is_terminal(std::FILE* stream);

  void on_step(const StepStatus& status, Clock::time_point now);
  // Erases the line on a terminal.
  void finish();

 private:
  bool due(const StepStatus& status, Clock::time_point now);

  std::FILE* stream_;
  std::string label_;
  bool terminal_;
  std::uint64_t tenths_shown_ = 0;
  Clock::time_point next_{};
};

}  // namespace leeway::tools::train
