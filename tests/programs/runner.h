// Runs programs in separate processes, and watches them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "programs/program.h"

namespace leeway::programs {

struct Board;

struct Verdict {
  enum class What { right, wrong, hang, death, leak };
  What what = What::right;
  int program = 0;  // index among those that ran
  int step = 0;
  int rank = 0;
  std::string text;
  bool right() const { return what == What::right; }
};
std::string to_string(Verdict::What what);

// One group of ranks that runs programs one after the other.
class Run {
 public:
  // The run counts as hanging if it makes no progress for `idle`.
  Run(std::vector<Program> programs, std::chrono::milliseconds idle, bool loud = false);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Checks the run. Returns true once it is over.
  bool poll();
  const Verdict& verdict() const { return verdict_; }
  const std::vector<Program>& programs() const { return programs_; }
  const Board& board() const { return *board_; }

 private:
  void kill_all();
  bool reap();
  void judge_hang();

  std::vector<Program> programs_;
  const std::chrono::milliseconds idle_;
  Board* board_ = nullptr;
  std::vector<int> processes_;
  std::string folder_;
  int port_holder_ = -1;
  std::uint64_t moves_ = 0;
  std::chrono::steady_clock::time_point moved_;
  Verdict verdict_;
};

// Returns true if this machine can give the halves of a mixed group separate memory.
bool can_hide_memory();

Verdict run(std::vector<Program> programs, std::chrono::milliseconds idle, bool loud = false);

}  // namespace leeway::programs
