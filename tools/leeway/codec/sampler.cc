#include "codec/sampler.h"

#include <time.h>

#include <algorithm>

#include "base/contracts.h"

namespace leeway::tools::codecs {

using std::chrono::nanoseconds;

nanoseconds thread_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

Sampler::Sampler(std::size_t packets, nanoseconds sample_time)
    : packets_(packets), sample_time_(sample_time) {
  LEEWAY_ASSERT(packets > 0);
}

nanoseconds Sampler::run(const Work& work, std::size_t count) {
  const auto start = thread_time();
  while (count > 0) {
    const std::size_t end = std::min(packets_, next_ + count);
    work(next_, end);
    count -= end - next_;
    next_ = end % packets_;
  }
  return std::max<nanoseconds>(thread_time() - start, nanoseconds(1));
}

std::size_t Sampler::packets_for(const Work& work) {
  std::size_t count = 1;
  nanoseconds taken = run(work, count);
  while (taken < sample_time_ / 4) {
    count *= 2;
    taken = run(work, count);
  }
  return std::max<std::size_t>(1, count * sample_time_ / taken);
}

double Sampler::rate(const Work& work, std::size_t count) {
  const std::chrono::duration<double> taken = run(work, count);
  return static_cast<double>(count) / taken.count();
}

}  // namespace leeway::tools::codecs
