// A training loop over a network that loses packets in both directions: gradients and parameters.
//
// Each rank holds all parameters and owns a part of them. The owner averages the gradients of its
// part, updates it, and sends it to all. A rank that misses a packet keeps the older values of
// these parameters for a step or a few; Replica bounds how old they may become.
//
//   ./run_ranks 4 build/replica_training
#include <leeway/leeway.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <span>
#include <vector>

namespace {

using namespace std::chrono_literals;

int fail(const leeway::Status& status) {
  std::fprintf(stderr, "%s\n", status.c_str());
  return 1;
}

float target(std::size_t index) {
  return std::sin(static_cast<float>(index));
}

double distance(std::span<const float> parameters) {
  double sum = 0.0;
  for (std::size_t i = 0; i < parameters.size(); ++i) sum += std::pow(parameters[i] - target(i), 2);
  return std::sqrt(sum / static_cast<double>(parameters.size()));
}

}  // namespace

int main() {
  auto options = leeway::Options::from_environment();
  if (!options.ok()) return fail(options.status());
  options->faults.loss = 0.05;  // for the demonstration: loopback itself loses nothing

  auto created = leeway::Communicator::create(*options);
  if (!created.ok()) return fail(created.status());
  leeway::Communicator& communicator = **created;

  // The same start on all ranks. The replica updates `parameters` in place from here on.
  std::vector<float> parameters(100'000, 0.0f), gradient(parameters.size());
  auto made = leeway::Replica::create(communicator, parameters, {.age_max = 4});
  if (!made.ok()) return fail(made.status());
  leeway::Replica& replica = **made;

  const leeway::CollectiveOptions lossy{.op = leeway::ReduceOp::avg,
                                        .delivery = leeway::best_effort(10s)};
  std::mt19937 random(communicator.rank());  // each rank has data of its own
  std::normal_distribution<float> noise(0.0f, 1.0f);

  for (int step = 0; step < 60; ++step) {
    // This stands for the forward and backward passes. The gradient is the distance to the target
    // plus noise, as noisy data would give it.
    for (std::size_t i = 0; i < gradient.size(); ++i)
      gradient[i] = parameters[i] - target(i) + noise(random);

    if (auto reduced = replica.reduce_gradients(gradient, lossy); !reduced.ok())
      return fail(reduced.status());
    // This stands for the optimizer. It sees and updates the owned part only.
    const auto mine = std::span(gradient).subspan(replica.owned_offset(), replica.owned_count());
    for (std::size_t i = 0; i < mine.size(); ++i) replica.owned()[i] -= 0.1f * mine[i];
    if (auto sent = replica.broadcast_parameters(); !sent.ok()) return fail(sent.status());
  }

  // All ranks get the owners' exact values, as is needed before evaluation or a checkpoint.
  if (auto exact = replica.synchronize(); !exact.ok()) return fail(exact.status());
  std::printf("rank %d: distance %.3f, broadcasts lost %.1f %%, oldest value %u steps\n",
              communicator.rank(), distance(parameters), 100 * replica.drift().loss,
              replica.drift().age_max_seen);
  return 0;
}
