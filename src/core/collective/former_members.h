// Keeps what a process needs to answer peers that still speak to communicators that it has left.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "leeway/types.h"
#include "wire/packet.h"

namespace leeway::collective {

struct FormerMember {
  // Returns the answer to a peer's datagram (WIRE 6.8), which has no sequence number yet. A
  // good-bye is answered by a report that confirms it. A report that confirms a good-bye, and some
  // other types, get no answer (nullopt), so two processes that have both left fall silent. All
  // other datagrams are answered by a good-bye.
  std::optional<wire::Prefix> answer_to(Rank slot, ByteSpan datagram) const;

  std::uint32_t epoch = 0;
  Rank self = 0;
  std::vector<Rank> slots;  // by rank
  std::uint16_t size = 0;   // SizeAgreement::own()
};

// The kPlaces communicators that this process left last. A peer that speaks to an older
// communicator gets no answer, so it waits until its deadline.
class FormerMembers {
 public:
  static constexpr std::size_t kPlaces = 256;

  void add(FormerMember member);
  // Returns null if no communicator with this epoch is kept.
  const FormerMember* find(std::uint32_t epoch) const;

 private:
  std::vector<FormerMember> members_;  // a ring once it is full
  std::size_t next_ = 0;
};

}  // namespace leeway::collective
