// A program that mpirun starts. It does not use MPI: Leeway reads rank and size from the launcher's
// environment. torchrun and srun work in the same way.
//
//   mpirun -np 4 build/under_mpirun
//
// Across machines Open MPI does not tell the ranks an address, so say where rank 0 listens:
//
//   mpirun -np 4 --host a,b,c,d -x LEEWAY_RENDEZVOUS=a:29500 build/under_mpirun
#include <leeway/leeway.h>

#include <cstdint>
#include <cstdio>
#include <span>

namespace {

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
  const leeway::Rank root = 0;

  // Rank 0 decides how much work there is and tells the others.
  std::int64_t slices[1] = {communicator.rank() == root ? 10'000'000 : 0};
  if (auto told = communicator.broadcast(std::span(slices), root); !told.ok())
    return fail(told.status());

  // Pi is the integral of 4 / (1 + x^2) from 0 to 1. Each rank adds up every size-th slice.
  double part[1] = {0.0};
  for (std::int64_t i = communicator.rank(); i < slices[0]; i += communicator.size()) {
    const double x = (static_cast<double>(i) + 0.5) / static_cast<double>(slices[0]);
    part[0] += 4.0 / (1.0 + x * x) / static_cast<double>(slices[0]);
  }

  double pi[1] = {0.0};  // written on rank 0 only
  auto report = communicator.reduce(std::span(part), std::span(pi), root);
  if (!report.ok()) return fail(report.status());
  if (communicator.rank() == root)
    std::printf("%d ranks: pi is %.9f\n", communicator.size(), pi[0]);
  return 0;
}
