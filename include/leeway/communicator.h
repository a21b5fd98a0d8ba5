// The communicator: a fixed group of ranks and the collective operations between them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "leeway/export.h"
#include "leeway/message.h"
#include "leeway/options.h"
#include "leeway/report.h"
#include "leeway/shapes.h"
#include "leeway/status.h"
#include "leeway/transport.h"
#include "leeway/types.h"

namespace leeway {

namespace internal {
class Channels;
class PendingState;
struct WorkState;
}  // namespace internal

inline namespace v0 {

// Handle of an operation in flight. Movable; dropping it does not cancel the operation, but the
// buffers must stay valid until it is done. Thread-safe for one
// waiter at a time; on_done() from any thread.
class [[nodiscard]] LEEWAY_EXPORT Work {
 public:
  // No operation.
  Work() = default;
  // False for a Work that was default-constructed or moved from.
  bool valid() const { return state_ != nullptr; }
  // True once wait() would return at once. Drives nothing: a background thread does, or wait(). In
  // a forked child all that was not done before is over, here and below: wait() fails there.
  bool done() const;
  // Drives progress on the calling thread until the operation is done, then returns its outcome.
  // Repeated calls return the same outcome. In a callback of on_done() only what is done already
  // can be waited for; kInvalidArgument otherwise.
  Result<CollectiveReport> wait();
  // As wait(), for so long at most: true once it is done. A caller that must look at something else
  // now and then, such as an interpreter at its signals, asks again and again.
  bool wait_for(Duration patience);
  // As done(), but takes part in the work first, if no other thread is at it. Never blocks.
  bool test();

  // Calls `callback` once, when the operation is done: on whichever thread finds that out, or at
  // once where it is done already. The callback should do no more than queue what is to happen. It
  // may start operations and destroy communicators, which are then aborted; it must not block, and
  // blocking calls in it are kInvalidArgument. A wait() on another thread may return before it is
  // called. Without an operation it is never called.
  void on_done(std::function<void()> callback);

  // Drives until all are done; the first error in their order, if any. Works without an operation
  // are passed over, here and below.
  static Status wait_all(std::span<Work> works);
  // Drives until one is done, and returns its index: the lowest if several are. works.size() where
  // none has an operation.
  static std::size_t wait_any(std::span<Work> works);

 private:
  friend class Communicator;
  explicit Work(std::shared_ptr<internal::WorkState> state) : state_(std::move(state)) {}
  std::shared_ptr<internal::WorkState> state_;
};

// Memory that calls send from again and again, known to what carries them until release(), or the
// end of this object or of the communicator. That must come before the end of the memory (the
// device would go on reading the pages that were there), and not while a call uses it. For the
// thread that owns the communicator.
class [[nodiscard]] LEEWAY_EXPORT MemoryRegistration {
 public:
  // Of no memory.
  MemoryRegistration() = default;
  // The registration changes its owner. What this object held before is released.
  MemoryRegistration(MemoryRegistration&& other) noexcept { *this = std::move(other); }
  MemoryRegistration& operator=(MemoryRegistration&& other) noexcept;
  // Ends the registration; does nothing the second time.
  ~MemoryRegistration() { release(); }
  void release();

 private:
  friend class Communicator;
  std::weak_ptr<internal::Channels> channels_;
  ByteSpan memory_;
};

// Memory of Communicator::allocate(). Movable. Goes with this object, which may outlive its
// communicator; not while a call uses it.
class [[nodiscard]] LEEWAY_EXPORT Allocation {
 public:
  // None.
  Allocation() = default;
  // Page-aligned, zeros at first.
  std::byte* data() const { return memory_.data(); }
  std::size_t size() const { return memory_.size(); }  // as asked for
  // The same as elements.
  template <typename T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(memory_.data()), memory_.size() / sizeof(T)};
  }
  // Whether all ranks map it. Calls work all the same where they do not.
  bool direct() const { return direct_; }

 private:
  friend class Communicator;
  std::shared_ptr<void> owner_;
  MutableByteSpan memory_;
  bool direct_ = false;
};

class Communicator;

// A communicator that is being made in the background. Movable. Thread-safe, but for the destructor
// and moves.
class [[nodiscard]] LEEWAY_EXPORT PendingCommunicator {
 public:
  // Of no call.
  PendingCommunicator() = default;
  PendingCommunicator(PendingCommunicator&&) noexcept = default;
  // What this object held before is taken back.
  PendingCommunicator& operator=(PendingCommunicator&& other) noexcept;
  // Takes the call back if it is not done. Returns when no thread is at it any more: within two
  // tenths of a second where the rendezvous answers.
  ~PendingCommunicator();
  // False for one that was default-constructed or moved from.
  bool valid() const { return state_ != nullptr; }
  // True once wait() would return at once; a load.
  bool done() const;
  // Calls `callback` once, when the call is done, on the thread that finds that out; or at once. As
  // Work::on_done().
  void on_done(std::function<void()> callback);
  // What came of it. Hands the communicator over: kInvalidArgument the second time, where there is
  // no call, and in a callback before it is done.
  Result<std::unique_ptr<Communicator>> wait();
  // Takes the call back: it is done now, with kCancelled. Ranks that wait for this one are told,
  // and fail.
  void abort();

 private:
  friend class Communicator;
  explicit PendingCommunicator(std::shared_ptr<internal::PendingState> state)
      : state_(std::move(state)) {}
  std::shared_ptr<internal::PendingState> state_;
};

// Every rank must issue collectives of one communicator in the same order (send/recv: per ordered
// pair of ranks). Calls may be made from several threads; each call is atomic. Blocking twins
// submit and wait. Counts are elements. An operation whose arguments are wrong returns
// kInvalidArgument or kUnsupported before anything is sent; one rank sends another at most 2^22
// datagrams in one operation (kResourceExhausted). Input and output have no memory in common, but
// where an operation says how it works in place. The output of one that fails may hold anything.
class LEEWAY_EXPORT Communicator {
 public:
  // Joins the group: blocks until all ranks met at the rendezvous, or fails within
  // options.join_timeout naming the ranks that are missing.
  static Result<std::unique_ptr<Communicator>> create(const Options& options);
  // The same in the background, on a thread of its own.
  static PendingCommunicator create_async(const Options& options);

  // The same over a transport of the caller's own, which must be connected already (transport.h).
  // All ranks use this call. They still meet at options.rendezvous, to agree on what a group must
  // agree on, and prove that every rank hears every other. options.transport, bind_address and
  // socket_buffer_bytes are not looked at; injected faults, window_bytes and multicast are.
  // Destroys the transport where it fails: kInvalidArgument (none, or its limits are too small),
  // kMismatch (ranks bring transports of different names), and what create(options) fails with.
  static Result<std::unique_ptr<Communicator>> create(const Options& options,
                                                      std::unique_ptr<DatagramTransport> transport);

  // `size` communicators connected inside this process, for tests, examples and single-node use:
  // rank i is element i.
  static Result<std::vector<std::unique_ptr<Communicator>>> create_inproc(
      int size, const Options& options = {});

  // Leaves the group, within a few round trips where all peers answer. Operations under way have 64
  // time-outs of the slowest link to end, and fail with kCancelled then. Peers that still lack
  // something are served as long, or four seconds if that is longer; then good-bye is said until
  // each has answered, to a dead one for two seconds, or twelve times where that takes longer.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // A new communicator of the ranks that give the same color, in the order of their keys, and of
  // their ranks where keys are equal. All ranks of this one call it, in the order of their
  // collectives. It shares sockets, thread and paths with this one, costs one round trip, and
  // outlives it. Null where the color is kNoColor. Errors are those of an exact collective with the
  // deadline options().join_timeout; kMismatch where other ranks call something else.
  static constexpr int kNoColor = -1;
  Result<std::unique_ptr<Communicator>> split(int color, int key);
  // Done when all ranks have called it, or split(). Needs no thread. May outlive this communicator.
  PendingCommunicator split_async(int color, int key);

  // A new communicator without the excluded ranks, which do not call: they may be dead. All others
  // call with the same ranks, in any order. Works after abort() too. kInvalidArgument: a rank that
  // does not exist, this rank itself, or all. kUnavailable: not all others called with the same
  // ranks within options().join_timeout; the text names the silent by their new numbers.
  Result<std::unique_ptr<Communicator>> shrink(std::span<const Rank> excluded);
  // The same in the background, on a thread of its own. May outlive this communicator.
  PendingCommunicator shrink_async(std::span<const Rank> excluded);

  // At once, and waiting for nobody: everything in flight fails with kCancelled, its memory is
  // free, and so fails what is asked for later. Peers are told once. Any thread, also one that is
  // not in a call. Only the destructor, shrink() and the getters have a meaning afterwards.
  void abort();

  // kOk while all is well. Else why calls fail: kPeerLost (a peer is dead, or gave this rank up),
  // kCancelled (abort()), or what the transport died of. Any thread; state() is one atomic load.
  StatusCode state() const;
  // The same, with its text.
  Status status() const;
  // Whether a peer has destroyed or aborted its communicator, or is dead. What was sent to it is
  // done then, taken or not; an exact receive from it fails. Any thread; one atomic load.
  bool peer_left() const;

  Rank rank() const;                   // of this process, 0 .. size() - 1
  int size() const;                    // ranks of the group
  const Options& options() const;      // as given to create()
  std::size_t datagram_bytes() const;  // largest datagram sent, agreed by all ranks
  // What carries the datagrams, and what carries calls that are exact in both halves: the same, or
  // ucx beside it. Never automatic; custom over the caller's own; shm where all peers are reached
  // through memory, mixed where some are.
  TransportKind transport() const;
  TransportKind exact_transport() const;

  // In place: data becomes the reduction over all ranks.
  Result<CollectiveReport> all_reduce(TensorView data, const CollectiveOptions& options = {});
  Work all_reduce_async(TensorView data, const CollectiveOptions& options = {});
  // input.count == output.count; may be the same memory, may not partly overlap.
  Result<CollectiveReport> all_reduce(ConstTensorView input, TensorView output,
                                      const CollectiveOptions& options = {});
  Work all_reduce_async(ConstTensorView input, TensorView output,
                        const CollectiveOptions& options = {});

  // input.count == size * output.count; rank i receives the reduction of block i. In place: output
  // is this rank's own block of input.
  Result<CollectiveReport> reduce_scatter(ConstTensorView input, TensorView output,
                                          const CollectiveOptions& options = {});
  Work reduce_scatter_async(ConstTensorView input, TensorView output,
                            const CollectiveOptions& options = {});
  // With blocks of different lengths in input; output.count is that of this rank's own. All ranks
  // give the same counts, displacements may differ. kMismatch names ranks that do not.
  Result<CollectiveReport> reduce_scatter(ConstTensorView input, const Blocks& blocks,
                                          TensorView output, const CollectiveOptions& options = {});
  Work reduce_scatter_async(ConstTensorView input, const Blocks& blocks, TensorView output,
                            const CollectiveOptions& options = {});

  // output.count == size * input.count; block i comes from rank i. Exact only (lossy spreads:
  // Replica). In place: input is this rank's own block of output.
  Result<CollectiveReport> all_gather(ConstTensorView input, TensorView output,
                                      const CollectiveOptions& options = {});
  Work all_gather_async(ConstTensorView input, TensorView output,
                        const CollectiveOptions& options = {});
  // With blocks of different lengths in output, as reduce_scatter.
  Result<CollectiveReport> all_gather(ConstTensorView input, TensorView output,
                                      const Blocks& blocks, const CollectiveOptions& options = {});
  Work all_gather_async(ConstTensorView input, TensorView output, const Blocks& blocks,
                        const CollectiveOptions& options = {});

  // On return all ranks hold the root's data. Counts and types must agree.
  Result<CollectiveReport> broadcast(TensorView data, Rank root,
                                     const CollectiveOptions& options = {});
  Work broadcast_async(TensorView data, Rank root, const CollectiveOptions& options = {});

  // output is used on the root only.
  Result<CollectiveReport> reduce(ConstTensorView input, TensorView output, Rank root,
                                  const CollectiveOptions& options = {});
  Work reduce_async(ConstTensorView input, TensorView output, Rank root,
                    const CollectiveOptions& options = {});

  // Root's output.count == size * input.count. In place: input is the root's own block of output.
  Result<CollectiveReport> gather(ConstTensorView input, TensorView output, Rank root,
                                  const CollectiveOptions& options = {});
  Work gather_async(ConstTensorView input, TensorView output, Rank root,
                    const CollectiveOptions& options = {});

  // Root's input.count == size * output.count. In place: output is the root's own block of input.
  Result<CollectiveReport> scatter(ConstTensorView input, TensorView output, Rank root,
                                   const CollectiveOptions& options = {});
  Work scatter_async(ConstTensorView input, TensorView output, Rank root,
                     const CollectiveOptions& options = {});

  // Both hold size blocks of equal length; block j of rank i becomes block i of rank j.
  Result<CollectiveReport> all_to_all(ConstTensorView input, TensorView output,
                                      const CollectiveOptions& options = {});
  Work all_to_all_async(ConstTensorView input, TensorView output,
                        const CollectiveOptions& options = {});
  // With blocks of different lengths: block j of input goes to rank j, block i of output comes from
  // rank i. Each rank gives its own counts. Where a sender and its receiver differ about a block,
  // both fail with kMismatch naming ranks and counts.
  Result<CollectiveReport> all_to_all(ConstTensorView input, const Blocks& input_blocks,
                                      TensorView output, const Blocks& output_blocks,
                                      const CollectiveOptions& options = {});
  Work all_to_all_async(ConstTensorView input, const Blocks& input_blocks, TensorView output,
                        const Blocks& output_blocks, const CollectiveOptions& options = {});

  // Matched per ordered pair and options.tag in order of issue; types must agree. output.count is
  // the most that a receive takes: CollectiveReport::messages says how many elements came, from
  // whom. A longer message fails on both sides (kMismatch), unless its sender is done: a single
  // send of up to 64 KiB is when it has been copied. So is one that its receiver gave up. A receive
  // from kAnyRank takes the next message of its tag from any rank; receives of that tag that are
  // issued after it wait until it has one. A receive from a rank has its message also where its
  // deadline came first: the next one takes the message after. One from kAnyRank that failed before
  // a message had come has none, nor has one that waited behind it: what comes later is the next
  // receive's.
  Result<CollectiveReport> send(ConstTensorView input, Rank peer,
                                const CollectiveOptions& options = {});
  Work send_async(ConstTensorView input, Rank peer, const CollectiveOptions& options = {});
  Result<CollectiveReport> recv(TensorView output, Rank peer,
                                const CollectiveOptions& options = {});
  Work recv_async(TensorView output, Rank peer, const CollectiveOptions& options = {});

  // Sends and receives of any number and order as one operation: done when all are. None waits for
  // another, but those of one pair and tag are matched in the order given here. What the rank sends
  // itself is copied; it needs a send and a receive in the same call. Fails when all messages are
  // done or the deadline has come, with the first failure, or naming the rank that owes most. The
  // span is copied; options.tag is not looked at.
  Result<CollectiveReport> exchange(std::span<const Message> messages,
                                    const CollectiveOptions& options = {});
  Work exchange_async(std::span<const Message> messages, const CollectiveOptions& options = {});

  // Returns when all ranks have called it; kDeadlineExceeded names a rank that has not.
  Result<CollectiveReport> barrier(Duration deadline = std::chrono::seconds(60));
  Work barrier_async(Duration deadline = std::chrono::seconds(60));

  // Gradients and parameters, say. Over verbs the device then gathers datagrams from this memory;
  // other memory is copied once on its way (counter datagrams_copied). Does nothing over other
  // transports. kResourceExhausted names the limit on locked memory and how to raise it; calls work
  // all the same. Any number of spans of any size. Thread-safe.
  Result<MemoryRegistration> register_memory(ByteSpan memory);

  // Memory for tensors that all ranks of a host can read of each other: a large exact all_reduce
  // between such tensors copies nothing but the result. All ranks call it with the same size, in
  // the order of their collectives. Where not all ranks share memory, or there is no room for it,
  // it is ordinary memory. Errors: kInvalidArgument (no bytes), and those of an exact collective
  // with the deadline options().join_timeout.
  Result<Allocation> allocate(std::size_t bytes);

  // A payload source has encoded a chunk, or a sink has used one (leeway/payload.h): whoever drives
  // this communicator asks them. Any thread, at most as long as this object lives; takes a
  // microsecond or so, and may be called as often as one likes.
  void notify_payload();

  // Counters since creation, one row a name: datagrams refused by reason, rounds, repairs, ...
  // Thread-safe.
  std::vector<std::pair<std::string, std::uint64_t>> counters() const;

 private:
  friend class Replica;
  struct Shrinking;
  Communicator(const Options& options, std::unique_ptr<internal::Channels> channels);
  static Result<std::unique_ptr<Communicator>> create(const Options& options, std::stop_token stop);
  Result<Shrinking> plan_shrink(std::span<const Rank> excluded) const;
  static Result<std::unique_ptr<Communicator>> shrink(const Shrinking& plan, std::stop_token stop);
  Options options_;
  std::shared_ptr<internal::Channels> channels_;
};

}  // namespace v0
}  // namespace leeway
