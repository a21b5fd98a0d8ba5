// An average that does not wait for lost packets, and its report of what is missing.
//
// The gradient of a training step is noisy anyway. A call with best-effort delivery sends each
// packet once and returns when the network is quiet. What was lost is made up for on average: the
// result is an unbiased estimate of the true mean.
//
//   ./run_ranks 4 build/lossy_average
#include <leeway/leeway.h>

#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

namespace {

using namespace std::chrono_literals;

int fail(const leeway::Status& status) {
  std::fprintf(stderr, "%s\n", status.c_str());
  return 1;
}

double mean(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

int main() {
  auto options = leeway::Options::from_environment();
  if (!options.ok()) return fail(options.status());
  // This machine's loopback loses nothing, so a tenth of the packets is thrown away here. A real
  // program leaves this line out.
  options->faults.loss = 0.1;

  auto created = leeway::Communicator::create(*options);
  if (!created.ok()) return fail(created.status());
  leeway::Communicator& communicator = **created;
  const double true_mean = (communicator.size() + 1) / 2.0;  // ranks bring 1, 2, 3, ...

  std::vector<float> gradient(1'000'000, static_cast<float>(communicator.rank() + 1));
  const leeway::CollectiveOptions lossy{
      .op = leeway::ReduceOp::avg,
      .delivery = leeway::best_effort(10s),             // a deadline; milliseconds are usual
      .estimator = leeway::Estimator::symmetric_ratio,  // unbiased where all links lose alike
  };
  auto report = communicator.all_reduce(std::span(gradient), lossy);
  if (!report.ok()) return fail(report.status());

  // `gradient` now holds the same estimate on all ranks. The report counts the packets from each
  // peer: its contributions, and its part of the result, whose lost packets are sent again.
  std::printf("rank %d: mean %.3f (true %.3f), %.1f %% of the packets missing\n",
              communicator.rank(), mean(gradient), true_mean, 100 * report->loss_first_pass);
  for (const leeway::PeerReport& peer : report->peers) {
    std::printf("rank %d: from rank %d came %llu of %llu packets\n", communicator.rank(), peer.rank,
                static_cast<unsigned long long>(peer.arrived),
                static_cast<unsigned long long>(peer.expected));
  }
  return 0;
}
