#include "adversary/adversary.h"

#include "adversary/job.h"
#include "swarm/swarm.h"

namespace leeway::sim::adversary {

swarm::Verdict judge(std::uint64_t seed) {
  Job job(seed);
  const std::string broken = job.run();
  swarm::Verdict verdict;
  verdict.rounds = job.right_calls();
  verdict.packets = job.datagrams();
  verdict.events = job.events();
  verdict.trace_hash = job.trace_hash();
  if (!broken.empty()) {
    verdict.failure = swarm::Failure{"adversary", broken};
  } else if (swarm::runs_twice(seed)) {
    Job again(seed);
    (void)again.run();
    if (again.trace_hash() != verdict.trace_hash)
      verdict.failure = swarm::Failure{"i12", "a second run of the seed did something else"};
  }
  return verdict;
}

}  // namespace leeway::sim::adversary
