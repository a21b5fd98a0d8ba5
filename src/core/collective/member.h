// This process as a member of one communicator. Node::join() makes it.
#pragma once

#include <span>
#include <vector>

#include "collective/engine.h"
#include "collective/size_agreement.h"

namespace leeway::collective {

class Member {
 public:
  // `slots` and `paths` have, by rank, the slot of the rank's process and the path to it.
  Member(const protocol::EndpointConfig& config, std::vector<Rank> slots,
         std::span<protocol::Path* const> paths, MemoryWatcher* watcher);

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  const protocol::EndpointConfig& config() const { return engine_.endpoint().config(); }

  Rank slot_of(Rank rank) const { return slots_[rank]; }
  const std::vector<Rank>& slots() const { return slots_; }
  // Returns kNoRank if the process in that slot is no member.
  Rank rank_in(Rank slot) const { return slot < ranks_.size() ? ranks_[slot] : kNoRank; }

  // Number of the last train of this member, in the count Node::trains(). Once the transport no
  // longer reads trains up to this number, it reads no memory of this member.
  std::uint64_t trains_end() const { return trains_end_; }

  // What the ranks have told each other about the datagram lengths of their paths
  // (PathSizes::agree).
  SizeAgreement& sizes() { return sizes_; }
  const SizeAgreement& sizes() const { return sizes_; }
  // Returns true if each peer has acknowledged this rank's size, or is gone, or ranks do not ask
  // each other for sizes.
  bool all_know_size() const {
    return sizes_.known_to_all([this](Rank rank) { return engine_.endpoint().link(rank).gone; });
  }

 private:
  friend class Node;      // its turns to be woken
  friend class Rotation;  // its turns to send

  Engine engine_;
  std::vector<Rank> slots_;  // by rank
  std::vector<Rank> ranks_;  // by slot
  SizeAgreement sizes_;
  std::uint64_t trains_end_ = 0;
  bool touched_ = false;    // is to be woken, whatever the time
  bool sends_ = false;      // is in the rotation
  bool held_back_ = false;  // operations wait until its trains are no longer read
  std::uint64_t deaths_seen_ = 0;
};

}  // namespace leeway::collective
