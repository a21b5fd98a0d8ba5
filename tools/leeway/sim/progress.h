// Shows how far a command's runs have come, on one line of a terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "codec/progress_line.h"

namespace leeway::tools::simulation {

struct RunProgress {
  std::size_t runs_total = 0;
  std::size_t runs_kept = 0;      // runs kept from an earlier command, which took no time now
  std::size_t runs_finished = 0;  // by this command
  std::uint32_t round = 0;        // rounds finished by the run that reported last
  std::uint32_t rounds = 0;
  double seconds = 0;  // seconds since the first run began
};

// Returns "12 of 40 runs, round 7 of 30, 1 min 20 s left". There is no estimate before the end of
// the first run.
std::string progress_text(const RunProgress& progress);

class ProgressDisplay {
 public:
  using Clock = std::chrono::steady_clock;

  // Prints nothing unless `stream` is a terminal. `stream` may be null.
  ProgressDisplay(std::FILE* stream, std::size_t runs_total, std::size_t runs_kept);

  void on_round(std::uint32_t done, std::uint32_t rounds);
  void on_finished();
  void erase();

 private:
  void show();

  RunProgress progress_;
  std::unique_ptr<codecs::ProgressLine> line_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_{};
};

}  // namespace leeway::tools::simulation
