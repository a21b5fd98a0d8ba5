// What a caller may choose: per communicator (Options) and per call (CollectiveOptions).
//
// Precedence for Options: fields set in code win over the environment, which wins over the defaults
// below. from_environment() is the only function in the library that reads the environment; `leeway
// doctor` lists every variable it understands.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "leeway/codec.h"
#include "leeway/export.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway {
inline namespace v0 {

class PayloadSink;
class PayloadSource;
class Rendezvous;

// How contributions become one value, element by element, in the order of the ranks. Sums and
// products of f16, bf16, f8e4m3 and f8e5m2 are made in float32 and rounded once, after the last
// rank. Of booleans sum and max are bor, prod and min are band; avg and premul_sum are
// kUnsupported. Of floating types band, bor and bxor are kUnsupported.
enum class ReduceOp : std::uint8_t {
  sum = 0,  // of all ranks; integers wrap
  // The sum over the units of work (CollectiveOptions::weight). Of integers: their sum, which
  // wraps, divided by the ranks and truncated towards zero.
  avg,
  prod,  // product; integers wrap
  min,   // least; NaNs are left out, and the result is NaN where all are
  max,   // greatest; the same of NaNs
  // The sum of each rank's contribution times its CollectiveOptions::factor. The product is rounded
  // to the tensor's type; all else is as for sum, lossy classes and codecs included.
  premul_sum,
  band,  // bitwise and, of integers and booleans
  bor,   // bitwise or
  bxor,  // bitwise exclusive or
};
// Number of reductions.
inline constexpr int kReduceOpCount = 9;
// The name: "sum".
LEEWAY_EXPORT std::string_view to_string(ReduceOp op);

// A number that is kept exactly: a double, or an integer of up to 64 bits.
class Scalar {
 public:
  // Implicit: `options.factor = 0.5` and `options.factor = 3` read as meant.
  template <typename T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
      // NOLINTNEXTLINE(google-explicit-constructor)
      constexpr Scalar(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      real_ = value;
    } else {
      integer_ = true;
      negative_ = value < 0;
      const auto bits = static_cast<std::uint64_t>(value);
      magnitude_ = negative_ ? 0 - bits : bits;
    }
  }

  // Whether the value is one of T's: any is for float and double, which round; a whole number
  // within the range for integers.
  template <typename T>
  constexpr bool fits() const {
    if constexpr (std::is_floating_point_v<T>) {
      return true;
    } else {
      if (!integer_) return fits_real<T>();
      constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
      if (!negative_) return magnitude_ <= kMax;
      return std::is_signed_v<T> && magnitude_ <= kMax + 1;
    }
  }
  // The value as a T; where it fits.
  template <typename T>
  constexpr T as() const {
    if (!integer_) return static_cast<T>(real_);
    if constexpr (std::is_floating_point_v<T>) {
      return negative_ ? -static_cast<T>(magnitude_) : static_cast<T>(magnitude_);
    } else {
      return static_cast<T>(negative_ ? 0 - magnitude_ : magnitude_);
    }
  }

  // True if both are the same number. (NaN equals nothing.)
  friend constexpr bool operator==(const Scalar& a, const Scalar& b) {
    if (a.integer_ && b.integer_) return a.magnitude_ == b.magnitude_ && a.negative_ == b.negative_;
    if (!a.integer_ && !b.integer_) return a.real_ == b.real_;
    const Scalar& integer = a.integer_ ? a : b;
    const Scalar& real = a.integer_ ? b : a;
    return integer.negative_ ? real.equals<std::int64_t>(integer)
                             : real.equals<std::uint64_t>(integer);
  }

 private:
  template <typename T>
  constexpr bool fits_real() const {
    // The largest value and one, a power of two: the largest itself may round up as a double.
    constexpr double kBeyond =
        2.0 * static_cast<double>(std::uint64_t{1} << (std::numeric_limits<T>::digits - 1));
    const bool in_range =
        real_ < kBeyond && real_ >= static_cast<double>(std::numeric_limits<T>::min());
    return in_range && static_cast<double>(static_cast<T>(real_)) == real_;
  }
  template <typename T>
  constexpr bool equals(const Scalar& integer) const {
    return fits_real<T>() && static_cast<T>(real_) == integer.as<T>();
  }

  bool integer_ = false;
  bool negative_ = false;  // of an integer
  std::uint64_t magnitude_ = 0;
  double real_ = 0.0;
};

// How a lossy sum or average is formed from what arrived. Formulas, assumptions and variances:
// src/estimate/README.md.
enum class Estimator : std::uint8_t {
  zero_fill = 0,  // lost contributions count as zero; biased, a baseline for debugging
  ratio,          // divide by the weight that arrived (the rule of arXiv 2507.07114)
  // Ratio with a virtual loss of the owner's own contribution. Unbiased where all links lose
  // packets with the same chances, and something arrives; of weighted averages, where weights are
  // as likely on one rank as on another.
  symmetric_ratio,
  // Own contribution with its exact share, the others rescaled among themselves
  stratified,
  // Each link rescaled by its realised rate n_i/k_i. Unbiased on unequal and bursty links: an owner
  // that got nothing of a contribution asks for it again until the deadline. That is done in
  // all_reduce, and in other reductions for contributions of fewer than 64 packets to an owner.
  // Where the deadline comes first, rates of earlier calls make up for it to about a tenth of what
  // is cut. CollectiveReport says how many contributions were fetched, and how many are missing.
  horvitz_thompson,
  // Horvitz-Thompson around a control variate: less variance, the same promise
  augmented,
};
// The name as parse_estimator() reads it: "horvitz_thompson". An unknown name is kInvalidArgument.
// Number of estimators.
inline constexpr int kEstimatorCount = 6;
LEEWAY_EXPORT std::string_view to_string(Estimator estimator);
LEEWAY_EXPORT Result<Estimator> parse_estimator(std::string_view name);

// The promise of one call about completeness and time.
struct Delivery {
  // The three promises; exact(), bounded() and best_effort() make one.
  enum class Kind : std::uint8_t {
    exact = 0,    // every element, or an error
    bounded,      // repairs until at most loss_max is missing, or the deadline
    best_effort,  // one pass, no repair
  };
  // Number of promises.
  static constexpr int kKinds = 3;
  Kind kind = Kind::exact;  // which of them
  // Bounded only: residual loss fraction allowed, 0 .. 1
  double loss_max = 0.0;
  // From submission; exact fails, the others return what they have
  Duration deadline = std::chrono::seconds(60);
};
// As a deadline: none. The call ends when it is done, or when a peer is dead
// (Options::peer_timeout), however long a rank that lives does something else meanwhile.
inline constexpr Duration no_deadline = Duration::max();  // NOLINT(readability-identifier-naming)

// Every element by the deadline, or an error that names rank, operation, peer and deadline.
constexpr Delivery exact(Duration deadline = std::chrono::seconds(60)) {
  return {Delivery::Kind::exact, 0.0, deadline};
}
// Repairs until at most `loss_max` (0 .. 1) of the packets is missing or time is up.
constexpr Delivery bounded(double loss_max, Duration deadline) {
  return {Delivery::Kind::bounded, loss_max, deadline};
}
// Sends once. Ends when all came, when senders are done and the network is quiet, or at the
// deadline.
constexpr Delivery best_effort(Duration deadline) {
  return {Delivery::Kind::best_effort, 1.0, deadline};
}
// The name: "best_effort".
LEEWAY_EXPORT std::string_view to_string(Delivery::Kind kind);

// One value per call. Ranks of a collective must give the first of these alike, and each rank
// chooses the others for itself, over every transport:
//
//   must be equal    the operation, its data type, root, elements (0 among them) and blocks (not
//                    their gaps), op, delivery.kind, spread, codec, spread_codec (format and what a
//                    receiver needs to read it, not rounding), estimator, confirm_use
//   may differ       delivery.deadline, delivery.loss_max, factor, weight, owner_weights,
//                    keep_non_finite, residual, control_variate, in place or not, and, unless calls
//                    go by sites or lanes (Options::site, Options::lanes), source and sink
//
// A difference fails the collective with kMismatch on all ranks, and the next one is right. The
// text names two ranks and what each has. (A rank may be done before it is found where all that it
// waits for call as it does: the root of a small broadcast or scatter waits for nobody, and nor
// does a sender to another root; a receiver waits for the root alone.) A collective that one rank
// refuses, say with kInvalidArgument, fails on the others, too. A collective of no elements ends
// when all ranks have come to it, as a barrier does, and by its delivery where one does not come.
struct CollectiveOptions {
  ReduceOp op = ReduceOp::sum;  // of reductions
  // premul_sum: what this rank's contribution is multiplied by; ranks may differ. A value of the
  // tensor's type: a whole number in its range for integers, else kInvalidArgument; rounded to
  // float32 for floating types, f64 excepted. All other reductions require 1.
  Scalar factor = 1;
  Delivery delivery{};  // of the reduce half, and of operations that have one half only

  // Class of the spread half of an all_reduce; its deadline is always the call's.
  //   exact        all ranks hold the same bits, or the call fails: kDeadlineExceeded, or kPeerLost
  //                where a rank is gone. The text says how much is missing of whom.
  //   bounded      repaired until nothing is missing, or the deadline. What did not come is 0 (a
  //                PayloadSink leaves it as it was), and CollectiveReport says how much that is.
  //                Ranks may differ then.
  //   best_effort  sent once. What did not come stays as it was in the output; by sites it is 0.
  Delivery::Kind spread = Delivery::Kind::exact;

  CodecOptions codec;                        // reduce half (or the only half)
  std::optional<CodecOptions> spread_codec;  // spread half; default: the same as `codec`
  Estimator estimator = Estimator::ratio;    // used by lossy sum/avg only

  // Units of work (samples, micro-batches) behind this rank's contribution: 0, or 2^-64 .. 2^64.
  // With op = avg the contribution is the *sum* over its units and the result is sum R w G / sum R
  // w c, the mean per unit. A rank with weight 0 contributes nothing, whatever its input holds;
  // where all have 0 the result is zeros, reported as elements_untouched. All other reductions, and
  // averages of float64 and of integers, require weight 1.
  double weight = 1.0;

  // Weights by owner, one for each rank, where this rank's contribution to the shards of some
  // owners holds more units than to others (LateWork); replaces `weight`. Empty: `weight`
  // everywhere. Read until the call completes.
  std::span<const double> owner_weights{};

  // Of messages (send, recv): a receive takes messages of its own tag only, and messages of
  // different tags do not wait for each other. 65,536 different ones with one peer in a
  // communicator's life. Other operations require 0.
  std::uint32_t tag = 0;

  // Lossy reductions: wait until every owner has said whether it used any of this rank's
  // contribution (PeerReport::missed), a round trip more; at most until the deadline.
  bool confirm_use = false;

  // Lossy sums and averages of floating types leave a packet of a contribution that holds an
  // infinity or a NaN out, as if it were lost (CollectiveReport::non_finite): one rank's overflow,
  // or one faulty rank, spoils nobody's result. True: it is summed, as exact calls and those with a
  // PayloadSource do. A loss scaler needs that, for it looks for infinities in the result.
  bool keep_non_finite = false;

  // augmented only, of float32 tensors (else kUnsupported): a float32 guess of the result with the
  // tensor's full count, independent of this call's loss (last step's result, say). Empty: the
  // owner's own contribution is used. Read until the call completes.
  std::span<const float> control_variate{};

  // Error feedback: what this rank's encoding of earlier calls left out, added to its contribution
  // before that is encoded; on return, what this call left out. float32, as the tensor has to be
  // (kUnsupported for float16 and bfloat16), the input's full count, zeros before the first call,
  // one per tensor. Makes up for the bias of nearest rounding over steps, but single results stay
  // biased, and what packet loss took is not in it. Where the contribution to an owner has weight
  // 0, that owner's part stays in it for a later call. Empty: off.
  std::span<float> residual{};

  // Both or neither: who encodes, sums and decodes in the library's place (leeway/payload.h says
  // for which calls). The tensors then have a size and a type, and their memory is not touched.
  PayloadSource* source = nullptr;
  PayloadSink* sink = nullptr;
};

// Loss and other faults injected on the receiving side of any transport, decided by a keyed hash of
// a packet's address and attempt: the same seed loses the same packets whatever the timing.
// Probabilities are 0 .. 1.
struct FaultOptions {
  double loss = 0.0;  // fraction of datagrams lost
  // Mean length of a loss burst in packets of one flow; 1 = independent losses
  double burst = 1.0;
  double duplicate = 0.0;
  double reorder = 0.0;  // held back behind up to 8 later datagrams
  double corrupt = 0.0;  // one bit flipped
  Duration delay{0};     // added to every datagram
  std::uint64_t seed = 1;
  std::vector<double> link_loss;  // by source rank; overrides `loss` for that link when not empty
  // "src>dst/round/phase/index[,...]": exactly these first attempts are lost; * matches all
  std::string list;

  // True if any fault is injected.
  bool any() const {
    return loss > 0 || duplicate > 0 || reorder > 0 || corrupt > 0 || delay.count() > 0 ||
           !link_loss.empty() || !list.empty();
  }
};
// "loss=0.1,burst=8,dup=0.01,reorder=0.01,corrupt=0.001,delay=5ms,seed=3,list=0>1/*/0/3", every key
// optional.
LEEWAY_EXPORT Result<FaultOptions> parse_faults(std::string_view text);

// What carries the datagrams between ranks.
enum class TransportKind : std::uint8_t {
  // Verbs where all ranks can, else mixed; exact calls over UCX where that has more than TCP
  // between
  // all ranks, and these are not all of one host. With injected faults: udp
  automatic = 0,
  udp,
  verbs,   // InfiniBand and RoCE, unreliable datagrams
  ucx,     // reliable: nothing is lost, whatever the delivery class allows
  inproc,  // threads of one process: Communicator::create_inproc()
  custom,  // the caller's own: Communicator::create(options, transport)
  shm,     // memory of one host: an error unless each rank shares it with each other
  mixed,   // memory to ranks of the same host that share it, udp to all others
};
// The name as parse_transport() reads it; "auto" for automatic. An unknown name is
// kInvalidArgument.
LEEWAY_EXPORT std::string_view to_string(TransportKind kind);
LEEWAY_EXPORT Result<TransportKind> parse_transport(std::string_view name);

// What paces all that a process sends. Of the process: communicators with different settings do not
// share a socket.
enum class CongestionControl : std::uint8_t {
  none = 0,   // as fast as credit and sockets allow: a machine or a network of one's own
  fixed,      // at Options::rate_bits_per_second
  scavenger,  // only what other traffic leaves (LEDBAT++)
  wan,        // lines that lose packets by themselves and that others use
  // wan over UDP, if the group has a rank that is more than 2 ms away from rank 0, or one with a
  // public address; none otherwise. Decided when the group meets, alike on all ranks. The round
  // trip is that of the TCP connection to rank 0; in a store of the caller's, that to the store
  // (Rendezvous::round_trip).
  // Communicator::options() says what came of it.
  automatic,
  fabric,  // a network of one's own with short round trips: short queues. Experimental
};
// The name as parse_congestion_control() reads it: "wan". An unknown name is kInvalidArgument.
LEEWAY_EXPORT std::string_view to_string(CongestionControl control);
LEEWAY_EXPORT Result<CongestionControl> parse_congestion_control(std::string_view name);

// One value per communicator. Zero and empty mean "derive it".
struct Options {
  std::optional<int> rank;        // LEEWAY_RANK, or the launcher's
  std::optional<int> world_size;  // LEEWAY_WORLD_SIZE, or the launcher's
  // LEEWAY_RENDEZVOUS "host:port" of rank 0's TCP listener, "[v6]:port" for IPv6; see also `store`
  std::string rendezvous;
  // LEEWAY_TRANSPORT auto, udp, verbs, ucx, inproc, shm or mixed; equal on all ranks. Not looked at
  // by create(options, transport).
  TransportKind transport = TransportKind::automatic;
  // LEEWAY_MULTICAST: what goes to all ranks alike (the spread half) is sent once, where the
  // network carries it to them. Off by default: switches that do not follow memberships flood
  // multicast to every port.
  bool multicast = false;
  // LEEWAY_BIND: local address for data; default: the route to rank 0
  std::string bind_address;
  // The UDP port, for firewalls; 0: the system chooses. One process of a host has it: of
  // LEEWAY_PORT, local rank r takes port + r times lanes.
  std::uint16_t port = 0;
  // LEEWAY_SECRET_FILE: of `leeway keygen`, readable by its owner alone; it must hold a secret that
  // all ranks have. Whoever does not know it takes no part and ends nothing (ThreatModel.md).
  // Empty, and no certificates either: create() takes those that the environment names. Where it
  // names none, create() fails if an address is neither loopback nor private.
  std::string secret_file;
  // In place of a secret file, for a program that gets its secret by a way of its own: what stands
  // in such a file. Not together with secret_file.
  std::string secret;
  // Of `secret`, on all ranks alike: it proves who takes part in the meeting, and no more. Keys of
  // a pair of processes do not depend on it then, so that communicators with different secrets
  // share sockets and threads. Only where the rendezvous is a member's and keyed itself
  // (TcpRendezvous with a secret): whoever keeps another store could put himself between two ranks.
  bool secret_for_meeting_only = false;
  // LEEWAY_REQUIRE_SEALED: create() fails where a group of several ranks would be plain.
  bool require_sealed = false;
  // LEEWAY_INSECURE: public addresses without a secret all the same, for laboratories.
  bool insecure = false;
  // LEEWAY_TLS_CA, LEEWAY_TLS_CERT, LEEWAY_TLS_KEY: PEM files, in place of a secret file or besides
  // it. Ranks then prove at the rendezvous that an authority has named them members of one job:
  // each certificate has the alternative name URI:urn:leeway:JOB. docs/wide-area.md makes them in
  // five lines. Ranks meet over TCP then, or need a secret file besides.
  std::string tls_ca;
  std::string tls_certificate;
  std::string tls_key;                               // readable by its owner alone
  Duration join_timeout = std::chrono::seconds(60);  // LEEWAY_JOIN_TIMEOUT_MS
  // LEEWAY_PEER_TIMEOUT_MS: a peer of whom something is expected and whose process is silent for so
  // long is dead. Exact calls with it fail then, and lossy ones no longer wait for it. At least 100
  // ms, and eight time-outs of the path; no_deadline: peers are never taken for dead
  Duration peer_timeout = std::chrono::seconds(3);
  // LEEWAY_DATAGRAM_BYTES: largest UDP payload; default: from the path MTU
  std::size_t datagram_bytes = 0;
  // LEEWAY_SOCKET_BUFFER_BYTES: per direction; default 8 MiB, or what the kernel allows
  std::size_t socket_buffer_bytes = 0;
  // LEEWAY_WINDOW_BYTES: in flight to one peer a lane; default: its buffer; paced: 64 MiB for all
  std::size_t window_bytes = 0;
  // LEEWAY_CONGESTION automatic, none, fixed, scavenger, wan or fabric
  CongestionControl congestion = CongestionControl::automatic;
  // LEEWAY_RATE: of CongestionControl::fixed, all peers together. From the environment it asks for
  // that, where LEEWAY_CONGESTION is not set.
  std::uint64_t rate_bits_per_second = 0;
  // LEEWAY_SITE: the name of the site where this rank is, "host" for the host itself. Where all
  // ranks name theirs, and there are equally many in each of several, large all_reduces,
  // reduce_scatters and all_gathers go inside sites and between them: a site of h ranks sends an
  // h-th of the bytes. CollectiveReport::sites says which did, and what that means for estimators.
  // Results are equal on all ranks, and rounded otherwise than without sites. Empty: straight
  // between all ranks, as are calls of what split() and shrink() make.
  std::string site;
  // LEEWAY_LANES, 1 .. 8, equal on all ranks: how many carriers this process has over UDP, each
  // with a socket, a thread and, beside LEEWAY_PORT, the next port of its own. One thread moves
  // some 25 Gb/s. Large all_reduces, all_gathers and broadcasts are cut into as many slices
  // (CollectiveReport::lanes); all else goes by the first lane. Not with multicast; over other
  // transports, or where memory connects all ranks, there is one lane.
  int lanes = 1;
  // LEEWAY_SEED: permutations, stochastic rounding, virtual losses; rank 0's value is used by all
  std::uint64_t seed = 0;
  FaultOptions faults;             // LEEWAY_FAULT
  std::string log_level = "warn";  // LEEWAY_LOG: trace debug info warn error off
  // LEEWAY_METRICS "host:port": where this process answers Prometheus, and `leeway top`, with what
  // its communicators do. Port 0: a free one, which the log tells. Loopback and private addresses;
  // others with "public:" before them, since whoever reaches the port may read. Empty: nowhere. All
  // communicators of a process that name one address share it.
  std::string metrics;
  // LEEWAY_TRACE: a qlog of every datagram (JSON-SEQ, for qvis) goes to this file, until it has 64
  // MiB. With more than one rank, the rank stands before the ending: "run.sqlog" is "run.3.sqlog"
  // of rank 3. Empty: none.
  std::string trace;
  // Groups of different names meet at the same place, also at the same time. Ranks whose names
  // differ wait for each other in vain.
  std::string communicator_name = "world";

  // Where ranks meet, in place of rank 0's TCP listener (leeway/rendezvous.h). Then `rendezvous`
  // only says towards which host the local address for data lies, and may be empty. With port 0 in
  // `rendezvous`, on all ranks, they meet over TCP all the same: rank 0 listens at a port that the
  // system chooses, and the store carries no more than the address.
  std::shared_ptr<Rendezvous> store;
  // Which start of the job this is; part of every key. Ranks that give different ones wait for each
  // other in vain, so a rank that an earlier start left behind cannot join this one. 0 suffices in
  // a store, also where later attempts meet in the store of earlier ones. from_environment() makes
  // it of LEEWAY_RUN_ID, else of torchrun's --rdzv-id or the identifier of an Open MPI job.
  std::uint64_t restart_count = 0;

  // Who knows this process's rank and the number of ranks.
  enum class Membership : std::uint8_t {
    // LEEWAY_RANK and LEEWAY_WORLD_SIZE, or the launcher (torchrun, Open MPI, PMI, Slurm), which
    // may tell the rendezvous as well
    from_environment = 0,
    // The caller, for a group that is not the launcher's: rank and world_size stay unset, and no
    // variable that tells them is read. LEEWAY_RENDEZVOUS is.
    from_caller,
  };
  // Variables of launchers and LEEWAY_*. An empty one, or one that does not parse, is an error.
  LEEWAY_EXPORT static Result<Options> from_environment(
      Membership membership = Membership::from_environment);
};

}  // namespace v0
}  // namespace leeway
