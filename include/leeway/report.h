// What a call says about itself: exactly what arrived, what did not, and how long it took.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "leeway/options.h"
#include "leeway/types.h"

namespace leeway {
inline namespace v0 {

// Packets of one peer in one operation. Counts are exact and refer to distinct data packets. Over
// shared memory they are pieces of the tensor, none of which is ever lost.
struct PeerReport {
  Rank rank = 0;               // the peer
  std::uint64_t expected = 0;  // packets the plan says this peer sends us
  // Distinct packets accepted before settling (repaired ones included)
  std::uint64_t arrived = 0;
  // Of those, accepted on a repair pass, or computed from parity
  std::uint64_t repaired = 0;
  std::uint64_t duplicate = 0;  // copies of a packet already held; never summed
  std::uint64_t late = 0;       // arrived after settling; never used
  std::uint64_t sent = 0;       // packets we sent this peer, repairs and copies included
  // The peer settled its shard of a reduction without any of our packets: our contribution is
  // certainly not in it. False where it used some or has not said; with
  // CollectiveOptions::confirm_use it has, unless it left or the deadline came first.
  bool missed = false;
};

// Effective number of contributors over the packets of the shard this rank owns (its own
// contribution counts). A rank that owns nothing has a histogram of zeros, and all ranks as min and
// mean.
struct ContributorStats {
  std::uint32_t min = 0;                 // of the packet with the fewest
  double mean = 0.0;                     // over packets
  std::vector<std::uint64_t> histogram;  // [k] = packets with exactly k contributors, k = 0 .. size
};

// How long the parts of an operation took on this rank.
struct PhaseTimes {
  // Submission until every needed peer had opened the operation; `total` where one never did
  Duration gate{0};
  Duration reduce{0};  // submission until this rank's shard was settled; 0 without a reduce half
  Duration spread{0};  // from there to completion
  Duration total{0};   // submission until completion
};

// The gradient against the noise that quantisation and packet loss put on it: per element of the
// shard this rank owns, per unit of work (a sum's figures are those of its average), estimated from
// a sample of the packets and the weights by which the contributions that came were summed. Any
// pattern of loss is in it. Only for float32 sums and averages that are lossy or re-encoded. A
// single operation's mean squares may be negative where noise dominates; to judge a training run,
// average them over steps and form the ratio of the averages. A rank's own contribution stands for
// those of all: where they differ in size, the mean of all ranks' reports is right, a single one
// is not. A rank whose own weight is 0, or that owns nothing, measures nothing.
struct NoiseReport {
  // The other fields say nothing where this is false. The packets that were looked at may have come
  // of so few ranks that gradient and dispersion cannot be told apart.
  bool measured = false;
  double gradient_mean_square = 0.0;   // of the true gradient
  double dispersion = 0.0;             // variance of one rank's contribution around it
  double quantisation_variance = 0.0;  // of the average, both halves
  // Of the average: mean square distance to `gain` times the average without loss
  double loss_variance = 0.0;
  // Fraction of the reduce half's packets to this rank that is missing in the result
  double loss = 0.0;
  // Part of the gradient that is in this result; below 1 for zero_fill, which makes nothing up
  double gain = 1.0;
  // gain x rms gradient over rms noise; infinite without noise, 0 if the gradient is lost in it.
  // Below sqrt(3) more bits or more reliability are due (arXiv 2505.19115).
  double ratio = std::numeric_limits<double>::infinity();
};

// One message as this rank sent or received it.
struct MessageReport {
  Rank source = kNoRank;  // who sent it
  std::uint32_t tag = 0;  // the caller's
  std::uint64_t count =
      0;  // elements that were sent, of a receive perhaps less than it had room for
};

// The report of one completed operation, as this rank saw it: no figure speaks of what other ranks
// got.
struct CollectiveReport {
  std::uint64_t sequence = 0;     // number of this operation on its communicator
  std::vector<PeerReport> peers;  // one for each other rank of the operation, by rank
  ContributorStats contributors;  // of reductions; empty otherwise
  // Of all_reduce and Replica::reduce_gradients: among how many ranks the tensor was cut. Less than
  // all where it is shorter than a datagram for each; the owners are others in every call then.
  std::uint32_t owners = 0;
  // Sites, where the call went in hops inside them and between them (Options::site). A site's
  // partial sum is one contribution then: contributors, variance_estimate and noise are those of so
  // many contributors, not of all ranks. 0: it went straight between all ranks.
  std::uint32_t sites = 0;
  // Slices into which the call was cut, one for each lane that it used (Options::lanes). What the
  // report says is of all of them.
  std::uint32_t lanes = 1;
  // 1 - arrived/expected of what was sent to this rank, over all peers and both halves, after
  // repair
  double loss = 0.0;
  // The same without repaired packets: lost with all copies, or too late
  double loss_first_pass = 0.0;
  // By this rank: datagram payload bytes, headers, repairs and copies included. 0 over shared
  // memory
  std::uint64_t bytes_sent = 0;
  PhaseTimes times;
  // A deadline ended it, rather than completeness or quiet: that of this rank, or of a peer of
  // which something is missing then
  bool deadline_cut = false;
  // Nothing of this rank's result is missing: elements_missing is 0, and by sites every rank of
  // this site was heard. Of a call that gives all ranks the same, ranks whose results are complete
  // hold the same bits. It does not say that other ranks' results are: confirm it among them where
  // that matters (a 1 each, exact all_reduce, min).
  bool complete = true;
  // Result elements that no packet brought (spread half); by sites so many at most
  std::uint64_t elements_missing = 0;
  // Elements of our shard to which nobody contributed any weight: 0, or the guess
  std::uint64_t elements_untouched = 0;
  // Packets of contributions to our shard, our own included, that held an infinity or a NaN and
  // count as lost there (CollectiveOptions::keep_non_finite). They arrived: `loss` does not have
  // them
  std::uint64_t non_finite = 0;
  // Peers whose contribution to our shard was lost as a whole and then fetched by asking again
  // (horvitz_thompson and augmented under best effort; any estimator where all losses are repaired)
  std::uint32_t contributions_fetched = 0;
  // Peers of whose contribution to our shard nothing arrived before it was settled
  std::uint32_t contributions_missing = 0;
  Estimator estimator = Estimator::ratio;  // as asked for; exact calls need none
  CodecOptions codec;  // of the reduce half, or the only half; what automatic chose
  // Variance of an element of the result by loss, in the square of its unit, mean over our shard:
  // noise.loss_variance, of a sum times the square of the number of contributors. The estimate is
  // unbiased: where the shard has few elements it may be far off, and below 0, and its mean over
  // calls is right. 0: nothing was lost. NaN: something was, and noise.measured is false, as
  // where nothing came of the others.
  double variance_estimate = 0.0;
  NoiseReport noise;
  // Of send and recv one, of exchange() one each in the caller's order; else empty
  std::vector<MessageReport> messages;
};

}  // namespace v0
}  // namespace leeway
