// State that a program's ranks (threads or processes) share with the process that watches them, in
// memory that all of them map.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "programs/program.h"

namespace leeway::programs {

inline constexpr std::size_t kStepsMax = 1024;
inline constexpr std::size_t kCommsMax = 128;

struct Board {
  struct Line {
    std::atomic<std::uint32_t> program;
    std::atomic<std::uint32_t> step;
    std::atomic<std::uint64_t> moves;      // grows with all that the rank does
    std::atomic<std::uint32_t> waits_for;  // step + 1 of the call for which the rank waits
  };
  std::array<Line, kRanksMax> lines;

  std::atomic<int> failed;
  int failed_program;
  int failed_step;
  int failed_rank;
  char text[1024];
  std::atomic<bool> leaked;  // the failure is a leak

  std::atomic<int> over;  // number of ranks that came to their end
  std::atomic<int> left;  // ranks that exit in the middle, as bits
  pthread_barrier_t barrier;
  // Sums over those calls with one estimator that lost something. Each call adds two means over its
  // elements: of the squared error that its report predicted, and of the true squared error.
  struct Error {
    std::atomic<std::uint64_t> calls;
    std::atomic<double> said;
    std::atomic<double> true_square;
    std::atomic<double> difference_square;  // (said - true) squared
  };
  std::array<Error, kEstimatorCount> errors;

  // Sets of ranks, as bits. `came` has for each step the ranks that have come to it. `gone` has for
  // each communicator the ranks that have left it or will soon leave it.
  std::array<std::atomic<unsigned>, std::size_t{kProgramsOfAGroup} * kStepsMax> came;
  std::array<std::atomic<unsigned>, std::size_t{kProgramsOfAGroup} * kCommsMax> gone;

  // For each program and step, the digest of the result that all ranks must hold alike.
  std::array<std::atomic<std::uint64_t>, std::size_t{kProgramsOfAGroup} * kStepsMax> digests;

  // Records a failure, unless there was one before.
  void fail(int program, int step, int rank, const std::string& why);
};

// Makes a board for `ranks`. Returns null if there is no memory.
Board* make_board(int ranks);

}  // namespace leeway::programs
