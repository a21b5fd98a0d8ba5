// The first program: each rank brings a vector, and all ranks get the sum of these vectors.
//
//   ./run_ranks 4 build/all_reduce
#include <leeway/leeway.h>

#include <cstdio>
#include <span>
#include <vector>

namespace {

// Errors are values in Leeway. The text says what went wrong, on which rank, and what to do.
int fail(const leeway::Status& status) {
  std::fprintf(stderr, "%s\n", status.c_str());
  return 1;
}

}  // namespace

int main() {
  // Reads which rank this is, how many ranks there are, and where they meet: from LEEWAY_RANK,
  // LEEWAY_WORLD_SIZE and LEEWAY_RENDEZVOUS, or from the variables of torchrun, mpirun or srun.
  auto options = leeway::Options::from_environment();
  if (!options.ok()) return fail(options.status());

  // Joins the group. Each rank calls create(); it returns when all ranks are there.
  auto created = leeway::Communicator::create(*options);
  if (!created.ok()) return fail(created.status());
  leeway::Communicator& communicator = **created;

  // Rank 0 brings ones, rank 1 twos, and so on.
  std::vector<float> values(1'000'000, static_cast<float>(communicator.rank() + 1));

  // In place: `values` becomes the sum over all ranks. The default delivery is exact. Each lost
  // packet is sent again, and all ranks hold the same bits, or the call returns an error.
  auto report = communicator.all_reduce(std::span(values));
  if (!report.ok()) return fail(report.status());

  std::printf("rank %d of %d: %zu values, first %g, last %g\n", communicator.rank(),
              communicator.size(), values.size(), values.front(), values.back());
  return 0;
}
