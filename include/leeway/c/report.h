// C: the report of a completed call. Each member has the meaning of its namesake in
// leeway::CollectiveReport (leeway/report.h).
#ifndef LEEWAY_C_REPORT_H
#define LEEWAY_C_REPORT_H

#include "leeway/c/options.h"

#ifdef __cplusplus
extern "C" {
#endif

// Holds one report and can be reused. A call that fails does not change it.
typedef struct leeway_report leeway_report;

// Figures of an operation as this rank saw it. No figure says what other ranks received.
typedef struct leeway_report_summary {
  size_t size;                // bytes of this struct
  uint64_t sequence;          // number of the operation on its communicator
  uint64_t peer_count;        // for leeway_report_peer()
  uint64_t message_count;     // for leeway_report_message()
  double loss;                // fraction of the packets for this rank that is missing after repair
  double loss_first_pass;     // the same before repair: packets lost or late
  uint64_t bytes_sent;        // when the call was done: payload, headers, repairs, copies
  int64_t gate_ns;            // submission until every needed peer had opened the operation
  int64_t reduce_ns;          // submission until this rank's shard was settled
  int64_t spread_ns;          // from the settling of this rank's shard until completion
  int64_t total_ns;           // submission until completion
  int32_t deadline_cut;       // flag: a deadline ended the operation, here or on a peer
  int32_t complete;           // flag: nothing of this rank's result is missing
  uint64_t elements_missing;  // result elements that no packet brought
  uint64_t elements_untouched;  // elements of our shard without any contributed weight
  // Contributions lost as a whole and then fetched by asking again.
  uint32_t contributions_fetched;
  uint32_t contributions_missing;      // peers from which no contribution arrived in time
  leeway_estimator estimator;          // as asked for
  uint32_t contributors_min;           // contributors of the packet that has the fewest
  double contributors_mean;            // mean over packets
  double variance_estimate;            // variance of a result element due to loss; NaN if not known
  int32_t noise_measured;              // flag: the noise_ members below are valid
  int32_t reserved;                    // 0
  double noise_gradient_mean_square;   // mean square of the true gradient
  double noise_dispersion;             // variance of one rank's contribution around it
  double noise_quantisation_variance;  // variance that encoding adds to the average
  // Mean square distance between the average and `noise_gain` times the average without loss.
  double noise_loss_variance;
  double noise_loss;    // fraction of the reduce half's packets that is missing
  double noise_gain;    // fraction of the gradient that is in the result
  double noise_ratio;   // gain times rms gradient over rms noise
  uint64_t non_finite;  // packets left out because of infinities and NaNs
  uint32_t sites;       // number of sites if contributors are sites; 0 if they are ranks
  uint32_t lanes;       // slices of the call, one for each lane that it used
} leeway_report_summary;
// An empty summary, for leeway_report_get().
#define LEEWAY_REPORT_SUMMARY_INIT                                                                \
  {                                                                                               \
    sizeof(leeway_report_summary), 0, 0, 0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, \
        0.0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0                                     \
  }

// Packets of one peer in one operation.
typedef struct leeway_peer_report {
  size_t size;         // bytes of this struct
  leeway_rank rank;    // the peer
  uint16_t reserved;   // 0
  int32_t missed;      // flag: the peer used none of our packets
  uint64_t expected;   // packets that this peer was to send us
  uint64_t arrived;    // distinct packets accepted before settling
  uint64_t repaired;   // those of `arrived` that came on a repair pass or were computed from parity
  uint64_t duplicate;  // copies of a packet already held
  uint64_t late;       // packets that arrived after settling
  uint64_t sent;       // packets that we sent this peer, repairs and copies included
} leeway_peer_report;
// An empty peer report, for leeway_report_peer().
#define LEEWAY_PEER_REPORT_INIT \
  { sizeof(leeway_peer_report), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// One message as this rank sent or received it.
typedef struct leeway_message_report {
  size_t size;         // bytes of this struct
  leeway_rank source;  // the sender
  uint16_t reserved;   // 0
  uint32_t tag;        // the tag that the caller gave
  uint64_t count;      // elements that were sent
} leeway_message_report;
// An empty message report, for leeway_report_message().
#define LEEWAY_MESSAGE_REPORT_INIT \
  { sizeof(leeway_message_report), 0, 0, 0, 0 }

// Makes an empty report.
LEEWAY_C_EXPORT leeway_status leeway_report_create(leeway_report** report);
// Frees the handle.
LEEWAY_C_EXPORT void leeway_report_free(leeway_report* report);
// Gives the figures of the operation.
LEEWAY_C_EXPORT leeway_status leeway_report_get(const leeway_report* report,
                                                leeway_report_summary* summary);
// Gives the report of peer `index`, 0 .. peer_count - 1, in order of rank.
LEEWAY_C_EXPORT leeway_status leeway_report_peer(const leeway_report* report, size_t index,
                                                 leeway_peer_report* peer);
// Gives the report of message `index`, 0 .. message_count - 1, in the caller's order.
LEEWAY_C_EXPORT leeway_status leeway_report_message(const leeway_report* report, size_t index,
                                                    leeway_message_report* message);
// Gives the codec of the reduce half, or of the only half. For `automatic` it is the codec chosen.
LEEWAY_C_EXPORT leeway_status leeway_report_codec(const leeway_report* report,
                                                  leeway_codec_options* codec);
// Gives histogram[k], the number of packets with exactly k contributors, k = 0 .. ranks. Copies
// `capacity` entries at most; `count` is the number of entries that there are.
LEEWAY_C_EXPORT leeway_status leeway_report_contributors(const leeway_report* report,
                                                         uint64_t* histogram, size_t capacity,
                                                         size_t* count);

#ifdef __cplusplus
}
#endif

#endif
