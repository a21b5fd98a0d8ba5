// The measurement that every peer driver shares: a verified float32 sum all-reduce, timed the way
// `leeway perf` does it.
//
// All ranks meet at a barrier. Then each times its own call, or several calls one after another,
// whose time is divided by their number. An iteration lasts as long as its slowest rank.
// Percentiles are over iterations. The result of the last iteration of every size is compared with
// the exact sum.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace peers {

// One connected rank of the library under test.
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

  // Only for drivers that start their own processes: this process is one rank of several hosts', at
  // this address, and the ranks meet in a folder that all of them see.
  int rank = -1;
  std::string address = "127.0.0.1";
  std::string store;
};

// --ranks N --iters N --warmup N --back-to-back N --sizes BYTES,BYTES,... --rank R --address A
// --store FOLDER. For any other argument it exits with status 2 and one line.
Arguments parse_arguments(int argc, char** argv);

// Measures every size; rank 0 prints one JSON object for each on a line. Returns false if any
// rank's result was wrong.
bool measure(AllReducer& reducer, const std::string& name, const Arguments& arguments);

}  // namespace peers
