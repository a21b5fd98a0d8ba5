#include "collective/former_members.h"

#include <algorithm>
#include <utility>

namespace leeway::collective {

std::optional<wire::Prefix> FormerMember::answer_to(Rank slot, ByteSpan datagram) const {
  const wire::Expectation expect{epoch, self, static_cast<int>(slots.size())};
  wire::Prefix prefix;
  if (wire::decode_prefix(datagram, &expect, prefix) != wire::Refusal::none) return {};
  const bool told =  // by an answer, which is never answered
      prefix.type == wire::PacketType::given_up || prefix.type == wire::PacketType::alive;
  if (slots[prefix.source] != slot || told) return {};
  wire::Report report;
  if (prefix.type == wire::PacketType::report &&
      (wire::decode_report(datagram, report) != wire::Refusal::none || report.heard_goodbye)) {
    return {};
  }
  const bool parting = prefix.type == wire::PacketType::goodbye;
  return wire::Prefix{parting ? wire::PacketType::report : wire::PacketType::goodbye, epoch, self,
                      prefix.source};
}

void FormerMembers::add(FormerMember member) {
  if (members_.size() < kPlaces) {
    members_.push_back(std::move(member));
  } else {
    members_[next_++ % kPlaces] = std::move(member);
  }
}

const FormerMember* FormerMembers::find(std::uint32_t epoch) const {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const FormerMember& one) { return one.epoch == epoch; });
  return found == members_.end() ? nullptr : &*found;
}

}  // namespace leeway::collective
