// The instruction sets that the vector kernels are compiled for, and a way to run on a chosen one:
// to measure each, and to check each against the definition.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leeway::codec {

struct InstructionSet {
  std::string name;     // Highway's: "AVX3_DL", "AVX2", "SSE4", "NEON", ...
  std::int64_t id = 0;  // Highway's bit
};

// Returns the sets that this processor has, best first. Kernels run on the first.
std::vector<InstructionSet> instruction_sets();

// While this object lives, all vector kernels of the process run on this set; afterwards they run
// on the best set again. Not for programs whose other threads use kernels at that time.
class RunOn {
 public:
  explicit RunOn(const InstructionSet& set);
  ~RunOn();
  RunOn(const RunOn&) = delete;
  RunOn& operator=(const RunOn&) = delete;
};

}  // namespace leeway::codec
