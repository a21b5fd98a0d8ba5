// Finds the longest datagram of each path of a process (WIRE 10). Sends and answers probes, lets
// the ranks of a communicator agree on a length ("size"), and cuts datagrams that are too long for
// their path. The search itself is in protocol/path_size.h.
//
// Drivers use the public functions down to counters(); a node calls the others.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "collective/answer_queue.h"
#include "collective/former_members.h"
#include "collective/member.h"
#include "collective/paths.h"
#include "protocol/train_buffer.h"

namespace leeway::collective {

struct SizeCounters {
  std::uint64_t probes_sent = 0;
  std::uint64_t datagrams_cut = 0;  // sent in pieces
  std::uint64_t pieces_joined = 0;  // datagrams put together
};

class PathSizes {
 public:
  PathSizes(Paths& paths, AnswerQueue& answers) : paths_(paths), answers_(answers) {}

  // Tells the other ranks this rank's size, and asks those that have not told theirs. This rank's
  // size is the least that its paths carry, once all are known; without `measured` it is the
  // configured length. Repeat until SizeAgreement::agreed_bytes() has a value. Returns true if this
  // rank's size is known.
  bool agree(Member& member, bool measured);
  // Tells the member's size to the peers that have not acknowledged it. Before the member leaves,
  // repeat until Member::all_know_size().
  void tell(Member& member);
  // Returns a rank whose path carries short datagrams, but none of a useful length; else kNoRank.
  Rank too_narrow(const Member& member) const;
  // Removes the limit of a path that goes through memory, where datagrams of any length pass.
  void lift(Rank slot) { paths_[slot].size = protocol::PathSize(); }
  // Call it when the system refused a datagram of `bytes` bytes as too long.
  void on_refused(Instant now, Rank slot, std::size_t bytes);
  const SizeCounters& counters() const { return counters_; }

  // Call it when the route of the path changed. `further`: bytes that a relay adds to the path's
  // datagrams.
  void on_new_path(Instant now, Rank slot, std::size_t further);
  // Call it when something arrived on the path, because its next probe may now be due earlier.
  void look(Rank slot) { wake_at_ = std::min(wake_at_, paths_[slot].size.wake_at()); }
  // Takes in a probe, a question or an answer. `member` and `former`: this process as a present or
  // former member of the datagram's communicator, or null. Returns why the datagram is refused.
  wire::Refusal on_size(Instant now, Rank slot, const wire::Prefix& prefix, ByteSpan datagram,
                        Member* member, const FormerMember* former);
  // Takes in a piece (WIRE 10.7). Sets `whole` to the datagram if the piece completes one; it is
  // valid until the path's next piece. Returns why the piece or the datagram is refused.
  wire::Refusal on_piece(Rank slot, const wire::Prefix& prefix, ByteSpan datagram, ByteSpan& whole);
  void on_wake(Instant now);
  Instant wake_at() const { return wake_at_; }

  // Returns true if poll() may have something to write.
  bool waits() const { return asks_ != nullptr || paths_.measured(); }
  // Writes the next probe or question to `out`. Neither takes a number of its path.
  bool poll(Instant now, std::span<const std::unique_ptr<Member>> members,
            protocol::TrainBuffer& out);
  // Cuts the train's datagrams if their path has become too narrow for them since the communicator
  // was made. Returns by how many bytes the train grew.
  std::size_t fit(protocol::TrainBuffer& out);
  // Call it when the member leaves.
  void forget(const Member& member) {
    if (asks_ == &member) asks_ = nullptr;
  }

 private:
  std::size_t least(const Member& member, bool measured) const;
  bool write_probe(Instant now, std::span<const std::unique_ptr<Member>> members,
                   protocol::TrainBuffer& out);
  bool write_probe_to(Instant now, Rank slot, std::span<const std::unique_ptr<Member>> members,
                      protocol::TrainBuffer& out);
  bool write_question(protocol::TrainBuffer& out);

  Paths& paths_;
  AnswerQueue& answers_;
  // No path has a probe due before this time.
  Instant wake_at_ = Instant::infinite_future();
  bool due_ = false;        // some paths have probes to send
  Member* asks_ = nullptr;  // has ranks to ask for their size; null if none has
  // Questions sent so far. Each question has its own number, because injected faults pick datagrams
  // by number. With equal numbers, a link would lose all questions or none.
  std::uint32_t questions_ = 0;
  std::vector<std::byte> whole_;  // a train that is being cut
  SizeCounters counters_;
};

}  // namespace leeway::collective
