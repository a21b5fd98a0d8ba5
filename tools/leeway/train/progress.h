// How far a run has come: one line that rewrites itself on a terminal, a line every tenth of the
// way elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace leeway::tools::train {

struct StepStatus {
  std::uint64_t step = 0;    // completed
  std::uint64_t steps = 0;   // expected: more than planned where work is dropped and made up for
  double loss = 0;           // loss of this rank's micro-batch, smoothed, in nats per character
  double step_ms = 0;        // mean so far
  double loss_observed = 0;  // packets lost, fraction
  std::optional<double> drop_rate{};     // micro-batches dropped so far by this rank, fraction
  std::optional<double> threshold_ms{};  // in force
};

// "lossy, seed 1: step 300/1500, loss 1.84, 12.3 ms a step, 9.97 % of packets lost, 15 s left",
// and before the last part, of a run that may drop work, "8.3 % of work dropped beyond 61.2 ms"
std::string format_progress(const std::string& label, const StepStatus& status);

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // With `stream` null it says nothing (all ranks but one). Not owned.
  Progress(std::FILE* stream, std::string label, bool terminal);
  static bool is_terminal(std::FILE* stream);

  void on_step(const StepStatus& status, Clock::time_point now);
  // Leaves a terminal's line clean.
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
