// Shows how far a run has come: on a terminal in one line that is overwritten, elsewhere in a line
// for every tenth of the run.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace leeway::tools::train {

struct StepStatus {
  std::uint64_t step = 0;  // completed
  // Expected total; more than planned if dropped work is compensated by further steps.
  std::uint64_t steps = 0;
  double loss = 0;           // loss of this rank's micro-batch, smoothed, in nats per character
  double step_ms = 0;        // mean so far
  double loss_observed = 0;  // packets lost, fraction
  // Fraction of this rank's micro-batches that were dropped so far.
  std::optional<double> drop_rate{};
  std::optional<double> threshold_ms{};  // threshold in force
};

// Returns "lossy, seed 1: step 300/1500, loss 1.84, 12.3 ms a step, 9.97 % of packets lost, 15 s
// left". A run that may drop work has "8.3 % of work dropped beyond 61.2 ms" before the last part.
std::string format_progress(const std::string& label, const StepStatus& status);

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // If `stream` is null (on all ranks but one), nothing is printed. The stream is not owned.
  Progress(std::FILE* stream, std::string label, bool terminal);
  static bool is_terminal(std::FILE* stream);

  void on_step(const StepStatus& status, Clock::time_point now);
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
