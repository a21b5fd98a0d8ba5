// The report of a completed call: exactly what arrived, what did not, and how long it took.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "leeway/options.h"
#include "leeway/types.h"

namespace leeway {
inline namespace v0 {

// Packets exchanged with one peer in one operation. Counts are exact and refer to distinct data
// packets. Over shared memory they are counts of pieces of the tensor, and no piece is ever lost.
struct PeerReport {
  Rank rank = 0;               // the peer
  std::uint64_t expected = 0;  // packets this peer was to send us
  // Distinct packets accepted before settling, repaired ones included
  std::uint64_t arrived = 0;
  // Arrived packets that were accepted on a repair pass or computed from parity
  std::uint64_t repaired = 0;
  std::uint64_t duplicate = 0;  // copies of a packet already held; never summed
  std::uint64_t late = 0;       // arrived after settling; never used
  std::uint64_t sent = 0;       // packets we sent this peer, repairs and copies included
  // The peer settled its shard of a reduction without any of our packets, so our contribution is
  // certainly not in it. `missed` is false if the peer used some packets, or has not said whether
  // it did. With CollectiveOptions::confirm_use every peer says whether it did, unless it leaves or
  // the deadline comes first.
  bool missed = false;
};

// How many ranks, this rank included, contributed to each packet of the shard that this rank owns.
// For a rank that owns nothing the histogram is zeros, and min and mean are the number of ranks.
struct ContributorStats {
  std::uint32_t min = 0;                 // contributors of the packet that has the fewest
  double mean = 0.0;                     // over packets
  std::vector<std::uint64_t> histogram;  // [k] = packets with exactly k contributors, k = 0 .. size
};

// How long the parts of an operation took on this rank.
struct PhaseTimes {
  // Submission until every needed peer had opened the operation; equal to `total` if one never did
  Duration gate{0};
  Duration reduce{0};  // submission until this rank's shard was settled; 0 without a reduce half
  Duration spread{0};  // from the settling of this rank's shard until completion
  Duration total{0};   // submission until completion
};

// Size of the gradient against the noise that quantisation and packet loss put on it. Figures are
// per element of the shard this rank owns and per unit of work. A sum has the figures of the
// average of the same contributions. Figures are estimated from a sample of the packets, and from
// the weights by which the arrived contributions were summed, so they cover any pattern of loss.
// Only float32 sums and averages that are lossy or re-encoded are measured.
//
// A single operation's mean squares may be negative where noise dominates. To judge a training run,
// average them over steps and form the ratio of the averages. Each rank takes its own contribution
// for a sample of all ranks' contributions. If contributions differ in size, the mean of all ranks'
// reports is right, and a single report is not. A rank whose own weight is 0, or that owns nothing,
// measures nothing.
struct NoiseReport {
  // The other fields mean nothing if this is false. Then nothing was measured, or the sampled
  // packets had too few contributors to tell gradient and dispersion apart.
  bool measured = false;
  double gradient_mean_square = 0.0;  // mean square of the true gradient
  double dispersion = 0.0;  // variance of one rank's contribution around the true gradient
  double quantisation_variance = 0.0;  // variance that encoding adds to the average, both halves
  // Mean square distance between the average and `gain` times the average without loss
  double loss_variance = 0.0;
  // Fraction of the reduce half's packets to this rank that is missing in the result
  double loss = 0.0;
  // Fraction of the gradient in this result; below 1 for zero_fill, which does not compensate
  // for losses
  double gain = 1.0;
  // gain x rms gradient / rms noise. Infinite without noise, 0 if the gradient is lost in the
  // noise. Below sqrt(3), use more bits or a more reliable delivery (arXiv 2505.19115).
  double ratio = std::numeric_limits<double>::infinity();
};

// One message as this rank sent or received it.
struct MessageReport {
  Rank source = kNoRank;  // rank that sent it
  std::uint32_t tag = 0;  // the tag that the caller gave
  std::uint64_t count =
      0;  // elements sent; for a receive this may be less than its buffer had room for
};

// The report of one completed operation, as this rank saw it. No figure tells what other ranks
// received.
struct CollectiveReport {
  std::uint64_t sequence = 0;     // number of this operation on its communicator
  std::vector<PeerReport> peers;  // one for each other rank of the operation, by rank
  ContributorStats contributors;  // for reductions; empty otherwise
  // For all_reduce and Replica::reduce_gradients: the number of ranks that own a part of the
  // tensor. It is less than the number of ranks if the tensor has fewer datagrams than ranks. The
  // owners then change from call to call.
  std::uint32_t owners = 0;
  // Number of sites, if the call went in hops inside sites and between them (Options::site); 0 if
  // it went straight between all ranks. In a call by sites, a site's partial sum is one
  // contribution. So contributors, variance_estimate and noise refer to sites and not to ranks.
  std::uint32_t sites = 0;
  // Slices into which the call was cut, one for each lane that it used (Options::lanes). All other
  // figures cover all slices.
  std::uint32_t lanes = 1;
  // 1 - arrived/expected of the packets sent to this rank, over all peers and both halves, after
  // repair
  double loss = 0.0;
  // Like `loss`, but repaired packets count as lost: fraction of packets of which all copies were
  // lost or late
  double loss_first_pass = 0.0;
  // Bytes that this rank had sent when the call was done: datagram payload, headers, repairs and
  // copies included. 0 over shared memory. A send whose message was copied may be done before the
  // message leaves
  std::uint64_t bytes_sent = 0;
  PhaseTimes times;
  // A deadline ended the operation, rather than completeness or a quiet network. It was this rank's
  // deadline, or the deadline of a peer from which something is missing
  bool deadline_cut = false;
  // This rank's result is whole: elements_missing is 0, and with sites every rank of this site was
  // heard. In an operation that gives all ranks the same result, the ranks whose results are
  // complete hold the same bits. This says nothing about other ranks' results. To learn whether all
  // results are complete, reduce the flag with an exact all_reduce and min.
  bool complete = true;
  // Number of result elements that no packet brought (spread half). With sites it is an upper bound
  std::uint64_t elements_missing = 0;
  // Elements of our shard to which nobody contributed any weight. Their result is 0, or the control
  // variate
  std::uint64_t elements_untouched = 0;
  // Packets of contributions to our shard, our own included, that held an infinity or a NaN and
  // count as lost in the result (CollectiveOptions::keep_non_finite). They did arrive: `loss` does
  // not count them
  std::uint64_t non_finite = 0;
  // Number of peers whose contribution to our shard was lost as a whole and then fetched by asking
  // again (horvitz_thompson and augmented under best effort; any estimator where all losses are
  // repaired)
  std::uint32_t contributions_fetched = 0;
  // Number of peers whose contribution to our shard had not even begun to arrive when it was
  // settled
  std::uint32_t contributions_missing = 0;
  Estimator estimator = Estimator::ratio;  // as asked for; exact calls need none
  CodecOptions codec;  // codec of the reduce half, or of the only half; what `automatic` chose
  // Variance that loss adds to an element of the result, in the square of the element's unit,
  // averaged over our shard. For an average it is noise.loss_variance. For a sum it is
  // noise.loss_variance times the square of the number of ranks (or sites). The mean over calls and
  // ranks is right. One rank's figure may be far off and below 0, also on average, if its shard is
  // short or ranks contribute unlike values. The figure is 0 if nothing was lost. It is NaN if
  // something was lost and noise.measured is false, as when nothing of the other ranks arrived.
  double variance_estimate = 0.0;
  NoiseReport noise;
  // One entry for send and recv; for exchange() one for each message in the caller's order; else
  // empty
  std::vector<MessageReport> messages;
};

}  // namespace v0
}  // namespace leeway
