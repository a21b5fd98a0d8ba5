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

// Packets of one peer in one operation. Counts are exact and refer to distinct data packets.
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
// contribution counts).
struct ContributorStats {
  std::uint32_t min = 0;                 // of the packet with the fewest
  double mean = 0.0;                     // over packets
  std::vector<std::uint64_t> histogram;  // [k] = packets with exactly k contributors, k = 0 .. size
};

// How long the parts of an operation took on this rank.
struct PhaseTimes {
  Duration gate{0};    // submission until every needed peer had opened the operation
  Duration reduce{0};  // submission until this rank's shard was settled
  Duration spread{0};  // from there to completion
  Duration total{0};   // submission until completion
};

// The gradient against the noise that quantisation and packet loss put on it: per element of the
// shard this rank owns, per unit of work, estimated from a sample of the packets. Only for float32
// sums and averages that are lossy or re-encoded. A single operation's mean squares may be negative
// where noise dominates; to judge a training run, average them over steps and form the ratio of the
// averages. A rank whose own weight is 0 measures nothing.
struct NoiseReport {
  bool measured = false;               // false: the other fields say nothing
  double gradient_mean_square = 0.0;   // of the true gradient
  double dispersion = 0.0;             // variance of one rank's contribution around it
  double quantisation_variance = 0.0;  // of the result, both halves
  double loss_variance = 0.0;          // of the result
  // Fraction of the reduce half's packets that is missing in the result
  double loss = 0.0;
  // Of the gradient's part in the result; below 1 for zero_fill
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

// The report of one completed operation, as this rank saw it.
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
  // 1 - arrived/expected over all peers and both halves, after repair
  double loss = 0.0;
  double loss_first_pass = 0.0;  // without repaired packets: what the network lost of all copies
  std::uint64_t bytes_sent = 0;  // datagram payload bytes, headers, repairs and copies included
  PhaseTimes times;
  bool deadline_cut = false;  // settled by the deadline rather than by completeness or quiet
  // Every element of the result arrived exactly: all ranks hold the same bits
  bool agreed = true;
  std::uint64_t elements_missing = 0;  // result elements that no packet brought (spread half)
  // Elements of our shard to which nobody contributed any weight: 0, or the guess
  std::uint64_t elements_untouched = 0;
  // Packets of contributions to our shard, our own included, that held an infinity or a NaN and
  // were left out (CollectiveOptions::keep_non_finite)
  std::uint64_t non_finite = 0;
  // Peers whose contribution to our shard was lost as a whole and then fetched by asking again
  // (horvitz_thompson and augmented under best effort; any estimator where all losses are repaired)
  std::uint32_t contributions_fetched = 0;
  // Peers of whose contribution to our shard nothing arrived before it was settled
  std::uint32_t contributions_missing = 0;
  Estimator estimator = Estimator::ratio;
  CodecOptions codec;  // of the reduce half, or the only half; what automatic chose
  // Mean over owned elements of the estimated loss-induced variance of the result; 0 when nothing
  // was lost.
  double variance_estimate = 0.0;
  NoiseReport noise;
  // Of send and recv one, of exchange() one each in the caller's order; else empty
  std::vector<MessageReport> messages;
};

}  // namespace v0
}  // namespace leeway
