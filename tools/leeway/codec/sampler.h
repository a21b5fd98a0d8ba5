// Times work that processes a buffer packet by packet.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace leeway::tools::codecs {

// Returns the time for which this thread has computed. Elapsed time is less reliable, because other
// work on the machine takes cores away.
std::chrono::nanoseconds thread_time();

// Takes samples of the speed of some work. Samples go through a buffer of packets in a circle, each
// from the place where the previous one ended. So in a buffer larger than the caches, no sample
// finds its data in a cache.
class Sampler {
 public:
  // `packets`: length of the buffer in packets. A sample takes about `sample_time`, and has at
  // least one packet.
  Sampler(std::size_t packets, std::chrono::nanoseconds sample_time);

  using Work = std::function<void(std::size_t begin, std::size_t end)>;

  // Returns the number of packets that a sample of this work should have. Runs the work to find
  // that number, which also warms the work up.
  std::size_t packets_for(const Work& work);

  // Times one sample of `count` packets. Returns packets per second of thread time.
  double rate(const Work& work, std::size_t count);

 private:
  std::chrono::nanoseconds run(const Work& work, std::size_t count);

  std::size_t packets_;
  std::chrono::nanoseconds sample_time_;
  std::size_t next_ = 0;
};

}  // namespace leeway::tools::codecs
