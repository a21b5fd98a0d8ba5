// Keeps the ledgers of all calls that are not over, and assigns each packet that arrives to its
// call.
//
// The book follows the protocol's rules about which packets count. A packet counts once, if it
// comes after its receiver opened the call and before the call returned. Before the opening, at
// most limits::kEarlySlotsPerPeer packets of a sender wait. Whether a packet is late may depend on
// timing, which the book does not model: a flow ended and fell quiet, a deadline came, or every
// sender passed the chunk. A packet in such a case is noted as one that the engine may call late.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/limits.h"
#include "checker/call_ledger.h"
#include "collective/engine.h"

namespace leeway::sim {

class LedgerBook {
 public:
  // Engines by rank; they outlive this object.
  explicit LedgerBook(std::vector<const collective::Engine*> engines);

  int size() const { return static_cast<int>(engines_.size()); }
  const collective::Engine& engine(Rank rank) const { return *engines_[rank]; }
  // Sets the engine of a rank that had none yet.
  void set_engine(Rank rank, const collective::Engine& engine) { engines_[rank] = &engine; }

  // Begins a rank's next call. Returns null if the other ranks submitted a different operation.
  CallLedger* submit(Instant now, Rank rank, const Call& call);
  // Call it when a rank submits `count` messages. Messages have no number among the calls.
  void on_messages(Rank rank, std::size_t count) { ranks_[rank].messages += count; }
  // Returns true if ranks submitted different operations under one number. The engine then rightly
  // refuses packets.
  bool disagreed() const { return disagreed_; }
  // Returns the call that `rank` has open, or null if it has none.
  CallLedger* open_call(Rank rank);
  // Call it when the rank's open call has returned.
  void close(Rank rank, bool succeeded);
  // Closes all calls of a rank that is dead or leaves.
  void kill(Rank rank);
  void pumped(Rank rank);

  // Returns the call of this number, or null if it is over, or not yet submitted by any rank.
  CallLedger* find(std::uint32_t number);

  // Call it before each datagram that a rank reads. The datagrams that a rank reads before
  // on_pumped form a batch. Packets that waited for a call join the batch in which the engine opens
  // the call.
  void begin_datagram(Rank rank);

  // What the book finds out about a packet.
  struct Arrival {
    CallLedger* call = nullptr;  // null if its call is neither open nor waiting
    bool first = false;          // the first copy of a contribution or result
  };
  Arrival on_data(Instant now, Rank rank, Rank from, const wire::DataHeader& header,
                  ByteSpan payload);
  void on_end(Instant now, Rank rank, Rank from, const wire::End& end);
  // Notes what a peer's report says about its calls. A report lists the sender's open calls, so the
  // sender has left every unlisted call below the report's opened_below.
  void on_report(Instant now, Rank rank, Rank from, const wire::Report& report);
  void on_goodbye(Instant now, Rank rank, Rank from);
  void on_lost(Rank from, Rank to, const wire::DataHeader& header);

  // Takes back the last `copies` copies of the latest batch that belong to the open call of `rank`.
  // The call had ended before the engine read them. Returns false if fewer can be taken back. The
  // first packet of the batch is taken back only if the call `failed`, because a failed call may
  // have ended when it was submitted, before the batch came.
  bool take_back(Rank rank, std::uint64_t copies, bool failed = false);

 private:
  struct BatchItem {
    std::uint32_t call;
    wire::FlowKind kind;
    Rank from;
    std::uint32_t index;
    bool first;  // the first copy of its packet
    bool late;   // the engine may call it late
    bool repaired;
    bool ended;  // it ended its flow
    bool opens;  // the first of its batch
    bool parity = false;
    bool follows = false;  // computed from parity
  };
  // Places in which packets wait for an operation to open, one bit each. A set bit means taken.
  using EarlyPlaces = std::uint8_t;
  static_assert(limits::kEarlySlotsPerPeer <= 8 * sizeof(EarlyPlaces));
  // A packet that takes a place until its receive is posted.
  struct EarlyMessage {
    Rank from = 0;
    std::uint32_t place = 0;
    std::uint32_t tag = 0;
    std::uint32_t number = 0;
    PacketIndex index;
  };
  struct RankState {
    std::uint32_t calls = 0;     // submitted
    std::uint32_t opened = 0;    // calls of `calls` that the rank has opened
    bool open = false;           // the last one
    std::uint64_t messages = 0;  // submitted so far
    bool dead = false;
    std::uint64_t batch = 1;
    bool batch_over = false;
    bool batch_empty = true;
    std::vector<BatchItem> items;
    std::vector<EarlyPlaces> early;  // by sender
    std::vector<EarlyMessage> early_messages;
    std::vector<bool> gone;  // peers that said good-bye to it
    // Collectives that a peer reported as failed before this rank opened them, each with the first
    // such peer.
    std::map<std::uint32_t, Rank> failed_before;
  };

  CallLedger& make_call(std::uint32_t number, const Call& call, Rank rank);
  void lay_out(CallLedger& call, Rank rank);
  void open(Instant now, Rank rank, CallLedger& call);
  static void begin_batch(RankState& state);
  std::optional<std::uint32_t> take_place(Rank rank, Rank from);
  void keep_early_message(Rank rank, Rank from, const wire::DataHeader& header);
  bool keep_early(Rank rank, Rank from, CallLedger& call, const wire::DataHeader& header);
  void count(Instant now, Rank rank, Rank from, CallLedger& call, const wire::DataHeader& header);
  std::uint64_t seed(Rank rank) const;
  void follow(Rank rank, Rank from, CallLedger& call, wire::FlowKind kind, std::uint32_t code,
              bool late);
  bool may_be_late(Instant now, Rank rank, const CallLedger& call, const FlowLedger& flow,
                   const wire::DataHeader& header) const;
  void note_progress(Rank rank, Rank from, CallLedger& call, const wire::DataHeader& header);
  void stage(Rank rank, Rank from, CallLedger& call, std::uint32_t index, ByteSpan payload);
  void mark_left(Instant now, Rank rank, Rank from, CallLedger& call);
  void mark_over(CallLedger& call, Rank rank);
  void drop_finished();

  std::vector<const collective::Engine*> engines_;
  std::vector<RankState> ranks_;
  std::deque<std::unique_ptr<CallLedger>> calls_;
  std::vector<std::byte> encoded_;
  std::uint32_t first_ = 0;  // number of calls_.front()
  bool disagreed_ = false;
  std::vector<std::unique_ptr<CallLedger>> spare_;
};

}  // namespace leeway::sim
