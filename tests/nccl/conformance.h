// nccl_conformance: one case for each rule that NCCL promises its programs. Uses only what NCCL's
// header declares. The letter in a rule's name says what the rule is about: A arguments, C
// communicators, G groups, L processes, T element types.
//
// A case runs on all ranks at once, as threads or processes. The first failed check prints its
// place and ends the program, because other ranks would wait for the failed one.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "nccl/nccl_api.h"

namespace conformance {

// State that all ranks share. It lies in shared memory if ranks are processes.
struct Shared {
  pthread_barrier_t barrier;
  ncclUniqueId id;
  std::atomic<std::int64_t> ended_at[8];  // when a rank's part of the case was done, ns
};

struct Rank {
  int rank;
  int size;
  Shared& shared;
  bool processes;  // ranks are processes

  void barrier() const;
  // Returns a new id, the same on all ranks.
  ncclUniqueId fresh_id() const;
  ncclComm_t connect() const;
  ncclComm_t connect(ncclConfig_t config) const;
};

struct Case {
  std::string name;
  std::function<void(const Rank&)> run;
  // Cases that set environment variables, or in which ranks die, need processes.
  enum class Needs { anything, processes } needs = Needs::anything;
};

std::vector<Case> operation_cases();
std::vector<Case> group_cases();
std::vector<Case> argument_cases();
std::vector<Case> message_cases();
std::vector<Case> life_cases();
std::vector<Case> failure_cases();
std::vector<Case> leeway_cases();

// Reports a failed check and ends the program. `detail`: the actual and the expected value.
[[noreturn]] void fail_at(const Rank& rank, const char* file, int line, const std::string& detail);

// Waits until no call of a non-blocking communicator is in progress. Returns the last code.
ncclResult_t settled(const Rank& rank, ncclComm_t comm);
double seconds_of(const std::function<void()>& call);

#define EXPECT_CODE(rank, call, code)                                                          \
  do {                                                                                         \
    const ncclResult_t got_ = (call);                                                          \
    if (got_ != (code)) {                                                                      \
      conformance::fail_at(rank, __FILE__, __LINE__,                                           \
                           std::string(#call " answered ") + std::to_string(got_) + ", not " + \
                               std::to_string(static_cast<int>(code)) + ": " +                 \
                               ncclGetLastError(nullptr));                                     \
    }                                                                                          \
  } while (false)
#define EXPECT_OK(rank, call) EXPECT_CODE(rank, call, ncclSuccess)
#define EXPECT_THAT_IT(rank, condition, detail)                                          \
  do {                                                                                   \
    if (!(condition))                                                                    \
      conformance::fail_at(rank, __FILE__, __LINE__,                                     \
                           std::string(#condition " is false: ") + std::string(detail)); \
  } while (false)

}  // namespace conformance
