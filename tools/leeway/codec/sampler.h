// Times work that goes through a buffer packet by packet.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace leeway::tools::codecs {

// Returns the time for which this thread has computed. Elapsed time is less reliable, because other
// work on the machine takes cores away.
std::chrono::nanoseconds thread_time();

// A buffer of packets that samples walk round and round. Each sample begins where the previous one
// ended. So in a buffer larger than the caches, no sample finds data that another has just brought
// into them.
class Sampler {
 public:
  // `packets`: length of the buffer. A sample takes about `sample_time`, and at least one packet.
  Sampler(std::size_t packets, std::chrono::nanoseconds sample_time);

  // The work on packets [begin, end).
  using Work = std::function<void(std::size_t begin, std::size_t end)>;

  // Number of packets of this work in a sample. Runs the work to find out, which also warms up.
  std::size_t packets_for(const Work& work);

  // Packets per second of thread time over one sample of `count` packets.
  double rate(const Work& work, std::size_t count);

 private:
  std::chrono::nanoseconds run(const Work& work, std::size_t count);

  std::size_t packets_;
  std::chrono::nanoseconds sample_time_;
  std::size_t next_ = 0;
};

}  // namespace leeway::tools::codecs
