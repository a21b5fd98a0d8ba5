#include "collective/path_sizes.h"

#include "base/contracts.h"
#include "base/limits.h"
#include "protocol/pieces.h"

namespace leeway::collective {

wire::Refusal PathSizes::on_size(Instant now, Rank slot, const wire::Prefix& prefix,
                                 ByteSpan datagram, Member* member, const FormerMember* former) {
  using Role = wire::Size::Role;
  wire::Size size;
  const wire::Refusal refusal = wire::decode_size(datagram, size);
  if (refusal != wire::Refusal::none) return refusal;
  // Sends one answer, no longer than the datagram that it answers (WIRE 10.2).
  const auto answer = [&](Role role, std::uint16_t bytes) {
    answers_.add(slot,
                 {.type = wire::PacketType::size,
                  .epoch = prefix.epoch,
                  .source = prefix.destination,
                  .destination = prefix.source,
                  .sequence = prefix.sequence},
                 {.role = role, .bytes = bytes});
    return wire::Refusal::none;
  };
  if (size.role == Role::probe) return answer(Role::answer, size.bytes);
  if (size.role == Role::answer) {
    const bool asked = paths_[slot].size.on_answer(now, prefix.sequence, size.bytes);
    look(slot);
    return asked ? wire::Refusal::none : wire::Refusal::field;
  }
  if (member == nullptr && former != nullptr && size.role == Role::mine)
    return answer(Role::yours, former->size);
  const Rank from = member == nullptr ? kNoRank : member->rank_in(slot);
  if (from == kNoRank) return wire::Refusal::epoch;
  SizeAgreement& agreement = member->sizes();
  agreement.on_told(from, size.bytes);
  if (size.role == Role::yours) agreement.on_acknowledged(from, prefix.sequence, questions_);
  if (size.role == Role::mine && agreement.own() != 0) return answer(Role::yours, agreement.own());
  return wire::Refusal::none;
}

wire::Refusal PathSizes::on_piece(Rank slot, const wire::Prefix& prefix, ByteSpan datagram,
                                  ByteSpan& whole) {
  wire::Piece piece;
  ByteSpan content;
  const wire::Refusal refusal = wire::decode_piece(datagram, piece, content);
  if (refusal != wire::Refusal::none) return refusal;
  const ByteSpan joined = paths_[slot].arriving.add(prefix.sequence, piece, content);
  if (joined.empty()) return wire::Refusal::none;
  if (wire::is_for_process(joined)) return wire::Refusal::type;
  ++counters_.pieces_joined;
  whole = joined;
  return wire::Refusal::none;
}

void PathSizes::on_refused(Instant now, Rank slot, std::size_t bytes) {
  if (!paths_.has(slot)) return;
  paths_[slot].size.on_refused(now, bytes);
  look(slot);
}

void PathSizes::on_new_path(Instant now, Rank slot, std::size_t further) {
  paths_[slot].size.begin_anew(now, further);
  look(slot);
}

void PathSizes::on_wake(Instant now) {
  if (now < wake_at_) return;
  wake_at_ = Instant::infinite_future();
  due_ = true;
}

bool PathSizes::poll(Instant now, std::span<const std::unique_ptr<Member>> members,
                     protocol::TrainBuffer& out) {
  return (due_ && write_probe(now, members, out)) || (asks_ != nullptr && write_question(out));
}

bool PathSizes::write_probe(Instant now, std::span<const std::unique_ptr<Member>> members,
                            protocol::TrainBuffer& out) {
  wake_at_ = Instant::infinite_future();
  for (Rank slot = 0; slot < paths_.slots(); ++slot) {
    if (!paths_.has(slot) || paths_[slot].dead()) continue;
    if (write_probe_to(now, slot, members, out)) return true;  // there may be more
    look(slot);
  }
  due_ = false;
  return false;
}

bool PathSizes::write_probe_to(Instant now, Rank slot,
                               std::span<const std::unique_ptr<Member>> members,
                               protocol::TrainBuffer& out) {
  protocol::Path& path = paths_[slot];
  if (path.size.wake_at() > now) return false;
  const auto member = std::find_if(members.begin(), members.end(),
                                   [&](const auto& one) { return one->rank_in(slot) != kNoRank; });
  if (member == members.end()) {
    path.size.postpone(now);
    return false;
  }
  const auto probe = path.size.poll(now, path.rtt.timeout());
  if (!probe) return false;
  out.start(slot);
  const wire::Prefix prefix{.type = wire::PacketType::size,
                            .epoch = (*member)->config().epoch,
                            .source = (*member)->config().self,
                            .destination = (*member)->rank_in(slot),
                            .sequence = probe->number};
  const wire::Size size{.bytes = static_cast<std::uint16_t>(probe->bytes)};
  out.append(wire::encode_size(prefix, size, out.scratch(probe->bytes)), {});
  ++counters_.probes_sent;
  return true;
}

bool PathSizes::write_question(protocol::TrainBuffer& out) {
  const std::uint32_t number = questions_ + 1;
  const Rank rank = asks_->sizes().next(number);
  if (rank == kNoRank) {
    asks_ = nullptr;
    return false;
  }
  questions_ = number;
  out.start(asks_->slot_of(rank));
  const wire::Prefix prefix{.type = wire::PacketType::size,
                            .epoch = asks_->config().epoch,
                            .source = asks_->config().self,
                            .destination = rank,
                            .sequence = number};
  const wire::Size size{.role = wire::Size::Role::mine, .bytes = asks_->sizes().own()};
  out.append(wire::encode_size(prefix, size, out.scratch(wire::kSizeBytes)), {});
  return true;
}

std::size_t PathSizes::fit(protocol::TrainBuffer& out) {
  LEEWAY_ASSERT(!out.empty() && paths_.has(out.to()));
  protocol::PathSize& path = paths_[out.to()].size;
  const auto datagrams = static_cast<std::uint32_t>(out.datagrams());
  const std::size_t bytes = out.total_bytes();
  std::size_t segment_bytes = out.segment_bytes();
  std::size_t last_bytes = bytes - (datagrams - 1) * segment_bytes;
  if (segment_bytes > path.bytes()) {
    protocol::cut_train(out, path.bytes(), whole_);
    const bool rest_is_whole = last_bytes <= out.segment_bytes();
    counters_.datagrams_cut += datagrams - (rest_is_whole ? 1 : 0);
    segment_bytes = out.segment_bytes();
    last_bytes = std::min(last_bytes, segment_bytes);
  }
  path.on_sent(paths_[out.to()].last_sequence(), datagrams, segment_bytes, last_bytes);
  return out.total_bytes() - bytes;
}

bool PathSizes::agree(Member& member, bool measured) {
  SizeAgreement& agreement = member.sizes();
  agreement.ask(agreement.own() != 0 ? 0 : least(member, measured));
  asks_ = &member;
  return agreement.own() != 0;
}

void PathSizes::tell(Member& member) {
  member.sizes().tell();
  asks_ = &member;
}

Rank PathSizes::too_narrow(const Member& member) const {
  for (Rank rank = 0; rank < member.slots().size(); ++rank) {
    if (rank != member.config().self && paths_[member.slot_of(rank)].size.too_narrow()) return rank;
  }
  return kNoRank;
}

// Returns the length of the longest datagram that all paths of the member carry, or 0 while one
// length is unknown. Without `measured`, returns the configured length.
std::size_t PathSizes::least(const Member& member, bool measured) const {
  std::size_t least = member.config().datagram_bytes;
  for (Rank rank = 0; rank < member.slots().size() && measured; ++rank) {
    if (rank == member.config().self) continue;
    const protocol::PathSize& path = paths_[member.slot_of(rank)].size;
    if (!path.settled()) return 0;
    least = std::min(least, path.bytes());
  }
  // A path through a relay may carry less than kDatagramBytesMin. Longer datagrams then travel
  // there in pieces.
  return std::max(least, limits::kDatagramBytesMin);
}

}  // namespace leeway::collective
