// Leeway from C: the average of a vector over all ranks, which does not wait for lost packets.
//
//   ./run_ranks 4 build/average
#include <leeway/c.h>
#include <stdio.h>
#include <stdlib.h>

enum { kCount = 1000000 };

// The text of the last failure says what went wrong, on which rank, and what to do.
static int fail(const char* what, leeway_status status) {
  fprintf(stderr, "%s: %s: %s\n", what, leeway_status_name(status), leeway_last_error());
  return EXIT_FAILURE;
}

int main(void) {
  leeway_options options = LEEWAY_OPTIONS_INIT;
  leeway_collective_options lossy = LEEWAY_COLLECTIVE_OPTIONS_INIT;
  leeway_report_summary summary = LEEWAY_REPORT_SUMMARY_INIT;
  leeway_communicator* communicator = NULL;
  leeway_report* report = NULL;
  leeway_work* work = NULL;
  float* gradient = malloc(kCount * sizeof *gradient);
  if (gradient == NULL) return EXIT_FAILURE;

  // The options are this process's rank, the number of ranks and their meeting place. Launchers set
  // them in the environment.
  leeway_status status =
      leeway_options_from_environment(&options, LEEWAY_MEMBERSHIP_FROM_ENVIRONMENT);
  if (status == LEEWAY_OK) status = leeway_create(&options, &communicator);
  if (status == LEEWAY_OK) status = leeway_report_create(&report);
  if (status != LEEWAY_OK) return fail("join", status);

  for (size_t i = 0; i < kCount; ++i) gradient[i] = (float)leeway_rank_of(communicator) + 1;

  lossy.op = LEEWAY_AVG;
  lossy.delivery = LEEWAY_BEST_EFFORT;
  lossy.deadline_ns = 10000000000;  // 10 s at the latest; milliseconds are usual
  const leeway_const_tensor input = {gradient, kCount, LEEWAY_F32};
  const leeway_tensor output = {gradient, kCount, LEEWAY_F32};
  // The all-reduce runs in the background: this thread is free to compute until it waits.
  status = leeway_all_reduce_async(communicator, input, output, &lossy, &work);
  if (status == LEEWAY_OK) status = leeway_work_wait(work, report);
  if (status == LEEWAY_OK) status = leeway_report_get(report, &summary);
  if (status != LEEWAY_OK) return fail("average", status);

  printf("rank %d of %d: average %g, %.1f %% of the packets missing\n",
         (int)leeway_rank_of(communicator), (int)leeway_size_of(communicator), gradient[0],
         100 * summary.loss_first_pass);

  leeway_work_free(work);
  leeway_report_free(report);
  leeway_communicator_free(communicator);
  free(gradient);
  return EXIT_SUCCESS;
}
