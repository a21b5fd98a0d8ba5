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

// Handle of an operation in flight. Movable. Dropping it does not cancel the operation, but the
// buffers must stay valid until the operation is done. Thread-safe for one waiter at a time;
// on_done() may be called from any thread.
class [[nodiscard]] LEEWAY_EXPORT Work {
 public:
  // A handle without an operation.
  Work() = default;
  // Returns false for a Work that was default-constructed or moved from.
  bool valid() const { return state_ != nullptr; }
  // Returns true if wait() would return at once. This call does not drive progress; a background
  // thread or wait() does. In a forked child, operations that were not done before the fork count
  // as done, here and in the functions below, and wait() fails.
  bool done() const;
  // Drives progress on the calling thread until the operation is done, then returns its outcome.
  // Repeated calls return the same outcome. A callback of on_done() can wait only for operations
  // that are done already; kInvalidArgument otherwise.
  Result<CollectiveReport> wait();
  // Like wait(), but for `patience` at most. Returns true if the operation is done. For a caller
  // that must look at something else now and then, such as an interpreter at its signals.
  bool wait_for(Duration patience);
  // Like done(), but takes a step of progress first, if no other thread drives. Never blocks.
  bool test();

  // Calls `callback` once, when the operation is done: at once if it is done already, else on the
  // thread that finds it done. The callback should only queue further work. It may start operations
  // and destroy communicators, which are then aborted. It must not block; blocking calls in it are
  // kInvalidArgument. A wait() on another thread may return before the callback runs. If this
  // handle has no operation, the callback is never called.
  void on_done(std::function<void()> callback);

  // Drives progress until all `works` are done. Returns the first error, in the order of `works`,
  // if any. Handles without an operation are skipped.
  static Status wait_all(std::span<Work> works);
  // Drives progress until one of `works` is done, and returns its index: the lowest if several are
  // done. Returns works.size() if no handle has an operation.
  static std::size_t wait_any(std::span<Work> works);

 private:
  friend class Communicator;
  explicit Work(std::shared_ptr<internal::WorkState> state) : state_(std::move(state)) {}
  std::shared_ptr<internal::WorkState> state_;
};

// Registration of memory that calls send from again and again (Communicator::register_memory). It
// lasts until release(), or until this object or the communicator is destroyed. It must end before
// the memory is freed, because the device would go on reading the old pages. It must not end while
// a call uses the memory. For one thread at a time.
class [[nodiscard]] LEEWAY_EXPORT MemoryRegistration {
 public:
  // A handle without a registration.
  MemoryRegistration() = default;
  // Moves the registration to this object. The registration that this object held before is
  // released.
  MemoryRegistration(MemoryRegistration&& other) noexcept { *this = std::move(other); }
  MemoryRegistration& operator=(MemoryRegistration&& other) noexcept;
  // Ends the registration. A second call does nothing.
  ~MemoryRegistration() { release(); }
  void release();

 private:
  friend class Communicator;
  std::weak_ptr<internal::Channels> channels_;
  ByteSpan memory_;
};

// Memory from Communicator::allocate(). Movable. It is freed with this object, which may outlive
// its communicator, but must not be destroyed while a call uses the memory.
class [[nodiscard]] LEEWAY_EXPORT Allocation {
 public:
  // An object without memory.
  Allocation() = default;
  // Page-aligned memory, zeros at first.
  std::byte* data() const { return memory_.data(); }
  std::size_t size() const { return memory_.size(); }  // as asked for
  // The same memory as elements of T.
  template <typename T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(memory_.data()), memory_.size() / sizeof(T)};
  }
  // Returns true if all ranks map the memory, so that calls copy less. Otherwise calls work, too.
  bool direct() const { return direct_; }

 private:
  friend class Communicator;
  std::shared_ptr<void> owner_;
  MutableByteSpan memory_;
  bool direct_ = false;
};

class Communicator;

// A communicator that is being made in the background. Movable. Thread-safe, except for the
// destructor and moves.
class [[nodiscard]] LEEWAY_EXPORT PendingCommunicator {
 public:
  // A handle that stands for no call.
  PendingCommunicator() = default;
  PendingCommunicator(PendingCommunicator&&) noexcept = default;
  // Moves the call to this object. The call that this object held before is aborted if it is not
  // done.
  PendingCommunicator& operator=(PendingCommunicator&& other) noexcept;
  // Aborts the call if it is not done. Returns when no thread works on it any more: within 0.2 s if
  // the rendezvous answers.
  ~PendingCommunicator();
  // Returns false for a handle that was default-constructed or moved from.
  bool valid() const { return state_ != nullptr; }
  // Returns true if wait() would return at once. Costs one atomic load.
  bool done() const;
  // Runs `callback` once, when the pending call is done: at once if it is done already, else on the
  // thread that finds it done. The rules of Work::on_done() hold.
  void on_done(std::function<void()> callback);
  // Waits until the pending call is done, and hands over the communicator or the error. Returns
  // kInvalidArgument if the outcome was handed over before, if there is no call, or in a callback
  // if the call is not done.
  Result<std::unique_ptr<Communicator>> wait();
  // Aborts the pending call. The call is then done, and its outcome is kCancelled. Ranks that wait
  // for this rank are told, and fail.
  void abort();

 private:
  friend class Communicator;
  explicit PendingCommunicator(std::shared_ptr<internal::PendingState> state)
      : state_(std::move(state)) {}
  std::shared_ptr<internal::PendingState> state_;
};

// A fixed group of ranks. Every rank must issue the collectives of one communicator in the same
// order (send/recv: per ordered pair of ranks). Calls may come from several threads; each call
// takes its place in the order as a whole. The blocking functions submit and wait; their _async
// twins only submit. Counts are elements.
//
// An operation whose arguments are wrong returns kInvalidArgument or kUnsupported before anything
// is sent. An operation in which one rank would send another more than 2^22 datagrams returns
// kResourceExhausted. Input and output must not overlap, except where an operation says how it
// works in place. The output of an operation that fails may hold anything.
class LEEWAY_EXPORT Communicator {
 public:
  // Joins the group. Blocks until all ranks have met at the rendezvous, or fails within
  // options.join_timeout, naming the ranks that are missing.
  static Result<std::unique_ptr<Communicator>> create(const Options& options);
  // Like create(options), but in the background, on a thread of its own.
  static PendingCommunicator create_async(const Options& options);

  // Like create(options), but over a transport of the caller's, which must be connected already
  // (transport.h). All ranks must use this function. They still meet at options.rendezvous, to
  // agree on the settings that must be equal in a group, and prove that every rank hears every
  // other. options.transport, bind_address and socket_buffer_bytes are ignored; injected faults,
  // window_bytes and multicast apply. If the function fails, it destroys the transport. Errors:
  // kInvalidArgument (no transport, or its limits are too small), kMismatch (ranks bring transports
  // of different names), and those of create(options).
  static Result<std::unique_ptr<Communicator>> create(const Options& options,
                                                      std::unique_ptr<DatagramTransport> transport);

  // Makes `size` communicators connected inside this process, for tests, examples and single-node
  // use. Element i is rank i.
  static Result<std::vector<std::unique_ptr<Communicator>>> create_inproc(
      int size, const Options& options = {});

  // Leaves the group, within a few round trips if all peers answer. Operations in flight have 64
  // retransmission time-outs of the slowest link to finish; then they fail with kCancelled. Next,
  // peers that still lack data are served for 64 time-outs: at least 4 s, and at most the longer of
  // 5 s and 16 time-outs. Last, a good-bye is sent to each peer until it answers, but to a dead
  // peer for 2 s only, or 12 times if that takes longer.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Makes a communicator of the ranks that give the same color, ordered by key, and by rank where
  // keys are equal. All ranks of this communicator must call it, at the same place among their
  // collectives. The new communicator shares sockets, thread and paths with this one, costs one
  // round trip, and may outlive this one. The result is null if the color is kNoColor. Errors are
  // those of an exact collective with the deadline options().join_timeout; kMismatch if other ranks
  // call something else.
  static constexpr int kNoColor = -1;
  Result<std::unique_ptr<Communicator>> split(int color, int key);
  // Like split(), but does not block. The call is done when all ranks have called split() or
  // split_async(). It needs no thread, and may outlive this communicator.
  PendingCommunicator split_async(int color, int key);

  // Makes a communicator without the excluded ranks, which need not call this function and may be
  // dead. All other ranks call it with the same excluded ranks, in any order. Works after abort()
  // too. Returns kInvalidArgument if an excluded rank does not exist or is this rank itself, or if
  // all are excluded. Returns kUnavailable if not all other ranks called with the same excluded
  // ranks within options().join_timeout; the text names the silent ranks by their new numbers.
  Result<std::unique_ptr<Communicator>> shrink(std::span<const Rank> excluded);
  // Like shrink(), but in the background, on a thread of its own. The call may outlive this
  // communicator.
  PendingCommunicator shrink_async(std::span<const Rank> excluded);

  // Aborts at once, without waiting for other ranks. Operations in flight fail with kCancelled, and
  // their buffers are free for the caller; later calls fail too. Peers are told once. May be called
  // from any thread, also while other threads are in calls. Afterwards only the destructor,
  // shrink() and the getters may be used.
  void abort();

  // Returns kOk, or the reason why calls fail: kPeerLost (a peer is dead, or counts this rank as
  // dead), kCancelled (abort()), or the error that ended the transport. May be called from any
  // thread; costs one atomic load.
  StatusCode state() const;
  // Like state(), with a text.
  Status status() const;
  // Returns true if a peer has left (destroyed or aborted its communicator) or is dead. A send to a
  // peer that has left succeeds, whether the peer took it or not; a send to a dead peer fails.
  // Exact receives from peers that have left or are dead fail. May be called from any thread.
  bool peer_left() const;

  Rank rank() const;                   // rank of this process, 0 .. size() - 1
  int size() const;                    // number of ranks in the group
  const Options& options() const;      // as given to create(); `congestion` as resolved
  std::size_t datagram_bytes() const;  // largest datagram sent; all ranks agree on it
  // Returns the transport in use, never `automatic`. `custom` is the caller's own. `shm` means that
  // memory reaches all peers, `mixed` that it reaches some.
  TransportKind transport() const;

  // Reduces in place: data becomes the reduction over all ranks.
  Result<CollectiveReport> all_reduce(TensorView data, const CollectiveOptions& options = {});
  Work all_reduce_async(TensorView data, const CollectiveOptions& options = {});
  // input.count == output.count. Input and output may be the same memory, but must not overlap in
  // part.
  Result<CollectiveReport> all_reduce(ConstTensorView input, TensorView output,
                                      const CollectiveOptions& options = {});
  Work all_reduce_async(ConstTensorView input, TensorView output,
                        const CollectiveOptions& options = {});

  // input.count == size * output.count; rank i receives the reduction of block i. To work in place,
  // output is this rank's own block of input.
  Result<CollectiveReport> reduce_scatter(ConstTensorView input, TensorView output,
                                          const CollectiveOptions& options = {});
  Work reduce_scatter_async(ConstTensorView input, TensorView output,
                            const CollectiveOptions& options = {});
  // Like the function above, but the blocks of input have different lengths; output.count is the
  // length of this rank's own block. All ranks must give the same counts; displacements may differ.
  // kMismatch names ranks whose counts differ.
  Result<CollectiveReport> reduce_scatter(ConstTensorView input, const Blocks& blocks,
                                          TensorView output, const CollectiveOptions& options = {});
  Work reduce_scatter_async(ConstTensorView input, const Blocks& blocks, TensorView output,
                            const CollectiveOptions& options = {});

  // output.count == size * input.count; block i comes from rank i. Delivery must be exact; Replica
  // has lossy all-gathers, of parameters. To work in place, input is this rank's own block of
  // output.
  Result<CollectiveReport> all_gather(ConstTensorView input, TensorView output,
                                      const CollectiveOptions& options = {});
  Work all_gather_async(ConstTensorView input, TensorView output,
                        const CollectiveOptions& options = {});
  // Like the function above, but the blocks of output have different lengths; input.count is the
  // length of this rank's own block. Counts and displacements have the rules of reduce_scatter().
  Result<CollectiveReport> all_gather(ConstTensorView input, TensorView output,
                                      const Blocks& blocks, const CollectiveOptions& options = {});
  Work all_gather_async(ConstTensorView input, TensorView output, const Blocks& blocks,
                        const CollectiveOptions& options = {});

  // On return all ranks hold the root's data. Counts and types must agree.
  Result<CollectiveReport> broadcast(TensorView data, Rank root,
                                     const CollectiveOptions& options = {});
  Work broadcast_async(TensorView data, Rank root, const CollectiveOptions& options = {});

  // The root's output becomes the reduction; the outputs of other ranks are not used.
  Result<CollectiveReport> reduce(ConstTensorView input, TensorView output, Rank root,
                                  const CollectiveOptions& options = {});
  Work reduce_async(ConstTensorView input, TensorView output, Rank root,
                    const CollectiveOptions& options = {});

  // Block i of the root's output comes from rank i; its output.count == size * input.count. To work
  // in place, the root's input is its own block of output.
  Result<CollectiveReport> gather(ConstTensorView input, TensorView output, Rank root,
                                  const CollectiveOptions& options = {});
  Work gather_async(ConstTensorView input, TensorView output, Rank root,
                    const CollectiveOptions& options = {});

  // Block i of the root's input goes to rank i; its input.count == size * output.count. To work in
  // place, the root's output is its own block of input.
  Result<CollectiveReport> scatter(ConstTensorView input, TensorView output, Rank root,
                                   const CollectiveOptions& options = {});
  Work scatter_async(ConstTensorView input, TensorView output, Rank root,
                     const CollectiveOptions& options = {});

  // Input and output each have size() blocks of equal length; block j of rank i becomes block i of
  // rank j.
  Result<CollectiveReport> all_to_all(ConstTensorView input, TensorView output,
                                      const CollectiveOptions& options = {});
  Work all_to_all_async(ConstTensorView input, TensorView output,
                        const CollectiveOptions& options = {});
  // Like the function above, but blocks have different lengths: block j of input goes to rank j,
  // block i of output comes from rank i. Each rank gives its own counts. If a sender and its
  // receiver disagree about a block, both fail with kMismatch, naming ranks and counts.
  Result<CollectiveReport> all_to_all(ConstTensorView input, const Blocks& input_blocks,
                                      TensorView output, const Blocks& output_blocks,
                                      const CollectiveOptions& options = {});
  Work all_to_all_async(ConstTensorView input, const Blocks& input_blocks, TensorView output,
                        const Blocks& output_blocks, const CollectiveOptions& options = {});

  // A send is matched with a receive of the same ordered pair of ranks and options.tag, in order of
  // issue; types must agree. A receive accepts at most output.count elements:
  // CollectiveReport::messages says how many elements came and from which rank. A longer message
  // fails on both sides (kMismatch), unless its send is done already.
  //
  // A single send of up to 64 KiB is done when its data has been copied, unless 64 such sends are
  // still on their way to that rank. Its message arrives even if the receive comes after the send's
  // deadline. A send whose receiver gave up is done, too.
  //
  // A receive from kAnyRank takes the next message of its tag from any rank. Later receives of the
  // same tag wait until it has a message. If a receive from one rank fails by its deadline, its
  // message counts as received: the next receive takes the message after it. If a receive from
  // kAnyRank fails before a message has come, no message counts as received: a later message is for
  // the next receive. A receive that fails while it waits behind one from kAnyRank takes no message
  // either.
  Result<CollectiveReport> send(ConstTensorView input, Rank peer,
                                const CollectiveOptions& options = {});
  Work send_async(ConstTensorView input, Rank peer, const CollectiveOptions& options = {});
  Result<CollectiveReport> recv(TensorView output, Rank peer,
                                const CollectiveOptions& options = {});
  Work recv_async(TensorView output, Rank peer, const CollectiveOptions& options = {});

  // Runs any number of sends and receives as one operation, which is done when all of them are. No
  // message waits for another, but messages of one pair of ranks and one tag are matched in the
  // order given here. A message from this rank to itself is copied; it needs a send and a receive
  // in the same call. If a message fails, the operation ends when all others are done or the
  // deadline has come, and returns the first failure. If only the deadline ends it, the error names
  // the rank with the most unfinished messages. The span is copied; options.tag is ignored.
  Result<CollectiveReport> exchange(std::span<const Message> messages,
                                    const CollectiveOptions& options = {});
  Work exchange_async(std::span<const Message> messages, const CollectiveOptions& options = {});

  // Returns when all ranks have called barrier(). The text of kDeadlineExceeded names a rank that
  // has not called it.
  Result<CollectiveReport> barrier(Duration deadline = std::chrono::seconds(60));
  Work barrier_async(Duration deadline = std::chrono::seconds(60));

  // Registers memory that calls send from, such as gradients and parameters. Over verbs the device
  // then gathers datagrams from this memory; other memory is copied once on its way (counter
  // datagrams_copied). Over other transports registration does nothing. Any number of spans of any
  // size may be registered. kResourceExhausted names the limit on locked memory and how to raise
  // it; calls work all the same. Thread-safe.
  Result<MemoryRegistration> register_memory(ByteSpan memory);

  // Allocates memory for tensors, which the other ranks of a host can read. A large exact
  // all_reduce between such tensors copies only the result. All ranks must call it with the same
  // size, at the same place among their collectives. The result is ordinary memory if not all ranks
  // share memory, if there is no room for it, and in communicators of split() and shrink(). Groups
  // that do not share memory (they have no counter near_calls) do not check the sizes. Errors:
  // kInvalidArgument (no bytes), and those of an exact collective with the deadline
  // options().join_timeout.
  Result<Allocation> allocate(std::size_t bytes);

  // Tells the library that a payload source has encoded a chunk, or that a sink has used one
  // (leeway/payload.h): the thread that drives this communicator then asks source and sink. May be
  // called from any thread while this object lives, as often as needed; takes about a microsecond.
  void notify_payload();

  // Counters since creation, as pairs of name and value: datagrams refused by reason, rounds,
  // repairs, ... Thread-safe.
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
