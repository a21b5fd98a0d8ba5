// The measurement that all drivers of other libraries share: a verified float32 all-reduce (sum),
// timed as `leeway perf` does it.
//
// All ranks meet at a barrier. Then each rank times its own call, or several calls back to back,
// whose time is divided by their number. An iteration takes as long as its slowest rank.
// Percentiles are over iterations. For every size, the last iteration's result is compared with the
// exact sum.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace peers {

class AllReducer {
 public:
  virtual ~AllReducer() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  virtual void sum(const float* input, float* output, std::size_t count) = 0;
  virtual void maximum(
      std::vector<double>& values) = 0;  // element by element over all ranks, in place
};

struct Arguments {
  int ranks = 2;  // only for drivers that start their own processes
  int iterations = 20;
  int warmup = 5;
  int back_to_back = 1;  // calls of an iteration, without barriers between them
  std::vector<std::size_t> sizes = {4096, 262144, 2097152, 16777216};

  // Set if ranks run on several hosts, one process each: this process's rank, its address, and a
  // folder that all hosts see, in which ranks meet. Only for drivers that otherwise start their own
  // processes.
  int rank = -1;
  std::string address = "127.0.0.1";
  std::string store;
};

// Parses --ranks N --iters N --warmup N --back-to-back N --sizes BYTES,BYTES,... --rank R --address
// A --store FOLDER. On any other argument it prints a line and exits with status 2.
Arguments parse_arguments(int argc, char** argv);

// Measures every size. Rank 0 prints a line with a JSON object for each. Returns false if some rank
// got a wrong result.
bool measure(AllReducer& reducer, const std::string& name, const Arguments& arguments);

}  // namespace peers
