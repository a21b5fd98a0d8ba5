// The ranks of a test: one worker process each, joined through the environment as a user's program
// would be.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "integration/process.h"

namespace leeway::integration {

// A worker's report about its run: one JSON object, the last line of its output (worker.cc).
using Facts = nlohmann::json;

// Returns a TCP port of 127.0.0.1 that was free a moment ago. The next higher port was free, too,
// because scenarios with two communicators let the second one meet there.
std::uint16_t free_port();

struct RankSetup {
  int ranks = 4;
  std::vector<std::string> scenario;  // the worker's arguments
  // Variables of all ranks, for example LEEWAY_FAULT. LEEWAY_TRANSPORT is udp unless set here.
  Environment environment;
  // Variables of single ranks, by rank. They override `environment`. May be shorter than `ranks`.
  std::vector<Environment> environment_of;
  std::string rendezvous;  // default: a free port of 127.0.0.1
  // Words before each rank's command line ("ip netns exec NAME").
  std::vector<std::vector<std::string>> prefix_of;
};

class RankGroup {
 public:
  explicit RankGroup(const RankSetup& setup);

  Process& operator[](int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(ranks_.size()); }

  // Waits until every rank has printed the line {"mark": mark}. Returns false and fails the test if
  // one does not.
  bool await_mark(const std::string& mark,
                  std::chrono::seconds patience = std::chrono::seconds(30));

  // Waits for all ranks to end and returns their facts. If a rank hangs, crashes or prints nothing,
  // the test fails and the rank's facts are null. `but_not`: a rank that was killed on purpose,
  // which is left out of these checks.
  std::vector<Facts> finish(std::chrono::seconds patience, int but_not = -1);

 private:
  std::vector<Process> ranks_;
};

// Returns the words that, put before a command, give it a /dev/shm of its own. `bytes` is the size
// of this /dev/shm in the form of mount(8).
std::vector<std::string> private_memory(const std::string& bytes = "64m");

std::string worker_path();
std::vector<Facts> facts_in(const std::string& output);

}  // namespace leeway::integration
