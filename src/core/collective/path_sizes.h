// Length of datagrams on each path of a process, whatever its communicators (WIRE 10): sends
// probes, lets the ranks of a communicator agree on a size, answers both, and sends in pieces what
// is too long for its path. The search itself is protocol/path_size.h's.
//
// Drivers use the first part of the public functions. A node calls the others.
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

  // Tells the other ranks which size this one's paths carry, once that is known for all of them,
  // and asks ranks that have not told theirs. Repeat until SizeAgreement::agreed_bytes() has a
  // value. Without `measured`, this rank tells its configured size, whatever its paths carry.
  // Returns true if this rank's own size is known.
  bool agree(Member& member, bool measured);
  // Before a member leaves: tells its size to the peers that may still wait for it. Repeat until
  // Member::all_know_size().
  void tell(Member& member);
  // Returns a rank to which no datagram of a useful length passes, although short ones do; else
  // kNoRank.
  Rank too_narrow(const Member& member) const;
  // The path to the process leads through memory: datagrams of any length pass.
  void lift(Rank slot) { paths_[slot].size = protocol::PathSize(); }
  // The system refused a datagram of `bytes` bytes for its length.
  void on_refused(Instant now, Rank slot, std::size_t bytes);
  const SizeCounters& counters() const { return counters_; }

  // The path leads elsewhere; relays add `further` bytes to its datagrams.
  void on_new_path(Instant now, Rank slot, std::size_t further);
  // Something arrived on the path: its next probe may be due earlier.
  void look(Rank slot) { wake_at_ = std::min(wake_at_, paths_[slot].size.wake_at()); }
  // A probe, question or answer came. `member` and `former` are of its communicator, and null if
  // this process was never one. Returns why it is refused.
  wire::Refusal on_size(Instant now, Rank slot, const wire::Prefix& prefix, ByteSpan datagram,
                        Member* member, const FormerMember* former);
  // A piece came (WIRE 10.7). `whole` is the datagram that it completes, valid until the next
  // piece of the path; else empty. Returns why the piece or the datagram is refused.
  wire::Refusal on_piece(Rank slot, const wire::Prefix& prefix, ByteSpan datagram, ByteSpan& whole);
  void on_wake(Instant now);
  Instant wake_at() const { return wake_at_; }

  // Returns true if poll() may have something to write.
  bool waits() const { return asks_ != nullptr || paths_.measured(); }
  // Writes the next probe or question. No path counts it.
  bool poll(Instant now, std::span<const std::unique_ptr<Member>> members,
            protocol::TrainBuffer& out);
  // Cuts the train's datagrams if they are too long for its path, which has become narrower since
  // the communicator was made. Returns by how many bytes that makes the train longer.
  std::size_t fit(protocol::TrainBuffer& out);
  // The member leaves.
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
  // No path is to be looked at before this time.
  Instant wake_at_ = Instant::infinite_future();
  bool due_ = false;        // some paths have probes to send
  Member* asks_ = nullptr;  // has ranks to ask for their size
  // Questions sent so far. Each has a number of its own: injected faults go by it, and would
  // otherwise lose all of a link or none.
  std::uint32_t questions_ = 0;
  std::vector<std::byte> whole_;  // a train that is being cut
  SizeCounters counters_;
};

}  // namespace leeway::collective
