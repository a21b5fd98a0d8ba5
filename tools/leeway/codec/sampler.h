// Times work that goes through a buffer packet by packet.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace leeway::tools::codecs {

// Returns the time that this thread has computed for. Time that passes says less: other work on the
// machine takes cores away.
std::chrono::nanoseconds thread_time();

// A buffer of packets that samples walk round and round. Each begins where the one before it ended,
// whatever that one did: in a buffer beyond the caches no sample meets what another has just
// brought into them.
class Sampler {
 public:
  // `packets` of the buffer; a sample takes about `sample_time`, and at least one packet.
  Sampler(std::size_t packets, std::chrono::nanoseconds sample_time);

  // Works on packets [begin, end).
  using Work = std::function<void(std::size_t begin, std::size_t end)>;

  // How many packets of this work fill a sample: found by running it, which also warms up.
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
