// A C99 program in which two ranks of one process add up their vectors.
#include <leeway/c.h>

enum { kCount = 1000 };

int c99_sum_of_two_ranks(float* sum);

static const leeway_options kOptions = LEEWAY_OPTIONS_INIT;
static const leeway_collective_options kCall = LEEWAY_COLLECTIVE_OPTIONS_INIT;

int c99_sum_of_two_ranks(float* sum) {
  static float values[2][kCount];
  leeway_communicator* ranks[2] = {NULL, NULL};
  leeway_work* works[2] = {NULL, NULL};
  leeway_status status = leeway_create_inproc(2, &kOptions, ranks);
  int i;
  for (i = 0; i < 2 && status == LEEWAY_OK; ++i) {
    leeway_const_tensor input;
    leeway_tensor output;
    int j;
    for (j = 0; j < kCount; ++j) values[i][j] = (float)(i + 1);
    input.data = output.data = values[i];
    input.count = output.count = kCount;
    input.dtype = output.dtype = LEEWAY_F32;
    status = leeway_all_reduce_async(ranks[i], input, output, &kCall, &works[i]);
  }
  if (status == LEEWAY_OK) status = leeway_work_wait_all(works, 2);
  *sum = values[1][kCount - 1];
  for (i = 0; i < 2; ++i) {
    leeway_work_free(works[i]);
    leeway_communicator_free(ranks[i]);
  }
  return status;
}

// Each initialiser initialises each member, in C as in C++.
int c99_initialisers_compile(void);
int c99_initialisers_compile(void) {
  const leeway_codec_options codec = LEEWAY_CODEC_OPTIONS_INIT;
  const leeway_store_callbacks store = LEEWAY_STORE_CALLBACKS_INIT;
  const leeway_report_summary summary = LEEWAY_REPORT_SUMMARY_INIT;
  const leeway_peer_report peer = LEEWAY_PEER_REPORT_INIT;
  const leeway_message_report received = LEEWAY_MESSAGE_REPORT_INIT;
  const leeway_message message = LEEWAY_MESSAGE_INIT;
  const leeway_replica_options replica = LEEWAY_REPLICA_OPTIONS_INIT;
  const leeway_drift_report drift = LEEWAY_DRIFT_REPORT_INIT;
  const leeway_compute_budget_options budget = LEEWAY_COMPUTE_BUDGET_OPTIONS_INIT;
  const leeway_compute_counts counts = LEEWAY_COMPUTE_COUNTS_INIT;
  const leeway_compute_statistics statistics = LEEWAY_COMPUTE_STATISTICS_INIT;
  const leeway_late_work_statistics late = LEEWAY_LATE_WORK_STATISTICS_INIT;
  const leeway_adam_state_options adam = LEEWAY_ADAM_STATE_OPTIONS_INIT;
  const leeway_payload_chunk chunk = LEEWAY_PAYLOAD_CHUNK_INIT;
  const leeway_payload_contribution contribution = LEEWAY_PAYLOAD_CONTRIBUTION_INIT;
  const leeway_payload_source source = LEEWAY_PAYLOAD_SOURCE_INIT;
  const leeway_payload_sink sink = LEEWAY_PAYLOAD_SINK_INIT;
  const leeway_payload_half_info half = LEEWAY_PAYLOAD_HALF_INFO_INIT;
  const leeway_payload_block block = LEEWAY_PAYLOAD_BLOCK_INIT;
  if (chunk.size != sizeof chunk || contribution.size != sizeof contribution ||
      source.size != sizeof source || sink.size != sizeof sink || half.size != sizeof half ||
      block.size != sizeof block)
    return 0;
  return codec.size == sizeof codec && store.size == sizeof store &&
         summary.size == sizeof summary && peer.size == sizeof peer &&
         received.size == sizeof received && message.size == sizeof message &&
         replica.size == sizeof replica && drift.size == sizeof drift &&
         budget.size == sizeof budget && counts.size == sizeof counts &&
         statistics.size == sizeof statistics && late.size == sizeof late &&
         adam.size == sizeof adam;
}
