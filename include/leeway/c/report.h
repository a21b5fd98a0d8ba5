// C: what a call says about itself. The members have the meaning of those of
// leeway::CollectiveReport (leeway/report.h).
#ifndef LEEWAY_C_REPORT_H
#define LEEWAY_C_REPORT_H

#include "leeway/c/options.h"

#ifdef __cplusplus
extern "C" {
#endif

// Room for one report, to be used again and again. A call that fails leaves it as it was.
typedef struct leeway_report leeway_report;

// Numbers of an operation as this rank saw it: none speaks of what other ranks got.
typedef struct leeway_report_summary {
  size_t size;                         // of this struct
  uint64_t sequence;                   // number of the operation on its communicator
  uint64_t peer_count;                 // for leeway_report_peer()
  uint64_t message_count;              // for leeway_report_message()
  double loss;                         // packets missing over those expected here, after repair
  double loss_first_pass;              // the same before any repair: lost, or too late
  uint64_t bytes_sent;                 // payload of datagrams: headers, repairs and copies included
  int64_t gate_ns;                     // submission until every needed peer had opened it
  int64_t reduce_ns;                   // submission until this rank's shard was settled
  int64_t spread_ns;                   // from there to completion
  int64_t total_ns;                    // submission until completion
  int32_t deadline_cut;                // flag: a deadline ended it, here or on a peer
  int32_t complete;                    // flag: nothing of this rank's result is missing
  uint64_t elements_missing;           // result elements that no packet brought
  uint64_t elements_untouched;         // of our shard, to which nobody contributed any weight
  uint32_t contributions_fetched;      // lost as a whole and fetched by asking again
  uint32_t contributions_missing;      // peers of whose contribution nothing arrived in time
  leeway_estimator estimator;          // used
  uint32_t contributors_min;           // of the packet with the fewest
  double contributors_mean;            // over packets
  double variance_estimate;            // of the result, by loss, per element; NaN: not known
  int32_t noise_measured;              // flag: the members below say something
  int32_t reserved;                    // 0
  double noise_gradient_mean_square;   // of the true gradient
  double noise_dispersion;             // variance of one rank's contribution around it
  double noise_quantisation_variance;  // of the average
  double noise_loss_variance;          // of the average: distance to gain times that without loss
  double noise_loss;                   // part of the reduce half's packets that is missing
  double noise_gain;                   // part of the gradient that is in the result
  double noise_ratio;                  // gain times rms gradient over rms noise
  uint64_t non_finite;                 // packets of contributions left out: infinities and NaNs
  uint32_t sites;                      // contributors are so many sites; 0: ranks
  uint32_t lanes;                      // slices, one for each lane that the call used
} leeway_report_summary;
// For leeway_report_get().
#define LEEWAY_REPORT_SUMMARY_INIT                                                                \
  {                                                                                               \
    sizeof(leeway_report_summary), 0, 0, 0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, \
        0.0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0                                     \
  }

// Packets of one peer in one operation.
typedef struct leeway_peer_report {
  size_t size;         // of this struct
  leeway_rank rank;    // the peer
  uint16_t reserved;   // 0
  int32_t missed;      // flag: the peer used nothing of our contribution
  uint64_t expected;   // packets that this peer was to send us
  uint64_t arrived;    // distinct packets accepted before settling
  uint64_t repaired;   // of those, on a repair pass or from parity
  uint64_t duplicate;  // copies of a packet already held
  uint64_t late;       // arrived after settling
  uint64_t sent;       // packets that we sent this peer, repairs and copies included
} leeway_peer_report;
// For leeway_report_peer().
#define LEEWAY_PEER_REPORT_INIT \
  { sizeof(leeway_peer_report), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// One message as this rank sent or received it.
typedef struct leeway_message_report {
  size_t size;         // of this struct
  leeway_rank source;  // the sender
  uint16_t reserved;   // 0
  uint32_t tag;        // the caller's
  uint64_t count;      // elements that were sent
} leeway_message_report;
// For leeway_report_message().
#define LEEWAY_MESSAGE_REPORT_INIT \
  { sizeof(leeway_message_report), 0, 0, 0, 0 }

// An empty report.
LEEWAY_C_EXPORT leeway_status leeway_report_create(leeway_report** report);
// Ends the handle.
LEEWAY_C_EXPORT void leeway_report_free(leeway_report* report);
// The numbers of the operation.
LEEWAY_C_EXPORT leeway_status leeway_report_get(const leeway_report* report,
                                                leeway_report_summary* summary);
// Of peer `index`, 0 .. peer_count - 1, by rank.
LEEWAY_C_EXPORT leeway_status leeway_report_peer(const leeway_report* report, size_t index,
                                                 leeway_peer_report* peer);
// Of message `index`, 0 .. message_count - 1, in the caller's order.
LEEWAY_C_EXPORT leeway_status leeway_report_message(const leeway_report* report, size_t index,
                                                    leeway_message_report* message);
// What encoded the reduce half, or the only half; what automatic chose.
LEEWAY_C_EXPORT leeway_status leeway_report_codec(const leeway_report* report,
                                                  leeway_codec_options* codec);
// histogram[k]: packets with exactly k contributors, 0 .. ranks. Copies `capacity` of them at most;
// `count` says how many there are.
LEEWAY_C_EXPORT leeway_status leeway_report_contributors(const leeway_report* report,
                                                         uint64_t* histogram, size_t capacity,
                                                         size_t* count);

#ifdef __cplusplus
}
#endif

#endif
