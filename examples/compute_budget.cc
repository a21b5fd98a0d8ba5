// A step that does not wait for its slowest rank (DropCompute).
//
// Each rank plans eight micro-batches a step. A rank that has computed for longer than the
// threshold joins the reduction with the micro-batches that it has completed. Weights make the
// result the mean over all micro-batches that were completed on any rank, so it stays unbiased.
//
//   ./run_ranks 4 build/compute_budget
#include <leeway/leeway.h>

#include <cstdio>
#include <span>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

int fail(const leeway::Status& status) {
  std::fprintf(stderr, "%s\n", status.c_str());
  return 1;
}

}  // namespace

int main() {
  auto options = leeway::Options::from_environment();
  if (!options.ok()) return fail(options.status());
  auto created = leeway::Communicator::create(*options);
  if (!created.ok()) return fail(created.status());
  leeway::Communicator& communicator = **created;

  leeway::ComputeBudgetOptions budget_options{
      .micro_batches = 8,
      .threshold = 100ms,  // or leeway::auto_threshold, which ranks find from measured steps
      .warm_up_steps = 1,  // the first step is never cut
      .window_steps = 0,   // a fixed threshold needs no exchange of measurements
  };
  auto made = leeway::ComputeBudget::create(communicator, budget_options);
  if (!made.ok()) return fail(made.status());
  leeway::ComputeBudget& budget = **made;

  // The last rank is slow: its eight micro-batches take 320 ms. Those of each other rank take 8 ms.
  const bool slow = communicator.rank() == communicator.size() - 1;
  const auto micro_batch_time = slow ? 40ms : 1ms;

  std::vector<float> gradient(10'000);
  leeway::CollectiveOptions average{.op = leeway::ReduceOp::avg};
  for (int step = 0; step < 4; ++step) {
    gradient.assign(gradient.size(), 0.0f);
    while (budget.next_micro_batch()) {
      std::this_thread::sleep_for(micro_batch_time);  // stands for forward and backward
      for (float& element : gradient) element += 2.0f;
    }
    average.weight = budget.weight();  // the micro-batches behind this gradient
    auto report = communicator.all_reduce(std::span(gradient), average);
    if (!report.ok()) return fail(report.status());
  }

  // Each micro-batch brought 2, so the mean per completed micro-batch is 2, whatever was dropped.
  const leeway::ComputeCounts counts = budget.statistics().local;
  std::printf("rank %d: mean %g, completed %llu of %llu micro-batches\n", communicator.rank(),
              gradient.front(), static_cast<unsigned long long>(counts.completed),
              static_cast<unsigned long long>(counts.planned));
  return 0;
}
